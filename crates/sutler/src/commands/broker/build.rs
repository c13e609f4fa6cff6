//! From a configuration to the framework's own words. Decides nothing: what goes together was checked.

use crate::demo::Demo;
use std::io::IsTerminal as _;
use std::sync::Arc;
use sutler::{
    AuthMode, Config, DeletedPollAnswer, Format, Loaded, Log, MissingVersionAnswer, Records,
    StoreUrl,
};
use sutler_broker::{Broker, CleanupSettings, DeletedPoll, KindSettings, MissingVersion, Settings};
use sutler_journal::KeyRing;
use sutler_store_sqlite::SqliteStore;
use tracing_subscriber::EnvFilter;

type Fault = Box<dyn std::error::Error>;

/// Starts writing the log.
pub(super) fn log(log: &Log) -> Result<(), Fault> {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(&log.level)?)
        .with_writer(std::io::stderr)
        // A log in a file is read by programs too.
        .with_ansi(std::io::stderr().is_terminal());
    match log.format {
        Format::Text => subscriber.init(),
        Format::Json => subscriber.json().init(),
    }
    Ok(())
}

/// The recipe of the configured broker, with the demo service behind every offering.
pub(super) async fn broker(loaded: &Loaded) -> Result<Broker, Fault> {
    let config = &loaded.config;
    let mut broker =
        Broker::new(loaded.catalog.clone()).settings(|settings| apply(config, settings));
    for offering in loaded.catalog.catalog.services() {
        broker = broker.untyped_service(offering.id.as_str(), Arc::new(Demo));
    }
    let broker = match (config.auth, config.users.first()) {
        (AuthMode::None, _) => broker.without_auth(),
        (AuthMode::Required, Some(user)) => {
            let password = user.password.as_ref().map(|it| it.reveal(&variable));
            let password = password.ok_or("the first user needs a password")??;
            broker.basic_auth(&user.name, password)
        }
        (AuthMode::Required, None) => broker,
    };
    let StoreUrl::Sqlite(path) = &config.store.url else {
        return Ok(broker.in_memory());
    };
    let keys = config.store.key_file.as_ref();
    let keys = keys.map_or_else(|| path.with_extension("key"), |it| it.0.clone());
    Ok(broker.store(SqliteStore::open(path).await?, KeyRing::file(keys)?))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn apply(config: &Config, settings: &mut Settings) {
    settings.missing_version = match config.compat.missing_version {
        MissingVersionAnswer::BadRequest => MissingVersion::BadRequest,
        MissingVersionAnswer::PreconditionFailed => MissingVersion::PreconditionFailed,
    };
    settings.deleted_poll = match config.compat.deleted_poll {
        DeletedPollAnswer::Succeeded => DeletedPoll::Succeeded,
        DeletedPollAnswer::Gone => DeletedPoll::Gone,
    };
    settings.sync_wait = config.timeouts.sync_wait.0;
    settings.body_bytes_max = config.limits.body.0;
    settings.headers_within = config.timeouts.headers.0;
    settings.body_within = config.timeouts.body.0;
    settings.workers = config.workers;
    settings.lease = config.timeouts.lease.0;
    settings.tombstones = config.timeouts.tombstones.0;
    settings.drain = config.drain.0;
    settings.instances = records(&config.instances);
    settings.bindings = records(&config.bindings);
}

fn records(records: &Records) -> KindSettings {
    let when = |schedule: &Option<sutler::When>| schedule.as_ref().and_then(|it| it.0.clone());
    KindSettings {
        force_delete_unknown: records.force_delete_unknown,
        cleanup: CleanupSettings {
            age: records.cleanup.age.0,
            all: when(&records.cleanup.all),
            succeeded: when(&records.cleanup.succeeded),
            failed: when(&records.cleanup.failed),
        },
    }
}
