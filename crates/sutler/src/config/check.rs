//! What does not go together: rules about several values of a configuration. Pure.
//!
//! Each finding names the path it is about; where that is written, `sources.rs` knows.

use super::model::{
    AccessConfig, AdminConfig, AuthMode, BearerConfig, BrokerConfig, BundlesConfig, ClientAuth,
    StoreUrl, TimeoutsConfig, UserConfig,
};
use super::value_types::ByteSize;
use std::collections::HashSet;
use std::time::Duration;

/// The path that serves the protocol; no prefix may end in it.
const PROTOCOL: &str = "/v2";

/// The realm of the platform at `/`.
const REALM: &str = "broker";

/// Where the operators' API is, unless said otherwise.
const ADMIN_PREFIX: &str = "/admin";

/// Most operations at a time. Each may hold a connection to what it makes.
const WORKERS_MAX: usize = 10_000;

/// What was found, by path.
#[derive(Debug, Default)]
pub(super) struct CheckFindings {
    pub(super) faults: Vec<(String, String)>,
    pub(super) warnings: Vec<(String, String)>,
}

impl CheckFindings {
    fn fault(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.faults.push((path.into(), reason.into()));
    }

    fn warn(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        self.warnings.push((path.into(), reason.into()));
    }
}

/// Looks at everything.
pub(super) fn check(config: &BrokerConfig) -> CheckFindings {
    let mut findings = CheckFindings::default();
    authentication(config, &mut findings);
    platforms(config, &mut findings);
    admin(config, &mut findings);
    tls(config, &mut findings);
    sources(config, &mut findings);
    amounts(config, &mut findings);
    exposure(config, &mut findings);
    findings
}

impl AdminConfig {
    /// The path before the operators' API.
    pub fn path(&self) -> &str {
        self.prefix.as_deref().unwrap_or(ADMIN_PREFIX)
    }
}

impl BrokerConfig {
    /// Who may come in at `/`, if there is a platform there.
    pub fn front(&self) -> Option<AccessConfig<'_>> {
        let access = AccessConfig {
            auth: self.auth,
            users: &self.users,
            bearer: self.bearer.as_ref(),
        };
        (self.platforms.is_empty() || !access.is_nobody()).then_some(access)
    }
}

fn authentication(config: &BrokerConfig, findings: &mut CheckFindings) {
    let needs = "needs `users` or `bearer`, or BROKER_USERNAME and BROKER_PASSWORD in the \
                 environment; to serve everybody, say `auth: none` or --no-auth";
    if config.front().is_some_and(|access| access.is_nobody()) {
        findings.fault("auth", needs);
    }
    if config.auth == AuthMode::None && !(config.users.is_empty() && config.bearer.is_none()) {
        findings.warn(
            "auth",
            "is none, so nobody is asked for `users` or `bearer`",
        );
    }
    users(&config.users, "", findings);
    bearer(config.bearer.as_ref(), "", findings);
    for (nth, platform) in config.platforms.iter().enumerate() {
        let path = format!("platforms[{nth}]");
        let nobody = platform.users.is_empty() && platform.bearer.is_none();
        if nobody && platform.auth == AuthMode::Required {
            let needs = "needs `users` or `bearer`; to serve everybody, say `auth: none`";
            findings.fault(&path, needs);
        }
        users(&platform.users, &format!("{path}."), findings);
        bearer(platform.bearer.as_ref(), &format!("{path}."), findings);
    }
}

fn users(users: &[UserConfig], before: &str, findings: &mut CheckFindings) {
    let mut names = HashSet::new();
    for (nth, user) in users.iter().enumerate() {
        let path = format!("{before}users[{nth}]");
        let name = &user.name;
        if name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
            let reason = "must not be empty, and must have no colon in it";
            findings.fault(format!("{path}.name"), reason);
        }
        if !names.insert(name) {
            let reason = "is a user's already; give each user another name";
            findings.fault(format!("{path}.name"), reason);
        }
        match (&user.password, &user.password_hash) {
            (Some(_), None) | (None, Some(_)) => {}
            (None, None) => findings.fault(path, "needs `password` or `password_hash`"),
            (Some(_), Some(_)) => {
                findings.fault(
                    path,
                    "has `password` and `password_hash`; remove one of them",
                );
            }
        }
    }
}

fn bearer(bearer: Option<&BearerConfig>, before: &str, findings: &mut CheckFindings) {
    let Some(bearer) = bearer else {
        return;
    };
    if bearer.issuer.is_empty() {
        let reason = "must not be empty; it is `iss` of the tokens";
        findings.fault(format!("{before}bearer.issuer"), reason);
    }
    if bearer.audience.is_empty() || bearer.audience.iter().any(String::is_empty) {
        let reason = "must name who the tokens are for; it is `aud` of the tokens";
        findings.fault(format!("{before}bearer.audience"), reason);
    }
}

