//! What an operator writes about a broker, and the bounds of it. Pure.
//!
//! Whether address, credentials and certificates can be used is found by setting up the connection (`transport.rs`).

use super::command_error::BrokerCommandError;
use crate::broker_request::Profile;
use crate::catalog::{AccessRules, BrokerScope, CatalogRestrictions};
use crate::records::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerTls,
};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Bounds of what may be chosen, by who chooses.
struct LimitBounds {
    /// Most requests in flight to one broker from all replicas together.
    in_flight_max: u32,
    /// Time for one answer: more than a minute is unusual, and a hanging request occupies a place.
    answer_within: RangeInclusive<Duration>,
    /// Time between two reads of the catalog. Shorter, and many brokers would occupy the platform's own places.
    relist_every: RangeInclusive<Duration>,
}

/// Of brokers for all namespaces, which operators register.
const OF_ALL_NAMESPACES: LimitBounds = LimitBounds {
    in_flight_max: 10_000,
    answer_within: seconds(1)..=minutes(10),
    relist_every: minutes(1)..=days(7),
};
/// Of brokers of one namespace, which its owners register: they choose for others, too, who share the places.
const OF_NAMESPACE: LimitBounds = LimitBounds {
    in_flight_max: 100,
    answer_within: seconds(1)..=minutes(2),
    relist_every: minutes(10)..=days(7),
};
/// Time for all attempts of an intent.
const SEND_WITHIN: RangeInclusive<Duration> = minutes(1)..=days(30);
/// Time for polling.
const POLL_WITHIN: RangeInclusive<Duration> = minutes(1)..=days(30);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn minutes(count: u64) -> Duration {
    seconds(count * 60)
}

const fn days(count: u64) -> Duration {
    minutes(count * 24 * 60)
}

/// What an operator writes about a broker. `Debug` shows no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerDefinition {
    /// Address without `/v2`.
    pub url: String,
    /// How the platform authenticates.
    pub authentication: BrokerAuthentication,
    /// TLS settings.
    pub tls: BrokerTls,
    /// Shape of contexts and identities.
    pub profile: Profile,
    /// What of its catalog is offered at all.
    pub restrictions: CatalogRestrictions,
    /// Who sees which plan.
    pub access: AccessRules,
    /// Limits of requests.
    pub limits: BrokerLimits,
    /// How the platform deals with what differs between brokers.
    pub options: BrokerOptions,
}

impl BrokerDefinition {
    /// A broker at this address, everything else by default.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            authentication: BrokerAuthentication::None,
            tls: BrokerTls::default(),
            profile: Profile::Sutler,
            restrictions: CatalogRestrictions::default(),
            access: AccessRules::default(),
            limits: BrokerLimits::default(),
            options: BrokerOptions::default(),
        }
    }

    /// What is written about a registered broker.
    pub fn of(registration: &BrokerRegistration) -> Self {
        let it = registration.clone();
        Self {
            url: it.url,
            authentication: it.authentication,
            tls: it.tls,
            profile: it.profile,
            restrictions: it.restrictions,
            access: it.access,
            limits: it.limits,
            options: it.options,
        }
    }

    /// Replaces what is written about a registered broker.
    pub(super) fn write_to(self, registration: &mut BrokerRegistration) {
        registration.url = self.url;
        registration.authentication = self.authentication;
        registration.tls = self.tls;
        registration.profile = self.profile;
        registration.restrictions = self.restrictions;
        registration.access = self.access;
        registration.limits = self.limits;
        registration.options = self.options;
    }

    /// Checks the bounds.
    pub(super) fn check(&self, scope: &BrokerScope) -> Result<(), BrokerCommandError> {
        let limits = &self.limits;
        let LimitBounds {
            in_flight_max,
            answer_within,
            relist_every,
        } = match scope {
            BrokerScope::AllNamespaces => OF_ALL_NAMESPACES,
            BrokerScope::Namespace(_) => OF_NAMESPACE,
        };
        if limits.max_in_flight.get() > in_flight_max {
            let sentence = format!("must be at most {in_flight_max}");
            return Err(invalid("/limits/maxInFlight", sentence));
        }
        for (pointer, time, bounds) in [
            ("/limits/answerWithin", limits.answer_within, answer_within),
            ("/limits/sendWithin", limits.send_within, SEND_WITHIN),
            ("/limits/pollWithin", limits.poll_within, POLL_WITHIN),
            ("/limits/relistEvery", limits.relist_every, relist_every),
        ] {
            if !bounds.contains(&time) {
                let (from, to) = (bounds.start().as_secs(), bounds.end().as_secs());
                let sentence = format!("must be between {from} and {to} seconds");
                return Err(invalid(pointer, sentence));
            }
        }
        Ok(())
    }
}

