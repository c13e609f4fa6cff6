//! All scenarios: each verb with a broker that does it at once, in the background, or not.

use super::scenario::{IntentStates, Order, Scenario, Step};
use crate::recording_broker::{Reply, RequestKind, Rule, RuleScope};
use serde_json::{Value, json};

const INSTANCES: &str = "/namespaces/app/instances";
pub(super) const DB: &str = "/namespaces/app/instances/db";
const BINDINGS: &str = "/namespaces/app/bindings";
const KEY: &str = "/namespaces/app/bindings/key";
const BROKER: &str = "/brokers/recording";

/// In the background, ended by the third poll.
const LATER: Reply = Reply::Accepted {
    polls: 2,
    succeeds: true,
};
/// In the background, and it does not end by itself.
const ENDLESS: Reply = Reply::Accepted {
    polls: 1_000,
    succeeds: true,
};
const FAILS_LATER: Reply = Reply::Accepted {
    polls: 1,
    succeeds: false,
};

/// States of an intent that a delete is sent over, or comes too late for.
const STARTED: &[&str] = &["polling", "succeeded", "cancelled", "failed"];

/// The catalog of the recording broker.
pub(crate) fn catalog() -> Value {
    catalog_of(&["small", "large"])
}

fn catalog_of(plans: &[&str]) -> Value {
    let plan =
        |name: &&str| json!({"id": format!("plan-{name}"), "name": name, "description": "a plan"});
    let plans: Vec<Value> = plans.iter().map(plan).collect();
    json!({"services": [{
        "id": "databases", "name": "postgresql", "description": "databases", "bindable": true,
        "plan_updateable": true, "instances_retrievable": true, "bindings_retrievable": true,
        "plans": plans,
    }]})
}

fn always(verb: RequestKind, reply: Reply) -> Rule {
    Rule::new(verb, RuleScope::Always, reply)
}

fn first_operation(verb: RequestKind, reply: Reply) -> Rule {
    Rule::new(verb, RuleScope::Operations(1), reply)
}

fn first_requests(verb: RequestKind, count: u32, reply: Reply) -> Rule {
    Rule::new(verb, RuleScope::Requests(count), reply)
}

fn create() -> Order {
    let body =
        json!({"name": "db", "class": "postgresql", "plan": "small", "parameters": {"disk": 10}});
    Order::by("carla", "POST", INSTANCES).body(body).keyed()
}

fn update() -> Order {
    let body = json!({"plan": "large", "parameters": {"disk": 20}});
    Order::by("anna", "PATCH", DB).body(body).keyed()
}

fn delete() -> Order {
    Order::by("dora", "DELETE", DB)
}

fn bind() -> Order {
    let body = json!({"name": "key", "instance": "db"});
    Order::by("bert", "POST", BINDINGS).body(body).keyed()
}

fn rotate() -> Order {
    let path = "/namespaces/app/bindings/key:rotate";
    Order::by("rita", "POST", path).body(json!({})).keyed()
}

fn until(path: &'static str, verb: &'static str, states: &'static [&'static str]) -> Step {
    let ended = IntentStates { path, verb, states };
    Step::Until(ended)
}

fn done(path: &'static str, verb: &'static str) -> Step {
    until(path, verb, &["succeeded"])
}

fn with_instance() -> Vec<Step> {
    vec![create().into(), done(DB, "provision")]
}

fn with_binding() -> Vec<Step> {
    let mut steps = with_instance();
    steps.extend([bind().into(), done(KEY, "bind")]);
    steps
}

fn scenario(name: &'static str, before: Vec<Step>, steps: Vec<Step>) -> Scenario {
    Scenario {
        name,
        before,
        rules: Vec::new(),
        steps,
        resends: 0,
        mitigates: false,
        registers: false,
    }
}

impl Scenario {
    fn rules(mut self, rules: Vec<Rule>) -> Self {
        self.rules = rules;
        self
    }

    fn resends(mut self, resends: u32) -> Self {
        self.resends = resends;
        self
    }

