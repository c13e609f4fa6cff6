//! From a resolved configuration to a [`Broker`]. Checks nothing: the configuration is checked when it is loaded.

use super::access;
use super::bundles::BundlesRuntime;
use crate::BoxError;
use crate::demo::Demo;
use crate::stores;
use std::sync::Arc;
use sutler::{
    BrokerConfig, DeletedPollAnswer, MissingVersionAnswer, ResolvedConfig, ResourceConfig,
};
use sutler_broker::{
    Admin, Auth, Broker, CleanupSettings, DeletedPoll, KindSettings, MissingVersion,
    PlanWaitLimits, Platform, Settings, Tls,
};

/// Builds the configured broker: bundles, or a catalog with the demo service behind every offering.
pub(super) async fn broker(
    loaded: &ResolvedConfig,
    mut bundles: Option<&mut BundlesRuntime>,
    operators: Option<Auth>,
) -> Result<Broker, BoxError> {
    let config = &loaded.config;
    let persistent = stores::open(&config.store).await?;
    if let (Some(bundles), Some(persistent)) = (&mut bundles, &persistent) {
        bundles
            .load_unconfigured_registries(config, persistent.store.as_ref())
            .await?;
    }
    let bundles = bundles.as_deref();
    let broker = match bundles {
        Some(bundles) => Broker::new(bundles.catalog()?).other_services(bundles.service.clone()),
        None => Broker::new(loaded.catalog.clone()).other_services(Arc::new(Demo)),
    };
    let mut broker = broker.settings(|settings| {
        apply(config, settings);
        settings.host = bundles.and_then(BundlesRuntime::host);
    });
    for (prefix, auth) in access::of(config).map_err(|fault| fault.to_string())? {
        broker = match realm_of(config, &prefix) {
            Some(realm) => broker.platform(Platform::at(&prefix).realm(realm).auth(auth)),
            None => broker.auth(auth),
        };
    }
    if let (Some(admin), Some(operators)) = (&config.admin, operators) {
        let mut admin = Admin::at(admin.path()).auth(operators);
        // With registries, their page has the bundles of folders too.
        if let Some(bundles) = bundles.filter(|it| it.registries.is_none()) {
            let shown = bundles.shown.clone();
            admin = admin.page("bundles", move || shown.page());
        }
        broker = broker.admin(admin);
    }
    if let Some(registries) = bundles.and_then(|it| it.registries.as_ref()) {
        let tasks = registries.periodic_tasks().into_iter();
        broker = tasks
            .fold(broker, Broker::periodic_task)
            .with_catalog_source();
    }
    if let Some(tls) = tls(config) {
        broker = broker.tls(tls);
    }
    if config.metrics.public {
        broker = broker.public_metrics();
    }
    let Some(persistent) = persistent else {
        return Ok(broker.in_memory());
    };
    if let Some((backup, folder)) = persistent.backup {
        broker = broker.backup(backup, folder);
    }
    Ok(broker.shared_store(persistent.store, persistent.keys))
}

/// The realm of a platform; `None` for the one at `/` that is configured at the top level.
fn realm_of<'a>(config: &'a BrokerConfig, prefix: &str) -> Option<&'a str> {
    let mut platforms = config.platforms.iter();
    let platform = platforms.find(|platform| platform.prefix == prefix)?;
    Some(&platform.realm)
}

fn apply(config: &BrokerConfig, settings: &mut Settings) {
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
    settings.feed = config.store.feed();
    settings.drain = config.drain.0;
    settings.drain_notice = config.timeouts.drain_notice.0;
    settings.limits = config
        .limits
        .resolve(&config.timeouts.connections(), settings.limits.clone());
    settings.patience = PlanWaitLimits {
        wait: config.refresh.wait.0,
        waiting_max: config.refresh.waiting,
        sync_wait: config.refresh.synchronous_wait.0,
    };
    settings.instances = records(&config.instances);
    settings.bindings = records(&config.bindings);
}

/// The files of TLS, if it is configured.
pub(super) fn tls(config: &BrokerConfig) -> Option<Tls> {
    config.tls.as_ref()?.resolve()
}

fn records(records: &ResourceConfig) -> KindSettings {
    let when = |schedule: &Option<sutler::CronText>| schedule.as_ref().and_then(|it| it.0.clone());
    KindSettings {
        force_delete_unknown: records.force_delete_unknown,
        cleanup: CleanupSettings {
            kept: records.cleanup.kept.0,
            age: records.cleanup.age.0,
            all: when(&records.cleanup.all),
            succeeded: when(&records.cleanup.succeeded),
            failed: when(&records.cleanup.failed),
        },
    }
}
