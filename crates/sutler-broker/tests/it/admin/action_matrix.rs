//! Every command to an instance and to a binding in every state: the answer, the state afterwards, and
//! the entry in the audit trail.
//!
//! The rules themselves are checked against `tests/transitions/*.txt`; these tests use HTTP and the
//! stores.

use super::{audit_of, command, get, on_each};
use crate::fixture::Fixture;
use serde_json::json;
use sutler_osb::OperationKind::{Bind, Deprovision, Provision, Unbind, Update};

/// state | command | status | lifecycle afterwards | outcome in the audit trail
const INSTANCE: &str = "
absent | retry | 404 | - | refused
absent | cancel | 404 | - | refused
absent | abandon | 404 | - | refused
absent | purge | 404 | - | refused
creating | retry | 200 | creating | done
creating | cancel | 200 | deleting | started
creating | abandon | 200 | create_failed | done
creating | purge | 200 | gone | done
creating again | retry | 200 | creating | done
creating again | cancel | 200 | deleting | started
creating again | abandon | 200 | create_failed | done
creating again | purge | 200 | gone | done
create-failed | retry | 200 | creating | started
create-failed | cancel | 409 | create_failed | refused
create-failed | abandon | 409 | create_failed | refused
create-failed | purge | 200 | gone | done
live | retry | 409 | live | refused
live | cancel | 409 | live | refused
live | abandon | 409 | live | refused
live | purge | 200 | gone | done
updating | retry | 200 | updating | done
updating | cancel | 200 | updating | done
updating | abandon | 200 | live | done
updating | purge | 200 | gone | done
updating (given up) | retry | 200 | updating | done
updating (given up) | cancel | 200 | updating | nothing_to_do
updating (given up) | abandon | 200 | live | done
updating (given up) | purge | 200 | gone | done
deleting | retry | 200 | deleting | done
deleting | cancel | 200 | deleting | done
deleting | abandon | 200 | live | done
deleting | purge | 200 | gone | done
deleting a failed create | retry | 200 | deleting | done
deleting a failed create | cancel | 200 | deleting | done
deleting a failed create | abandon | 200 | create_failed | done
deleting a failed create | purge | 200 | gone | done
deleting over a create | retry | 200 | deleting | done
deleting over a create | cancel | 200 | deleting | nothing_to_do
deleting over a create | abandon | 200 | deleting | done
deleting over a create | purge | 200 | gone | done
gone | retry | 404 | gone | refused
gone | cancel | 404 | gone | refused
gone | abandon | 404 | gone | refused
gone | purge | 200 | gone | nothing_to_do
";

const BINDING: &str = "
absent | retry | 404 | - | refused
absent | cancel | 404 | - | refused
absent | abandon | 404 | - | refused
absent | purge | 404 | - | refused
creating | retry | 200 | creating | done
creating | cancel | 200 | deleting | started
creating | abandon | 200 | create_failed | done
creating | purge | 200 | gone | done
create-failed | retry | 200 | creating | started
create-failed | cancel | 409 | create_failed | refused
create-failed | abandon | 409 | create_failed | refused
create-failed | purge | 200 | gone | done
live | retry | 409 | live | refused
live | cancel | 409 | live | refused
live | abandon | 409 | live | refused
live | purge | 200 | gone | done
deleting | retry | 200 | deleting | done
deleting | cancel | 200 | deleting | done
deleting | abandon | 200 | live | done
deleting | purge | 200 | gone | done
deleting a failed create | retry | 200 | deleting | done
deleting a failed create | cancel | 200 | deleting | done
deleting a failed create | abandon | 200 | create_failed | done
deleting a failed create | purge | 200 | gone | done
deleting over a create | retry | 200 | deleting | done
deleting over a create | cancel | 200 | deleting | nothing_to_do
deleting over a create | abandon | 200 | deleting | done
deleting over a create | purge | 200 | gone | done
gone | retry | 404 | gone | refused
gone | cancel | 404 | gone | refused
gone | abandon | 404 | gone | refused
gone | purge | 200 | gone | nothing_to_do
";

