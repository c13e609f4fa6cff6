//! Authentication: requests without valid credentials are refused at each of the ten endpoints.

use super::each_endpoint;
use crate::case::{Case, Level, Scope};
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use std::sync::Arc;
use sutler_client::wire::{Proof, Request};

const MISSING: Case = Case {
    name: "auth-missing",
    line: "B-010",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Every request without credentials is answered with 401.",
};

const WRONG: Case = Case {
    name: "auth-wrong",
    line: "B-010",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "Every request with wrong credentials is answered with 401, or with 429 once there were too many.",
};

const FIRST: Case = Case {
    name: "auth-first",
    line: "B-010",
    level: Level::May,
    scope: Scope::Broker,
    rule: "Credentials are looked at before the version: who has neither gets 401.",
};

const TLS: Case = Case {
    name: "tls",
    line: "B-011",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "The broker is reached by TLS.",
};

pub(crate) const CASES: &[&Case] = &[&MISSING, &WRONG, &FIRST, &TLS];

/// Sends requests with missing and wrong credentials.
pub(crate) async fn walk(run: &PlanRun) -> Result<(), StopReason> {
    match by_tls(run.client.connection.base()) {
        Some(judgement) => run.record_broker_alone(&TLS, judgement),
        None => run.skip_broker(&TLS, "the broker is on this machine"),
    }
    if !run.client.connection.is_authenticated() {
        for case in [&MISSING, &WRONG, &FIRST] {
            run.skip_broker(case, "the check was given no credentials");
        }
        return Ok(());
    }
    for (case, proof) in [(&MISSING, Proof::Missing), (&WRONG, Proof::Wrong)] {
        let answers = each_endpoint::ask(run, |it| it.proof(proof)).await?;
        all_outside(run, case, &answers);
    }
    // Without credentials, so that the broker need not count it as an attempt to guess.
    let wrong_in_both = |request: Request| {
        request
            .proof(Proof::Missing)
            .header("X-Broker-API-Version", "none")
    };
    let answers = each_endpoint::ask(run, wrong_in_both).await?;
    all_outside(run, &FIRST, &answers);
    Ok(())
}

/// Must be 401. After too many attempts, a request to wait is acceptable too.
fn all_outside(run: &PlanRun, case: &'static Case, answers: &[Arc<Exchange>]) {
    for answer in answers {
        if answer.is(&[429]) {
            run.skip_broker(case, "the broker answers 429 to everybody who tries");
        } else {
            run.record_broker(case, answer, answer.must_be(&[401]));
        }
    }
}

/// Whether the connection is encrypted; not required on one machine.
fn by_tls(base: &str) -> Option<Result<(), String>> {
    let Some(rest) = base.strip_prefix("http://") else {
        return Some(Ok(()));
    };
    let is_here = ["127.", "localhost", "[::1]"]
        .iter()
        .any(|it| rest.starts_with(it));
    (!is_here).then(|| Err("the broker's URL begins with http://".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::by_tls;

    #[test]
    fn only_remote_brokers_need_tls() {
        assert_eq!(by_tls("https://broker.example"), Some(Ok(())));
        assert!(matches!(by_tls("http://broker.example"), Some(Err(_))));
        for here in ["http://127.0.0.1:80", "http://localhost", "http://[::1]:8"] {
            assert_eq!(by_tls(here), None);
        }
    }
}
