//! Variables of the contract for each action. Pure.
//!
//! The names are Automation Broker's, so that its bundles run. User parameters of the same name are refused before
//! (D-54), and overwritten here as a second guard. Everything is copied: a run cannot change stored state through
//! its inputs. Two differences are intended: `_apb_plan_id` is the plan's name in every action (the old broker passed an unbind the id), and the id
//! has a name of its own.

use serde_json::{Map, Value, json};
use sutler_broker::ProposedRequest;
use sutler_bundle::Action;
use sutler_osb::{Context, OriginatingIdentity};
use sutler_runner::Vars;

/// Prefix of keys of an instance's state.
pub const STATE_PREFIX: &str = "state_";
/// Prefix of keys of a binding's state.
pub const BINDING_STATE_PREFIX: &str = "binding_state_";
/// Variable with the name of the requesting user.
pub(super) const USER_VARIABLE: &str = "_apb_last_requesting_user";

/// Possible inputs of an action. They contain secrets, so `Debug` prints nothing.
#[derive(Clone, Default)]
pub struct ActionInputs<'a> {
    /// Name of the plan in the manifest.
    pub plan_name: &'a str,
    /// Id of the plan in the catalog.
    pub plan_id: &'a str,
    /// The offering's id.
    pub service_id: &'a str,
    /// The instance.
    pub instance_id: &'a str,
    /// The binding, for bind and unbind.
    pub binding_id: Option<&'a str>,
    /// The binding that a new one replaces.
    pub predecessor: Option<&'a str>,
    /// The bundle's own version.
    pub bundle_version: Option<&'a str>,
    /// The originating identity.
    pub identity: Option<&'a OriginatingIdentity>,
    /// Context of the platform.
    pub context: Option<&'a Context>,
    /// The instance's parameters, with those of an update merged in.
    pub parameters: Option<&'a Map<String, Value>>,
    /// The binding's parameters.
    pub bind_parameters: Option<&'a Map<String, Value>>,
    /// The version before an upgrade; empty if it had none.
    pub previous_version: Option<&'a str>,
    /// Names of additional secret parameters, which this version does not mark as secret.
    pub also_secret: &'a [String],
    /// The instance's parameters and plan before an update.
    pub previous: Option<(&'a Map<String, Value>, &'a str)>,
    /// Credentials of the provision.
    pub provision_credentials: Option<&'a Map<String, Value>>,
    /// Credentials of the bind.
    pub bind_credentials: Option<&'a Map<String, Value>>,
    /// The instance's state; `None` before it is set.
    pub state: Option<&'a Map<String, Value>>,
    /// The binding's state.
    pub binding_state: Option<&'a Map<String, Value>>,
    /// Secrets of the operator, as variables.
    pub secrets: Map<String, Value>,
}