    fn mitigates(mut self) -> Self {
        self.mitigates = true;
        self
    }
}

/// Every scenario.
pub fn all_scenarios() -> Vec<Scenario> {
    let mut all = creates();
    all.extend(updates());
    all.extend(deletes());
    all.extend(deletes_over_others());
    all.extend(bindings());
    all.extend(leftovers());
    all.push(register());
    all.push(sync());
    all
}

fn creates() -> Vec<Scenario> {
    use RequestKind::Provision;
    let create_only = || vec![create().into()];
    // After an attempt without an answer, what may have been made is deleted.
    let rejected = || vec![create().ends(&["rejected", "failed"]).into()];
    let refusal = Reply::Refused(400, json!({"description": "not here"}));
    let failed_and_deleted = || {
        vec![
            create().ends(&["failed"]).into(),
            until(DB, "provision", &["failed"]),
            delete().into(),
        ]
    };
    vec![
        scenario("provision", vec![], create_only()),
        scenario("provision-async", vec![], create_only()).rules(vec![always(Provision, LATER)]),
        scenario("provision-answer-lost", vec![], create_only())
            .rules(vec![first_requests(Provision, 1, Reply::DoneAndClosed)])
            .resends(1),
        scenario("provision-rejected", vec![], rejected())
            .rules(vec![first_operation(Provision, refusal)]),
        scenario("provision-fails-later", vec![], failed_and_deleted())
            .rules(vec![first_operation(Provision, FAILS_LATER)]),
    ]
}

fn updates() -> Vec<Scenario> {
    use RequestKind::Update;
    let refusal = Reply::Refused(403, json!({"description": "only the owner"}));
    let update_only = || vec![update().into()];
    vec![
        scenario("update", with_instance(), update_only()),
        scenario("update-async", with_instance(), update_only()).rules(vec![always(Update, LATER)]),
        scenario(
            "update-rejected",
            with_instance(),
            vec![update().ends(&["rejected"]).into()],
        )
        .rules(vec![first_operation(Update, refusal)]),
        scenario(
            "update-fails-later",
            with_instance(),
            vec![update().ends(&["rejected", "failed"]).into()],
        )
        .rules(vec![first_operation(Update, FAILS_LATER)]),
        scenario("update-answer-lost", with_instance(), update_only())
            .rules(vec![first_requests(Update, 1, Reply::DoneAndClosed)])
            .resends(1),
    ]
}

fn deletes() -> Vec<Scenario> {
    use RequestKind::Deprovision;
    let refusal = Reply::Refused(403, json!({"description": "only the owner"}));
    let refused = || vec![delete().ends(&["rejected", "failed"]).into()];
    vec![
        scenario("delete", with_instance(), vec![delete().into()]),
        scenario("delete-async", with_instance(), vec![delete().into()])
            .rules(vec![always(Deprovision, LATER)]),
        scenario("delete-rejected", with_instance(), refused())
            .rules(vec![first_operation(Deprovision, refusal)]),
        scenario("delete-fails-later", with_instance(), refused())
            .rules(vec![first_operation(Deprovision, FAILS_LATER)]),
        scenario("delete-answer-lost", with_instance(), vec![delete().into()])
            .rules(vec![first_requests(Deprovision, 1, Reply::DoneAndClosed)])
            .resends(1),
    ]
}

