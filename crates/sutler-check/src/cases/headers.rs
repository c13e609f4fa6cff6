//! Cases about the API version header and the originating identity, present and absent.

use super::each_endpoint;
use crate::case::{Case, Level, Scope};
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::options::Profile;
use crate::plan_run::PlanRun;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sutler_client::wire::{Method, Request};

const VERSION: &str = "X-Broker-API-Version";
const IDENTITY: &str = "X-Broker-API-Originating-Identity";

const VERSION_MISSING: Case = Case {
    name: "version-missing",
    line: "B-001",
    level: Level::May,
    scope: Scope::Broker,
    rule: "A request without a version is refused.",
};

const VERSION_MISSING_STATUS: Case = Case {
    name: "version-missing-status",
    line: "B-001",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A request that is refused for want of a version gets 400; the suites for 2.13 want 412, and want it always.",
};

const VERSION_UNKNOWN: Case = Case {
    name: "version-unknown",
    line: "B-002",
    level: Level::May,
    scope: Scope::Broker,
    rule: "A request in another major version is refused.",
};

const VERSION_UNKNOWN_STATUS: Case = Case {
    name: "version-unknown-status",
    line: "B-002",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A request that is refused for its version gets 412, or 400 if that is no version at all.",
};

const VERSION_NEWER: Case = Case {
    name: "version-newer",
    line: "B-003",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "A newer minor version is served: versions only add.",
};

const IDENTITY_ABSENT: Case = Case {
    name: "identity-absent",
    line: "B-005",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A request without an originating identity is served.",
};

const IDENTITY_PRESENT: Case = Case {
    name: "identity-present",
    line: "B-005",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "A request with an originating identity is served, whichever platform it comes from.",
};

pub(crate) const CASES: &[&Case] = &[
    &VERSION_MISSING,
    &VERSION_MISSING_STATUS,
    &VERSION_UNKNOWN,
    &VERSION_UNKNOWN_STATUS,
    &VERSION_NEWER,
    &IDENTITY_ABSENT,
    &IDENTITY_PRESENT,
];

/// Sends headers other than those of current platforms.
pub(crate) async fn walk(run: &PlanRun) -> Result<(), StopReason> {
    without_version(run).await?;
    other_versions(run).await?;
    let catalog = || Request::new(Method::Get, &["v2", "catalog"]);
    let bare = run.client.ask(catalog()).await?;
    run.record_broker(&IDENTITY_ABSENT, &bare, bare.must_be(&[200]));
    for (platform, user) in identities() {
        let value = format!("{platform} {}", BASE64_STANDARD.encode(user.to_string()));
        let answer = run.client.ask(catalog().header(IDENTITY, &value)).await?;
        run.record_broker(&IDENTITY_PRESENT, &answer, answer.must_be(&[200]));
    }
    Ok(())
}

async fn without_version(run: &PlanRun) -> Result<(), StopReason> {
    let profile = run.client.options.profile;
    let answers = each_endpoint::ask(run, |it| it.without_header(VERSION)).await?;
    for answer in answers.iter().filter(|it| !each_endpoint::is_provision(it)) {
        run.record_broker(&VERSION_MISSING, answer, is_refused(answer));
        match missing_status(profile, answer) {
            Some(judgement) => run.record_broker(&VERSION_MISSING_STATUS, answer, judgement),
            None => run.skip_broker(&VERSION_MISSING_STATUS, "the request was served"),
        }
    }
    Ok(())
}

/// 404 and 410 are correct for an absent resource, and do not refuse the missing version.
fn is_refused(answer: &Exchange) -> Result<(), String> {
    match answer.status() {
        Some(400 | 412) => Ok(()),
        _ => Err(format!("expected to be refused, got {}", answer.got())),
    }
}

fn missing_status(profile: Profile, answer: &Exchange) -> Option<Result<(), String>> {
    match (profile, is_refused(answer)) {
        (Profile::Compat2_13, _) => Some(answer.must_be(&[412])),
        (Profile::V2_17, Ok(())) => Some(answer.must_be(&[400])),
        (Profile::V2_17, Err(_)) => None,
    }
}

async fn other_versions(run: &PlanRun) -> Result<(), StopReason> {
    let catalog = Request::new(Method::Get, &["v2", "catalog"]);
    for version in ["1.0", "99.0", "two"] {
        let answer = run
            .client
            .ask(catalog.clone().header(VERSION, version))
            .await?;
        run.record_broker(&VERSION_UNKNOWN, &answer, is_refused(&answer));
        if is_refused(&answer).is_err() {
            run.skip_broker(&VERSION_UNKNOWN_STATUS, "the request was served");
            continue;
        }
        let expected: &[u16] = match version {
            "two" => &[412, 400],
            _ => &[412],
        };
        let judgement = answer.must_be(expected);
        run.record_broker(&VERSION_UNKNOWN_STATUS, &answer, judgement);
    }
    let newer = run.client.ask(catalog.header(VERSION, "2.99")).await?;
    run.record_broker(&VERSION_NEWER, &newer, newer.must_be(&[200]));
    Ok(())
}

/// Users of the known platforms, and of an unknown one.
fn identities() -> [(&'static str, Value); 3] {
    [
        (
            "cloudfoundry",
            json!({ "user_id": "683ea748-3092-4ff4-b656-39cacc4d5360" }),
        ),
        (
            "kubernetes",
            json!({
                "username": "sutler-check",
                "uid": "c2dde242-5ce4-11e7-988c-000c2946f14f",
                "groups": ["system:authenticated"],
                "extra": { "more": ["one", "two"] },
            }),
        ),
        ("sutler-check", json!({ "anything": [1, { "at": "all" }] })),
    ]
}