/// Brings an instance into a state in which it stays.
async fn bring_instance(kit: &Fixture, state: &str) {
    let (script, i) = (&kit.script, "i");
    let failed_create = async || {
        script.fails(Provision, "no room");
        kit.finish(i, kit.provision(i).accepts_incomplete()).await;
        script.succeeds(Provision);
    };
    let delete = async || {
        let gate = script.hold_uncancellable(Deprovision);
        kit.deprovision(i).accepts_incomplete().send().await.is(202);
        gate.reached().await;
    };
    let create = async || {
        let gate = script.hold_uncancellable(Provision);
        kit.provision(i).accepts_incomplete().send().await.is(202);
        gate.reached().await;
    };
    match state {
        "absent" => {}
        "creating" => create().await,
        "creating again" => {
            failed_create().await;
            create().await;
        }
        "create-failed" => failed_create().await,
        "live" => kit.has_instance(i).await,
        "updating" | "updating (given up)" => {
            kit.has_instance(i).await;
            let gate = script.hold_uncancellable(Update);
            let update = kit.update(i).parameters(json!({ "size": 2 }));
            update.accepts_incomplete().send().await.is(202);
            gate.reached().await;
            if state == "updating (given up)" {
                command(kit, "instances/i/cancel").send().await.is(200);
            }
        }
        "deleting" => {
            kit.has_instance(i).await;
            delete().await;
        }
        "deleting a failed create" => {
            failed_create().await;
            delete().await;
        }
        "deleting over a create" => {
            create().await;
            script.hold_uncancellable(Deprovision);
            kit.deprovision(i).accepts_incomplete().send().await.is(202);
        }
        "gone" => {
            kit.has_instance(i).await;
            kit.deprovision(i).send().await.is(200);
        }
        unknown => panic!("no instance is ever `{unknown}`"),
    }
}

/// The same for a binding of a live instance.
async fn bring_binding(kit: &Fixture, state: &str) {
    let (script, i, b) = (&kit.script, "i", "b");
    kit.has_instance(i).await;
    let failed_bind = async || {
        script.fails(Bind, "no room");
        kit.bind(i, b).send().await.is(500);
        script.succeeds(Bind);
    };
    let unbind = async || {
        let gate = script.hold_uncancellable(Unbind);
        kit.unbind(i, b).accepts_incomplete().send().await.is(202);
        gate.reached().await;
    };
    let bind = async || {
        let gate = script.hold_uncancellable(Bind);
        kit.bind(i, b).accepts_incomplete().send().await.is(202);
        gate.reached().await;
    };
    match state {
        "absent" => {}
        "creating" => bind().await,
        "create-failed" => failed_bind().await,
        "live" => kit.has_binding(i, b).await,
        "deleting" => {
            kit.has_binding(i, b).await;
            unbind().await;
        }
        "deleting a failed create" => {
            failed_bind().await;
            unbind().await;
        }
        "deleting over a create" => {
            bind().await;
            script.hold_uncancellable(Unbind);
            kit.unbind(i, b).accepts_incomplete().send().await.is(202);
        }
        "gone" => {
            kit.has_binding(i, b).await;
            kit.unbind(i, b).send().await.is(200);
        }
        unknown => panic!("no binding is ever `{unknown}`"),
    }
}

async fn hold(table: &str, path: &str, bring: impl AsyncFn(&Fixture, &str)) {
    for row in table.lines().filter(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [state, verb, status, lifecycle, outcome] = cells[..] else {
            panic!("a row has five columns: {row}");
        };
        eprintln!("{row}");
        on_each(async |kit| {
            bring(kit, state).await;
            // A restarted operation stays in its visible state.
            if state == "create-failed" {
                kit.script.hold_uncancellable(Provision);
                kit.script.hold_uncancellable(Bind);
            }
            let before = audit_of(kit, "i").await.len();
            let reply = command(kit, &format!("{path}/{verb}")).send().await;
            let reply = reply.is(status.parse().expect("a status"));
            let there = get(kit, path).send().await;
            if lifecycle == "-" {
                there.is(404);
            } else {
                assert_eq!(there.is(200).json["lifecycle"], lifecycle);
            }
            let audit = audit_of(kit, "i").await;
            assert_eq!(audit.len(), before + 1, "one line for one order");
            let line = &audit[0];
            assert_eq!(line["verb"], verb);
            assert_eq!(line["outcome"], outcome);
            assert_eq!(line["reason"], "because");
            if reply.status == 200 {
                assert_eq!(reply.json["audit"]["id"], line["id"]);
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_to_an_instance_in_every_state_is_answered_and_audited() {
    hold(INSTANCE, "instances/i", bring_instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_to_a_binding_in_every_state_is_answered_and_audited() {
    hold(BINDING, "bindings/i/b", bring_binding).await;
}