/// The variables of an action.
#[must_use]
pub fn vars(action: Action, inputs: &ActionInputs<'_>) -> Vars {
    let mut vars = users(action, inputs);
    vars.extend(inputs.secrets.clone());
    for (prefix, state) in [
        (STATE_PREFIX, inputs.state),
        (BINDING_STATE_PREFIX, inputs.binding_state),
    ] {
        let keys = state.into_iter().flatten();
        vars.extend(keys.map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
    }
    vars.extend(ours(action, inputs));
    Vars(vars)
}

/// The user's own parameters.
fn users(action: Action, inputs: &ActionInputs<'_>) -> Map<String, Value> {
    let own = match action {
        Action::Provision | Action::Update | Action::Deprovision => inputs.parameters,
        Action::Bind | Action::Unbind => inputs.bind_parameters,
    };
    let mut vars = own.cloned().unwrap_or_default();
    if action == Action::Unbind {
        let of_instance = inputs.parameters.cloned().unwrap_or_default();
        vars.insert("provision_params".to_owned(), Value::Object(of_instance));
    }
    vars
}

/// Variables added by the broker.
fn ours(action: Action, inputs: &ActionInputs<'_>) -> Map<String, Value> {
    let mut vars = Map::new();
    let mut tell = |name: &str, value: Value| vars.insert(name.to_owned(), value);
    tell("_apb_plan_id", json!(inputs.plan_name));
    tell("_apb_plan_uuid", json!(inputs.plan_id));
    tell("_apb_service_class_id", json!(inputs.service_id));
    tell("_apb_service_instance_id", json!(inputs.instance_id));
    tell(USER_VARIABLE, json!(user(inputs.identity)));
    if let Some(version) = inputs.bundle_version {
        tell("_apb_bundle_version", json!(version));
    }
    if let Some(binding) = inputs.binding_id {
        tell("_apb_service_binding_id", json!(binding));
    }
    if let Some(predecessor) = inputs.predecessor {
        tell("_apb_predecessor_binding_id", json!(predecessor));
    }
    if let (Action::Update, Some((parameters, plan))) = (action, inputs.previous) {
        tell("_apb_previous_parameters", json!(parameters));
        tell("_apb_previous_plan_id", json!(plan));
    }
    if let (Action::Update, Some(version)) = (action, inputs.previous_version) {
        tell("_apb_previous_bundle_version", json!(version));
    }
    match (action, inputs.provision_credentials) {
        (Action::Provision | Action::Update, _) => {}
        (Action::Bind | Action::Unbind, None) => {}
        (Action::Deprovision, result) => {
            tell(
                "_apb_provision_creds",
                json!(result.cloned().unwrap_or_default()),
            );
        }
        (Action::Bind | Action::Unbind, Some(result)) => {
            tell("_apb_provision_creds", json!(result));
        }
    }
    if let (Action::Unbind, Some(result)) = (action, inputs.bind_credentials) {
        tell("_apb_bind_creds", json!(result));
    }
    for (name, value) in places(inputs.context) {
        tell(name, json!(value));
    }
    vars
}

/// Texts of a request that become variables, besides its parameters; each with words for it.
pub(super) fn request_texts<'a>(request: &ProposedRequest<'a>) -> Vec<(&'static str, &'a str)> {
    let mut texts = vec![
        ("instance id", request.instance_id.as_str()),
        ("name of the user", user(request.identity)),
    ];
    texts.extend(request.binding_id.map(|id| ("binding id", id.as_str())));
    let of_context = places(request.context).into_iter();
    texts.extend(of_context.map(|(name, text)| match name {
        "namespace" => ("namespace of the context", text),
        _ => ("platform of the context", text),
    }));
    texts
}

/// The requesting user, as named by the platform; empty if it names none.
fn user(identity: Option<&OriginatingIdentity>) -> &str {
    let named = |name: &&str| identity?.value.get(*name)?.as_str();
    ["username", "user_name", "uid", "user_id"]
        .iter()
        .find_map(named)
        .unwrap_or_default()
}

/// Namespace and kind of cluster, as far as the platform sends them.
fn places(context: Option<&Context>) -> Vec<(&'static str, &str)> {
    let text = |field: &str| context?.0.get(field)?.as_str();
    let namespace = text("namespace").map(|value| ("namespace", value));
    let cluster = text("platform").map(|value| ("cluster", value));
    namespace.into_iter().chain(cluster).collect()
}

