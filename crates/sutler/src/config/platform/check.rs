//! Rules about several values of a platform's configuration. Pure.
//!
//! Each finding has the path of a value. Rules within one block are in `blocks/`.

use super::{ID_BYTES_MAX, PlatformConfig};
use crate::config::blocks::{Exposure, check_bearer, check_exposure, check_users};
use crate::config::findings::CheckFindings;
use std::collections::HashSet;

/// Checks a whole configuration.
pub(super) fn check(config: &PlatformConfig) -> CheckFindings {
    let mut findings = CheckFindings::default();
    if !(1..=ID_BYTES_MAX).contains(&config.id.len()) {
        let reason = format!("must have 1 to {ID_BYTES_MAX} bytes");
        findings.fault("id", reason);
    }
    authentication(config, &mut findings);
    names(config, &mut findings);
    if config.egress.anywhere && !config.egress.networks.is_empty() {
        let reason = "means nothing while `anywhere` is true; remove one of them";
        findings.fault("egress.networks", reason);
    }
    if let Some(tls) = &config.tls {
        tls.check("tls", &mut findings);
    }
    config.store.check("store", &mut findings);
    config.limits.check("limits", &mut findings);
    timeouts(config, &mut findings);
    config.log.check("log", &mut findings);
    let exposure = Exposure {
        unauthenticated: false,
        encrypted: config.tls.is_some(),
    };
    check_exposure(&config.listen, exposure, "listen", &mut findings);
    findings
}

fn authentication(config: &PlatformConfig, findings: &mut CheckFindings) {
    if config.users.is_empty() && config.issuers.is_empty() {
        let needs =
            "must name at least one user, or there must be `issuers`: every change has an author";
        findings.fault("users", needs);
    }
    check_users(&config.users, "", findings);
    let mut issuers = HashSet::new();
    for (nth, issuer) in config.issuers.iter().enumerate() {
        let path = format!("issuers[{nth}]");
        check_bearer(issuer, &path, findings);
        if !issuers.insert(&issuer.issuer) {
            let reason = "is in the list already; remove one of them";
            findings.fault(format!("{path}.issuer"), reason);
        }
    }
}

/// Names that are granted something: a misspelt one would grant nothing, and nobody would notice.
fn names(config: &PlatformConfig, findings: &mut CheckFindings) {
    let users: HashSet<&str> = config.users.iter().map(|it| it.name.as_str()).collect();
    let lists = [
        ("operators", &config.operators),
        ("abandon", &config.abandon),
        ("credentials", &config.credentials),
        ("impersonators", &config.impersonators),
    ];
    for (key, names) in lists {
        for (nth, name) in names.iter().enumerate() {
            // A colon cannot be in the name of a user: it is the id of somebody else.
            if !name.contains(':') && !users.contains(name.as_str()) {
                let reason = "is no user of this configuration; for others write their whole id, \
                              such as `token:https://issuer#subject`";
                findings.fault(format!("{key}[{nth}]"), reason);
            }
        }
    }
}

fn timeouts(config: &PlatformConfig, findings: &mut CheckFindings) {
    let timeouts = &config.timeouts;
    let waits = [
        ("headers", timeouts.headers),
        ("body", timeouts.body),
        ("handshake", timeouts.handshake),
        ("idle", timeouts.idle),
        ("write", timeouts.write),
    ];
    for (key, duration) in waits {
        if duration.0.is_zero() {
            findings.fault(format!("timeouts.{key}"), "must be longer than nothing");
        }
    }
    if timeouts.lease.0.as_secs() < 1 {
        findings.fault("timeouts.lease", "must be at least 1s");
    }
}