fn deletes_over_others() -> Vec<Scenario> {
    use RequestKind::{Deprovision, Provision, Unbind, Update};
    let over = &["cancelled", "failed", "succeeded"];
    let busy = Reply::Refused(422, json!({"error": "ConcurrencyError"}));
    let over_create = || {
        vec![
            create().ends(over).into(),
            until(DB, "provision", STARTED),
            delete().into(),
        ]
    };
    let cascade = Order::by(
        "dora",
        "DELETE",
        "/namespaces/app/instances/db?cascade=true",
    );
    vec![
        scenario("delete-over-create", vec![], over_create())
            .rules(vec![always(Provision, ENDLESS)]),
        scenario("delete-over-create-busy", vec![], over_create())
            .rules(vec![
                always(
                    Provision,
                    Reply::Accepted {
                        polls: 4,
                        succeeds: true,
                    },
                ),
                first_requests(Deprovision, 2, busy),
            ])
            .resends(2),
        scenario(
            "delete-behind-create",
            vec![],
            vec![
                create().ends(over).into(),
                until(
                    DB,
                    "provision",
                    &["sending", "unknown", "cancelled", "failed"],
                ),
                delete().into(),
            ],
        )
        .rules(vec![first_requests(Provision, 1, Reply::DoneAndSilent)])
        .resends(1),
        scenario(
            "delete-over-update",
            with_instance(),
            vec![
                update().ends(over).into(),
                until(DB, "update", STARTED),
                delete().into(),
            ],
        )
        .rules(vec![always(Update, ENDLESS)]),
        scenario("cascade", with_binding(), vec![cascade.clone().into()]),
        scenario("cascade-async", with_binding(), vec![cascade.into()])
            .rules(vec![always(Unbind, LATER), always(Deprovision, LATER)]),
    ]
}

fn bindings() -> Vec<Scenario> {
    use RequestKind::{Bind, Unbind};
    let unbind = || vec![Order::by("dora", "DELETE", KEY).into()];
    vec![
        scenario("bind", with_instance(), vec![bind().into()]),
        scenario("bind-async", with_instance(), vec![bind().into()])
            .rules(vec![always(Bind, LATER)]),
        scenario("unbind", with_binding(), unbind()),
        scenario("unbind-async", with_binding(), unbind()).rules(vec![always(Unbind, LATER)]),
        scenario("rotate", with_binding(), vec![rotate().into()]),
        scenario("rotate-async", with_binding(), vec![rotate().into()])
            .rules(vec![always(Bind, LATER), always(Unbind, LATER)]),
    ]
}

/// What a create may have left is deleted from the ledger.
fn leftovers() -> Vec<Scenario> {
    use RequestKind::{Bind, Deprovision, Provision};
    let failed = || vec![create().ends(&["failed"]).into()];
    let error = || Reply::DoneAndAnswered(500, json!({"description": "out of order"}));
    let abandon = Order::by("olga", "POST", "/namespaces/app/instances/db:abandon")
        .body(json!({"reason": "the broker is gone"}))
        .ends(&[]);
    vec![
        scenario("mitigate-after-error", vec![], failed())
            .rules(vec![first_operation(Provision, error())])
            .mitigates(),
        scenario("mitigate-after-silence", vec![], failed())
            .rules(vec![first_operation(Provision, Reply::DoneAndClosed)])
            .resends(1)
            .mitigates(),
        scenario("mitigate-async", vec![], failed())
            .rules(vec![
                first_operation(Provision, error()),
                always(Deprovision, LATER),
            ])
            .mitigates(),
        scenario(
            "mitigate-bind",
            with_instance(),
            vec![bind().ends(&["failed"]).into()],
        )
        .rules(vec![first_operation(Bind, error())])
        .mitigates(),
        scenario("abandon", with_binding(), vec![abandon.into()]).mitigates(),
    ]
}

/// The broker is registered, and its first catalog read.
fn register() -> Scenario {
    Scenario {
        registers: true,
        ..scenario("register", vec![], vec![create().into()])
    }
}

/// The broker changes its catalog; a plan that is in use is not in it any more.
fn sync() -> Scenario {
    let sync = || {
        let order = Order::by("ada", "POST", "/brokers/recording:sync");
        order.body(json!({})).ends(&[])
    };
    scenario(
        "sync",
        with_instance(),
        vec![
            Step::Catalog(catalog_of(&["large", "huge"])),
            sync().into(),
            Order::by("ada", "PATCH", BROKER)
                .body(json!({"limits": {"maxInFlight": 9}}))
                .ends(&[])
                .into(),
            sync().into(),
        ],
    )
}
