//! Judges what a broker returned for a bind: whether it fits the offering, and can be kept.
//!
//! What is kept becomes part of the document of the binding, which is sealed as a whole.

use super::{BindingRun, BoundInstance};
use crate::executor::instance_run::plan_of;
use crate::lifecycle::binding::{BindingBody, BindingDetails, CredentialsAnswer};
use jiff::Timestamp;
use sutler_osb::{
    BindResponse, BindingMetadata, FetchBindingResponse, PinnedPlan, Requires, UtcTime,
};

/// What is wrong with an answer that is longer than what is kept.
const TOO_LONG: &str = "the broker returned more than 128 kB for the binding, which cannot be kept";

impl BindingRun<'_> {
    /// What the rules learn of an answer to a bind.
    pub(super) fn judged(&self, bound: &BoundInstance, answer: &BindResponse) -> BindingBody {
        let plan = plan_of(&bound.view, &bound.instance);
        if let Some(plan) = &plan
            && let Some(sentence) = contradiction(plan, answer)
        {
            return BindingBody::Unfit(sentence);
        }
        let Ok(credentials) = CredentialsAnswer::try_from(answer.clone()) else {
            return BindingBody::Unfit(TOO_LONG.to_owned());
        };
        let times = answer.metadata.as_ref();
        BindingBody::Fit(BindingDetails {
            credentials,
            expires_at: times.and_then(BindingMetadata::expires_at).and_then(moment),
            renew_before: times
                .and_then(BindingMetadata::renew_before)
                .and_then(moment),
        })
    }
}

/// What the answer has although the offering does not require it of the platform (P-103).
fn contradiction(plan: &PinnedPlan, answer: &BindResponse) -> Option<String> {
    let mounts = answer.volume_mounts.as_ref();
    let parts = [
        (
            answer.syslog_drain_url.is_some(),
            Requires::SyslogDrain,
            "a `syslog_drain_url`, but its offering does not require `syslog_drain`",
        ),
        (
            answer.route_service_url.is_some(),
            Requires::RouteForwarding,
            "a `route_service_url`, but its offering does not require `route_forwarding`",
        ),
        (
            mounts.is_some_and(|mounts| !mounts.is_empty()),
            Requires::VolumeMount,
            "`volume_mounts`, but its offering does not require `volume_mount`",
        ),
    ];
    let mut parts = parts.into_iter();
    let (.., words) =
        parts.find(|(is_there, permission, _)| *is_there && !plan.requires.contains(permission))?;
    Some(format!("the broker returned {words}"))
}

/// A fetched binding in the form of an answer to a bind.
pub(super) fn as_bind_answer(fetched: FetchBindingResponse) -> BindResponse {
    BindResponse {
        metadata: fetched.metadata,
        credentials: fetched.credentials,
        syslog_drain_url: fetched.syslog_drain_url,
        route_service_url: fetched.route_service_url,
        volume_mounts: fetched.volume_mounts,
        endpoints: fetched.endpoints,
    }
}

fn moment(time: &UtcTime) -> Option<Timestamp> {
    Timestamp::from_second(time.epoch_seconds()).ok()
}

#[cfg(test)]
mod tests {
    use super::{contradiction, moment};
    use serde_json::{Value, json};
    use sutler_osb::{BindResponse, PinnedPlan, UtcTime};

    fn plan(requires: Value) -> PinnedPlan {
        let plan = json!({
            "service_id": "s", "service_name": "s", "plan_id": "p", "plan_name": "p", "bindable": true,
            "plan_updateable": false, "binding_rotatable": false, "instances_retrievable": false,
            "bindings_retrievable": false, "allow_context_updates": false, "requires": requires,
        });
        serde_json::from_value(plan).expect("a plan")
    }

    /// Holds: P-103.
    #[test]
    fn an_answer_has_only_what_its_offering_requires() {
        let mount = json!({
            "driver": "d", "container_dir": "/c", "mode": "rw", "device_type": "shared",
            "device": {"volume_id": "v"},
        });
        for (answer, permission) in [
            (json!({"syslog_drain_url": "syslog://h"}), "syslog_drain"),
            (
                json!({"route_service_url": "https://h"}),
                "route_forwarding",
            ),
            (json!({"volume_mounts": [mount]}), "volume_mount"),
        ] {
            let answer: BindResponse = serde_json::from_value(answer).expect("an answer");
            assert_eq!(contradiction(&plan(json!([permission])), &answer), None);
            let sentence = contradiction(&plan(json!([])), &answer).expect("a contradiction");
            assert!(sentence.contains(permission), "{sentence}");
        }
        let none = BindResponse {
            volume_mounts: Some(Vec::new()),
            ..BindResponse::default()
        };
        assert_eq!(contradiction(&plan(json!([])), &none), None);
    }

    #[test]
    fn times_of_brokers_are_read() {
        let time = UtcTime::try_from("2030-01-31T23:59:59.0Z").expect("a time");
        let moment = moment(&time).map(|it| it.to_string());
        assert_eq!(moment.as_deref(), Some("2030-01-31T23:59:59Z"));
    }
}
