//! Round trips of every body: reading the written form returns the same value.

use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::test_runner::TestCaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt::Debug;
use sutler_osb::{
    AsyncBindResponse, BindBody, BindResource, BindResponse, Credentials, DeleteResponse,
    ErrorBody, ErrorCode, FetchBindingResponse, FetchInstanceResponse, InstanceMetadata,
    LastOperationResponse, MaintenanceInfo, NonEmptyText, OperationState, OperationToken,
    Parameters, PreviousValues, ProvisionBody, ProvisionResponse, UpdateBody, UpdateResponse,
    from_json,
};

/// Writes the body and reads it again.
fn survives<T>(body: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let wire = serde_json::to_vec(body).expect("it can be written");
    let read = from_json::<T>(&wire);
    prop_assert_eq!(read.as_ref(), Ok(body));
    Ok(())
}

/// Any valid id: not empty, no NUL, not too long.
fn texts() -> impl Strategy<Value = String> {
    "[^\0]{1,60}"
}

fn ids<T: TryFrom<String, Error: Debug> + Debug>() -> impl Strategy<Value = T> {
    texts().prop_map(|text| T::try_from(text).expect("an id"))
}

fn words() -> impl Strategy<Value = NonEmptyText> {
    texts().prop_map(|text| text.try_into().expect("not empty"))
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        ".{0,8}".prop_map(|text| json!({ "inner": [text, {}] })),
    ]
}

fn objects() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map(".{0,10}", values(), 0..4)
        .prop_map(|entries| entries.into_iter().collect())
}

fn maintenance() -> impl Strategy<Value = MaintenanceInfo> {
    (0_u8..20, 0_u8..20).prop_map(|(major, minor)| {
        let info = json!({ "version": format!("{major}.{minor}.0"), "description": "d" });
        serde_json::from_value(info).expect("a version")
    })
}

fn metadata() -> impl Strategy<Value = InstanceMetadata> {
    (option::of(objects()), option::of(objects()))
        .prop_map(|(labels, attributes)| InstanceMetadata { labels, attributes })
}

proptest! {
    /// Holds: B-120, B-160.
    #[test]
    fn instance_requests_survive_a_round_trip(
        (service_id, plan_id, organization_guid, space_guid) in (ids(), ids(), words(), words()),
        context in option::of(objects()),
        parameters in option::of(objects()),
        maintenance_info in option::of(maintenance()),
        previous in option::of(ids()),
    ) {
        let context = context.map(Into::into);
        let parameters = parameters.map(Parameters);
        let update = UpdateBody {
            service_id,
            plan_id: Some(plan_id),
            context,
            parameters,
            previous_values: Some(PreviousValues { plan_id: previous, ..Default::default() }),
            maintenance_info,
        };
        survives(&update)?;
        survives(&ProvisionBody {
            service_id: update.service_id,
            plan_id: update.plan_id.expect("a plan"),
            organization_guid,
            space_guid,
            context: update.context,
            parameters: update.parameters,
            maintenance_info: update.maintenance_info,
        })?;
    }

    /// Holds: B-181, B-201.
    #[test]
    fn binding_requests_survive_a_round_trip(
        (service_id, plan_id) in (option::of(ids()), option::of(ids())),
        predecessor_binding_id in option::of(ids()),
        (app_guid, space_guid) in (option::of(words()), option::of(words())),
        (app, route) in (option::of(".{0,9}"), option::of(".{0,9}")),
        parameters in option::of(objects()),
        app_annotations in option::of(objects()),
    ) {
        survives(&BindBody {
            service_id,
            plan_id,
            app_guid,
            bind_resource: Some(BindResource {
                app_guid: app,
                route,
                space_guid,
                app_annotations,
                credential_client_id: None,
            }),
            parameters: parameters.map(Parameters),
            predecessor_binding_id,
            context: None,
        })?;
    }

    /// Holds: B-130, B-151, B-171, B-242.
    #[test]
    fn instance_responses_survive_a_round_trip(
        dashboard_url in option::of(".{0,20}"),
        operation in option::of(ids::<OperationToken>()),
        metadata in option::of(metadata()),
        (service_id, plan_id) in (option::of(ids()), option::of(ids())),
        parameters in option::of(objects()),
        maintenance_info in option::of(maintenance()),
    ) {
        survives(&DeleteResponse { operation: operation.clone() })?;
        survives(&AsyncBindResponse { operation: operation.clone() })?;
        survives(&UpdateResponse {
            dashboard_url: dashboard_url.clone(),
            operation: operation.clone(),
            metadata: metadata.clone(),
        })?;
        survives(&FetchInstanceResponse {
            service_id,
            plan_id,
            dashboard_url: dashboard_url.clone(),
            parameters: parameters.map(Parameters),
            maintenance_info,
            metadata: metadata.clone(),
        })?;
        survives(&ProvisionResponse { dashboard_url, operation, metadata })?;
    }

    /// Holds: B-189, B-231.
    #[test]
    fn binding_responses_survive_a_round_trip(
        credentials in option::of(objects()),
        (syslog_drain_url, route_service_url) in (option::of(".{0,9}"), option::of(".{0,9}")),
        parameters in option::of(objects()),
    ) {
        let bind = BindResponse {
            credentials: credentials.map(Credentials),
            syslog_drain_url,
            route_service_url,
            ..Default::default()
        };
        survives(&bind)?;
        survives(&FetchBindingResponse::of_bind(bind, parameters.map(Parameters)))?;
    }

    /// Holds: B-031, B-100, B-102.
    #[test]
    fn failures_survive_a_round_trip(
        description in option::of(texts()),
        error in option::of(texts()),
        (instance_usable, update_repeatable) in any::<(Option<bool>, Option<bool>)>(),
    ) {
        survives(&ErrorBody {
            error: error.map(ErrorCode::from),
            description: description.clone(),
            instance_usable,
            update_repeatable,
        })?;
        survives(&LastOperationResponse {
            state: OperationState::Failed,
            description,
            instance_usable,
            update_repeatable,
        })?;
    }
}

/// A repeated PUT is compared with the stored parameters, so a decimal must be the same after it was written and read.
#[test]
fn decimals_are_equal_after_storage() {
    let mut inexact = Vec::new();
    let mut number = 0.1_f64;
    for _ in 0..10_000 {
        number = (number * 1.618_033_988_749_895 + 0.577_215_664_901_532_9) % 1000.0;
        let sent: Parameters = serde_json::from_str(&format!(r#"{{"size":{number}}}"#)).unwrap();
        let stored = serde_json::to_string(&sent).unwrap();
        let read: Parameters = serde_json::from_str(&stored).unwrap();
        if sent != read || sent.0["size"] != number {
            inexact.push(number);
        }
    }
    assert_eq!(inexact, [] as [f64; 0]);
}