pub(super) fn invalid(pointer: &'static str, sentence: String) -> BrokerCommandError {
    BrokerCommandError::Invalid { pointer, sentence }
}

/// Whether two registrations lead to the same broker in the same way: what was learned of the one holds for the other.
pub(super) fn is_same_connection(one: &BrokerRegistration, other: &BrokerRegistration) -> bool {
    one.url == other.url && one.authentication == other.authentication && one.tls == other.tls
}

#[cfg(test)]
mod tests {
    use super::{BrokerDefinition, is_same_connection};
    use crate::catalog::BrokerScope;
    use crate::records::{BrokerAuthentication, BrokerRegistration};
    use std::num::NonZeroU32;
    use std::time::Duration;

    fn pointer(change: impl FnOnce(&mut BrokerDefinition)) -> String {
        pointer_in(&BrokerScope::AllNamespaces, change)
    }

    fn pointer_in(scope: &BrokerScope, change: impl FnOnce(&mut BrokerDefinition)) -> String {
        let mut definition = BrokerDefinition::at("https://broker.example");
        change(&mut definition);
        match definition.check(scope) {
            Ok(()) => "fits".to_owned(),
            Err(super::BrokerCommandError::Invalid { pointer, .. }) => pointer.to_owned(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(pointer(|_| {}), "fits");
        let none = Duration::ZERO;
        assert_eq!(
            pointer(|it| it.limits.relist_every = none),
            "/limits/relistEvery"
        );
        assert_eq!(
            pointer(|it| it.limits.answer_within = none),
            "/limits/answerWithin"
        );
        assert_eq!(
            pointer(|it| it.limits.send_within = Duration::MAX),
            "/limits/sendWithin"
        );
        assert_eq!(
            pointer(|it| it.limits.poll_within = Duration::MAX),
            "/limits/pollWithin"
        );
        assert_eq!(
            pointer(|it| it.limits.max_in_flight = NonZeroU32::MAX),
            "/limits/maxInFlight"
        );
    }

    #[test]
    fn owners_of_a_namespace_choose_less_than_operators() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let in_flight = |count| NonZeroU32::new(count).expect("not zero");
        let of_namespace = BrokerScope::Namespace("app".to_owned());
        for (scope, expected) in [
            (BrokerScope::AllNamespaces, ["fits"; 3]),
            (
                of_namespace.clone(),
                [
                    "/limits/maxInFlight",
                    "/limits/answerWithin",
                    "/limits/relistEvery",
                ],
            ),
        ] {
            let found = [
                pointer_in(&scope, |it| it.limits.max_in_flight = in_flight(101)),
                pointer_in(&scope, |it| it.limits.answer_within = minutes(3)),
                pointer_in(&scope, |it| it.limits.relist_every = minutes(9)),
            ];
            assert_eq!(found, expected);
        }
        assert_eq!(pointer_in(&of_namespace, |_| {}), "fits");
    }

    fn registration(definition: BrokerDefinition) -> BrokerRegistration {
        let registration = serde_json::json!({
            "uid": uuid::Uuid::nil(), "name": "b", "scope": "allNamespaces", "url": "", "authentication": "none",
            "tls": {"insecure_skip_verify": false}, "profile": "sutler", "restrictions": {}, "access": {},
            "limits": definition.limits, "options": definition.options, "revision": 1,
            "created": "2026-01-01T00:00:00Z",
            "created_by": {"username": "", "uid": "", "groups": [], "extra": {}},
        });
        let mut registration: BrokerRegistration =
            serde_json::from_value(registration).expect("a registration");
        definition.write_to(&mut registration);
        registration
    }

    #[test]
    fn limits_and_rules_are_no_other_connection_but_credentials_and_addresses_are() {
        let at = || BrokerDefinition::at("https://broker.example");
        let before = registration(at());
        assert_eq!(BrokerDefinition::of(&before), at());
        let mut patient = at();
        patient.limits.answer_within = Duration::from_secs(9);
        assert!(is_same_connection(&before, &registration(patient)));
        let mut moved = at();
        moved.url.push_str("/2");
        assert!(!is_same_connection(&before, &registration(moved)));
        let mut rotated = at();
        rotated.authentication = BrokerAuthentication::Bearer {
            token: "t".to_owned(),
        };
        assert!(!is_same_connection(&before, &registration(rotated)));
        let mut trusting = at();
        trusting.tls.insecure_skip_verify = true;
        assert!(!is_same_connection(&before, &registration(trusting)));
    }
}