fn platforms(config: &BrokerConfig, findings: &mut CheckFindings) {
    let mut prefixes = HashSet::new();
    let mut realms = HashSet::new();
    if config.front().is_some() {
        prefixes.insert("");
        realms.insert(REALM);
    }
    for (nth, platform) in config.platforms.iter().enumerate() {
        let path = format!("platforms[{nth}].prefix");
        match prefix_fault(&platform.prefix) {
            Some(reason) => findings.fault(path, reason),
            None if !prefixes.insert(platform.prefix.trim_end_matches('/')) => {
                findings.fault(path, "is another platform's already; give each its own");
            }
            None => {}
        }
        let path = format!("platforms[{nth}].realm");
        if platform.realm.is_empty() || platform.realm.contains('\0') {
            findings.fault(path, "must not be empty");
        } else if !realms.insert(&platform.realm) {
            findings.fault(path, "is another platform's already; give each its own");
        }
    }
}

/// Why a prefix cannot be one.
fn prefix_fault(prefix: &str) -> Option<&'static str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let inner = match prefix {
        "/" => return None,
        _ => prefix.strip_prefix('/'),
    };
    let Some(inner) = inner else {
        return Some("must begin with a slash, such as `/cf`");
    };
    let good = |part: &str| !part.is_empty() && part.chars().all(fine) && !part.starts_with('.');
    if !inner.split('/').all(good) {
        return Some("must be a path such as `/cf` or `/eu/cf`, of letters, digits, `-`, `_`, `~`");
    }
    if prefix.split('/').any(|part| format!("/{part}") == PROTOCOL) {
        return Some("must not contain `/v2`, which follows it anyway");
    }
    None
}

fn admin(config: &BrokerConfig, findings: &mut CheckFindings) {
    let Some(admin) = &config.admin else {
        return;
    };
    if admin.users.is_empty() && admin.bearer.is_none() {
        findings.fault("admin", "needs `users` or `bearer` of its own");
    }
    users(&admin.users, "admin.", findings);
    bearer(admin.bearer.as_ref(), "admin.", findings);
    let prefix = admin.path();
    let taken = config.platforms.iter().any(|it| it.prefix == prefix);
    match prefix_fault(prefix) {
        Some(reason) => findings.fault("admin.prefix", reason),
        None if taken || prefix == "/" => {
            findings.fault("admin.prefix", "is a platform's already; give another");
        }
        None => {}
    }
}

fn tls(config: &BrokerConfig, findings: &mut CheckFindings) {
    let Some(tls) = &config.tls else {
        return;
    };
    match (&tls.certificate, &tls.key) {
        (Some(_), Some(_)) => {}
        (Some(_), None) => findings.fault("tls", "has a certificate, but no `key`: give both"),
        (None, Some(_)) => findings.fault("tls", "has a key, but no `certificate`: give both"),
        (None, None) => findings.fault("tls", "needs `certificate` and `key`"),
    }
    match (tls.client_auth, &tls.client_ca) {
        (ClientAuth::Optional | ClientAuth::Required, None) => {
            let reason = "needs `client_ca`, to know which certificates to trust";
            findings.fault("tls.client_auth", reason);
        }
        (ClientAuth::None, Some(_)) => {
            let reason =
                "means nothing while `client_auth` is `none`; say `optional` or `required`";
            findings.fault("tls.client_ca", reason);
        }
        (ClientAuth::None, None) | (ClientAuth::Optional | ClientAuth::Required, Some(_)) => {}
    }
}

fn sources(config: &BrokerConfig, findings: &mut CheckFindings) {
    if config.catalog.file.is_some() && config.catalog.services.is_some() {
        findings.fault("catalog", "has `file` and `services`; remove one of them");
    }
    if let Some(bundles) = &config.bundles {
        self::bundles(config, bundles, findings);
    }
    registries(config, findings);
    refresh(config, findings);
    match (&config.store.url, &config.store.key_file) {
        (StoreUrl::Memory, Some(_)) => {
            let reason = "means nothing for a store in memory; remove it";
            findings.fault("store.key_file", reason);
        }
        (StoreUrl::Server(_), None) => {
            let reason = "needs `key_file` beside it: every replica must have the same keys";
            findings.fault("store.url", reason);
        }
        (StoreUrl::Memory, None) | (StoreUrl::Server(_), Some(_)) | (StoreUrl::Sqlite(_), _) => {}
    }
}

fn refresh(config: &BrokerConfig, findings: &mut CheckFindings) {
    let refresh = &config.refresh;
    let least = Duration::from_secs(1);
    for (key, span) in [
        ("every", refresh.every),
        ("delete_every", refresh.delete_every),
    ] {
        if span.0 < least {
            findings.fault(format!("refresh.{key}"), "must be at least 1s");
        }
    }
    if !(1..=64).contains(&refresh.at_once) {
        findings.fault("refresh.at_once", "must be between 1 and 64");
    }
    if refresh.withdraw_after_failures == Some(0) {
        let reason = "must be at least 1; leave it out to withdraw nothing because of failures";
        findings.fault("refresh.withdraw_after_failures", reason);
    }
}

