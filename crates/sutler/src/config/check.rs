//! Rules about several values of a broker's configuration. Pure.
//!
//! Each finding has the path of a value; `sources.rs` knows where that was written. Rules within one block are in
//! `blocks/`.

use super::blocks::{AuthMode, Exposure, check_exposure};
use super::findings::CheckFindings;
use super::model::{BrokerConfig, BundlesConfig};
use std::collections::HashSet;
use std::time::Duration;

/// The path of the protocol; no prefix may contain it.
const PROTOCOL: &str = "/v2";

/// The realm of the platform at `/`.
const REALM: &str = "broker";

/// The realm of `sutler platform`, which may share the store of brokers. They may have any other.
pub const PLATFORM_REALM: &str = "platform";

/// Maximum of concurrent operations. Each may hold a connection to its service.
const WORKERS_MAX: usize = 10_000;

/// Checks a whole configuration.
pub(super) fn check(config: &BrokerConfig) -> CheckFindings {
    let mut findings = CheckFindings::default();
    authentication(config, &mut findings);
    platforms(config, &mut findings);
    admin(config, &mut findings);
    if let Some(tls) = &config.tls {
        tls.check("tls", &mut findings);
    }
    sources(config, &mut findings);
    amounts(config, &mut findings);
    let open = config.platforms.iter().any(|it| it.auth == AuthMode::None);
    let exposure = Exposure {
        unauthenticated: open || config.auth == AuthMode::None,
        encrypted: config.tls.is_some(),
    };
    check_exposure(&config.listen, exposure, "listen", &mut findings);
    findings
}

fn authentication(config: &BrokerConfig, findings: &mut CheckFindings) {
    let needs = "needs `users` or `bearer`, or BROKER_USERNAME and BROKER_PASSWORD in the \
                 environment; to serve everybody, say `auth: none` or --no-auth";
    if config
        .root_access()
        .is_some_and(|access| access.admits_nobody())
    {
        findings.fault("auth", needs);
    }
    if config.auth == AuthMode::None && !(config.users.is_empty() && config.bearer.is_none()) {
        findings.warn(
            "auth",
            "is none, so nobody is asked for `users` or `bearer`",
        );
    }
    config.top_access().check("", findings);
    for (nth, platform) in config.platforms.iter().enumerate() {
        let path = format!("platforms[{nth}]");
        let access = platform.access();
        if access.admits_nobody() {
            let needs = "needs `users` or `bearer`; to serve everybody, say `auth: none`";
            findings.fault(&path, needs);
        }
        access.check(&format!("{path}."), findings);
    }
}

fn platforms(config: &BrokerConfig, findings: &mut CheckFindings) {
    let mut prefixes = HashSet::new();
    let mut realms = HashSet::new();
    if config.root_access().is_some() {
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
        } else if platform.realm == PLATFORM_REALM {
            findings.fault(path, "is the realm of `sutler platform`; choose another");
        } else if !realms.insert(&platform.realm) {
            findings.fault(path, "is another platform's already; give each its own");
        }
    }
}

/// The reason why a prefix is invalid.
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
    let access = admin.access();
    if access.admits_nobody() {
        findings.fault("admin", "needs `users` or `bearer` of its own");
    }
    access.check("admin.", findings);
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

fn sources(config: &BrokerConfig, findings: &mut CheckFindings) {
    if config.catalog.file.is_some() && config.catalog.services.is_some() {
        findings.fault("catalog", "has `file` and `services`; remove one of them");
    }
    if let Some(bundles) = &config.bundles {
        self::bundles(config, bundles, findings);
    }
    registries(config, findings);
    refresh(config, findings);
    config.store.check("store", findings);
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
        if name == sutler_registry::PUSHED_REGISTRY {
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
    config.limits.check("limits", findings);
    config.timeouts.check("timeouts", findings);
    config.log.check("log", findings);
}