#[cfg(test)]
mod tests {
    use super::{ActionInputs, vars};
    use serde_json::{Map, Value, json};
    use sutler_bundle::Action;
    use sutler_osb::{Context, OriginatingIdentity};

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).expect("an object")
    }

    /// All inputs, so that the table shows which of them each action gets.
    fn all_inputs(action: Action) -> Map<String, Value> {
        let identity = OriginatingIdentity {
            platform: "kubernetes".to_owned(),
            value: map(json!({ "username": "duke", "uid": "u-1" })),
        };
        let context = Context(map(
            json!({ "platform": "kubernetes", "namespace": "blue" }),
        ));
        let parameters = map(json!({ "size": 2, "_apb_plan_id": "forged", "namespace": "forged" }));
        let bind_parameters = map(json!({ "role": "reader" }));
        let previous = map(json!({ "size": 1 }));
        let admin = map(json!({ "root": "toor" }));
        let result = map(json!({ "user": "b" }));
        let state = map(json!({ "db": "d1" }));
        let binding_state = map(json!({ "login": "l1" }));
        let inputs = ActionInputs {
            plan_name: "dev",
            plan_id: "p-1",
            service_id: "s-1",
            instance_id: "i-1",
            binding_id: matches!(action, Action::Bind | Action::Unbind).then_some("b-1"),
            predecessor: None,
            bundle_version: Some("1.2.3"),
            previous_version: Some("1.0.0"),
            also_secret: &[],
            identity: Some(&identity),
            context: Some(&context),
            parameters: Some(&parameters),
            bind_parameters: Some(&bind_parameters),
            previous: Some((&previous, "small")),
            provision_credentials: Some(&admin),
            bind_credentials: Some(&result),
            state: (action != Action::Provision).then_some(&state),
            binding_state: (action == Action::Unbind).then_some(&binding_state),
            secrets: map(json!({ "vault": "hush" })),
        };
        vars(action, &inputs).0
    }

    #[test]
    fn each_action_gets_the_variables_of_the_contract() {
        let everybody = json!({
            "_apb_plan_id": "dev", "_apb_plan_uuid": "p-1", "_apb_service_class_id": "s-1",
            "_apb_service_instance_id": "i-1", "_apb_last_requesting_user": "duke",
            "_apb_bundle_version": "1.2.3",
            "namespace": "blue", "cluster": "kubernetes", "vault": "hush",
        });
        let provision_params =
            json!({ "size": 2, "_apb_plan_id": "forged", "namespace": "forged" });
        let table = [
            (Action::Provision, json!({ "size": 2 })),
            (
                Action::Update,
                json!({ "size": 2, "state_db": "d1", "_apb_previous_parameters": { "size": 1 },
                    "_apb_previous_plan_id": "small", "_apb_previous_bundle_version": "1.0.0" }),
            ),
            (
                Action::Deprovision,
                json!({ "size": 2, "state_db": "d1", "_apb_provision_creds": { "root": "toor" } }),
            ),
            (
                Action::Bind,
                json!({ "role": "reader", "state_db": "d1", "_apb_service_binding_id": "b-1",
                    "_apb_provision_creds": { "root": "toor" } }),
            ),
            (
                Action::Unbind,
                json!({ "role": "reader", "provision_params": provision_params, "state_db": "d1",
                    "binding_state_login": "l1", "_apb_service_binding_id": "b-1",
                    "_apb_provision_creds": { "root": "toor" }, "_apb_bind_creds": { "user": "b" } }),
            ),
        ];
        for (action, own) in table {
            let mut expected = map(everybody.clone());
            expected.extend(map(own));
            assert_eq!(all_inputs(action), expected, "{action}");
        }
    }

    #[test]
    fn unknown_variables_are_absent_or_empty_according_to_the_contract() {
        let inputs = ActionInputs::default();
        let deprovision = vars(Action::Deprovision, &inputs).0;
        assert_eq!(deprovision["_apb_provision_creds"], json!({}));
        assert_eq!(deprovision["_apb_last_requesting_user"], json!(""));
        assert!(!deprovision.contains_key("namespace"));
        let bind = vars(Action::Bind, &inputs).0;
        assert!(!bind.contains_key("_apb_provision_creds"));
        assert!(!bind.contains_key("_apb_service_binding_id"));
        assert_eq!(
            vars(Action::Unbind, &inputs).0["provision_params"],
            json!({})
        );
    }

    #[test]
    fn a_user_without_a_name_is_identified_by_id() {
        for (value, expected) in [
            (json!({ "uid": "u-1" }), "u-1"),
            (json!({ "user_id": "683ea748" }), "683ea748"),
            (json!({ "username": "duke", "user_id": "x" }), "duke"),
            (json!({ "groups": ["a"] }), ""),
        ] {
            let identity = OriginatingIdentity {
                platform: "some".to_owned(),
                value: map(value),
            };
            let inputs = ActionInputs {
                identity: Some(&identity),
                ..ActionInputs::default()
            };
            let variables = vars(Action::Provision, &inputs).0;
            assert_eq!(variables["_apb_last_requesting_user"], json!(expected));
        }
    }
}