fn bundles(config: &BrokerConfig, bundles: &BundlesConfig, findings: &mut CheckFindings) {
    let pushed = bundles.compat.dev_broker;
    if bundles.all_folders().next().is_none() && config.registry.is_empty() && !pushed {
        let reason = "has no `folder` or `folders`, where bundles are, and there is no `registry`: nothing is \
                      offered, and only instances that are there already are served";
        findings.warn("bundles", reason);
    }
    if config.catalog.file.is_some() || config.catalog.services.is_some() {
        let reason = "means nothing beside `bundles`: remove one, or serve it by another broker";
        findings.fault("catalog", reason);
    }
    let least = Duration::from_millis(100);
    if bundles.look_every.0 < least {
        findings.fault("bundles.look_every", "must be at least 100ms");
    }
    for (nth, secret) in bundles.secrets.iter().enumerate() {
        let path = format!("bundles.secrets[{nth}]");
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let named = |name: &str| {
            (1..=100).contains(&name.len()) && !name.starts_with('.') && name.chars().all(fits)
        };
        let rule = "must be of letters, digits, `-`, `.` and `_`: it names a file";
        if !named(&secret.name) {
            findings.fault(format!("{path}.name"), rule);
        }
        if !secret.keys.iter().all(|it| named(&it.key)) {
            findings.fault(format!("{path}.keys"), rule);
        }
    }
}

fn registries(config: &BrokerConfig, findings: &mut CheckFindings) {
    let mut names = HashSet::new();
    for (nth, block) in config.registry.iter().enumerate() {
        let path = format!("registry[{nth}].name");
        let name = &block.name;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !(1..=32).contains(&name.len()) || !name.chars().all(fits) {
            let reason = "must be of small letters, digits and `-`, from 1 to 32 of them";
            findings.fault(&path, reason);
        }
        if name == sutler_registry::PUSHED {
            let reason = "is the name of what developers push; give it another";
            findings.fault(&path, reason);
        }
        if !names.insert(name) {
            findings.fault(path, "is a registry's already; give each another name");
        }
    }
    let engine = config.bundles.as_ref().map(|it| it.container.is_some());
    if !config.registry.is_empty() && engine != Some(true) {
        let reason = "has images, and nothing runs them: name an engine under `bundles.container`";
        findings.warn("registry", reason);
    }
}

fn amounts(config: &BrokerConfig, findings: &mut CheckFindings) {
    if config.workers == 0 || config.workers > WORKERS_MAX {
        findings.fault("workers", format!("must be from 1 to {WORKERS_MAX}"));
    }
    let limits = &config.limits;
    let sizes = [
        ("limits.body", limits.body, 1 << 10),
        ("limits.bodies_at_once", limits.bodies_at_once, 1 << 10),
        ("limits.uri", limits.uri, 1 << 10),
        ("limits.headers", limits.headers, 8 << 10),
    ];
    for (path, size, least) in sizes {
        if size.0 < least {
            findings.fault(path, format!("must be at least {}", ByteSize(least)));
        }
    }
    let counts = [
        ("limits.header_lines", limits.header_lines),
        ("limits.connections", limits.connections),
        ("limits.connections_per_peer", limits.connections_per_peer),
        ("limits.handshakes_at_once", limits.handshakes_at_once),
        ("limits.streams", limits.streams as usize),
        ("limits.reads_at_once", limits.reads_at_once),
        ("limits.changes_at_once", limits.changes_at_once),
        ("limits.requests_per_caller", limits.requests_per_caller),
        ("limits.burst_per_caller", limits.burst_per_caller as usize),
    ];
    for (path, count) in counts {
        if count == 0 {
            findings.fault(path, "must be at least 1");
        }
    }
    waits(&config.timeouts, findings);
    let level = tracing_subscriber::EnvFilter::try_new(&config.log.level);
    if level.is_err() || config.log.level.trim().is_empty() {
        let reason = "must be `error`, `warn`, `info`, `debug` or `trace`, or several such as \
                      `info,sutler_broker=debug`";
        findings.fault("log.level", reason);
    }
}

fn waits(timeouts: &TimeoutsConfig, findings: &mut CheckFindings) {
    let waits = [
        ("timeouts.headers", timeouts.headers),
        ("timeouts.body", timeouts.body),
        ("timeouts.handshake", timeouts.handshake),
        ("timeouts.idle", timeouts.idle),
        ("timeouts.write", timeouts.write),
        ("timeouts.sync_wait", timeouts.sync_wait),
    ];
    for (path, span) in waits {
        if span.0.is_zero() {
            findings.fault(path, "must be longer than nothing");
        }
    }
    if timeouts.lease.0.as_secs() < 1 {
        findings.fault("timeouts.lease", "must be at least 1s");
    }
}

/// What outsiders could see or do.
fn exposure(config: &BrokerConfig, findings: &mut CheckFindings) {
    if config.listen.is_loopback() {
        return;
    }
    let open = config.platforms.iter().any(|it| it.auth == AuthMode::None);
    if open || config.auth == AuthMode::None {
        let reason = "lets other machines in, and nobody is asked who they are";
        findings.warn("listen", reason);
    } else if config.tls.is_none() {
        let reason = "lets other machines in, and passwords travel unencrypted: set `tls`, or \
                      put something in front that does";
        findings.warn("listen", reason);
    }
}
