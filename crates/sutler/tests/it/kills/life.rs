//! Lives of instances of the PostgreSQL bundle, one after the other, until one of them passes unharmed.

use super::house::House;
use super::hunt::{Coverage, Hunt, Victim};
use super::ledger::{self, ENTRY, Ledger, Signed};
use super::platform::{ACTIONS, Platform};
use super::postgres::{Counted, Databases, folder_of_programs};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// No action has so many steps that it takes more lives; if it seems so, something runs in circles.
const LIVES_MAX: usize = 200;

/// Leads lives until one comes to no step at which nobody was killed yet.
pub(super) fn lives(victim: Victim, coverage: &Arc<Coverage>) {
    let databases = Databases::new();
    let folder = tempfile::tempdir().expect("a folder");
    // Runs of other users pass through it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let ledger = lay_out(folder.path());
    let config = format!(
        "auth: none\nstore: {{url: 'sqlite:one.db'}}\nlog: {{level: info}}\nbundles:\n  folder: bundles\n  work: work\n  secrets:\n  - name: postgresql\n    bundles: [postgresql]\n    keys: [{{key: admin_url, value: '{}'}}]\n",
        databases.url()
    );
    let hunt = Hunt::new(victim, coverage.clone());
    let mut house = House::new(folder, &config, &folder_of_programs(), hunt);
    for number in 0..LIVES_MAX {
        let kills = life(&mut house, &databases, number);
        check_runs(victim, &ledger.take(), kills);
        house.until_traces_end();
        if kills == 0 {
            house.close();
            return;
        }
    }
    panic!("there are always more steps");
}

/// The bundle as it is shipped, but for who runs it.
fn lay_out(folder: &Path) -> Ledger {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bundles/postgresql");
    let bundle = folder.join("bundles/postgresql");
    fs::create_dir_all(&bundle).expect("a folder");
    let manifest = fs::read_to_string(shipped.join("bundle.yml")).expect("a manifest");
    let counted = manifest.replace("entrypoint: [./run]", &format!("entrypoint: [./{ENTRY}]"));
    assert_ne!(
        counted, manifest,
        "the entry point is written in another way now"
    );
    fs::write(bundle.join("bundle.yml"), counted).expect("a file");
    fs::copy(shipped.join("run"), bundle.join("run")).expect("a program");
    Ledger::new(folder, &bundle)
}

/// One life; how often somebody was killed.
fn life(house: &mut House, databases: &Databases, number: usize) -> u32 {
    let parameters = [json!({ "connections": 5 }), json!({ "connections": 7 })];
    let platform = Platform::new(house, format!("life-{number}"), parameters);
    let mut kills = 0;
    let mut credentials = Value::Null;
    for action in ACTIONS {
        house.hunt.begin(action);
        platform.until_done(house, action);
        house.until_nothing_is_left();
        kills += house.hunt.end();
        let counted = databases.count();
        assert_eq!(counted, expected(action), "after {action}");
        if action == "bind" {
            credentials = platform.credentials(house);
        }
        let let_in = databases.lets_in(&credentials);
        assert_eq!(let_in, action == "bind", "after {action}");
    }
    kills
}

/// What there is in the server after an action: one database and its owner, and a role for the binding.
fn expected(action: &str) -> Counted {
    let (databases, roles, limit) = match action {
        "provision" => (1, 1, "5"),
        "bind" => (1, 2, "7"),
        "update" | "unbind" => (1, 1, "7"),
        _ => (0, 0, ""),
    };
    Counted {
        databases,
        roles,
        limits: vec![limit.to_owned(); databases],
    }
}

/// Every action was run, and only as often as it had to be.
fn check_runs(victim: Victim, runs: &[Signed], kills: u32) {
    ledger::check(runs);
    for action in ACTIONS {
        let of_action: Vec<&Signed> = runs.iter().filter(|run| run.action == action).collect();
        let done = of_action.iter().filter(|run| run.exit == Some(0)).count();
        assert!(done > 0, "no {action} was done: {runs:#?}");
        // An update that was done before its answer was heard is asked for again, and is another operation.
        let operations = of_action.iter().map(|run| &run.operation);
        let operations = operations.collect::<std::collections::BTreeSet<_>>().len();
        let repeats = if action == "update" {
            kills as usize
        } else {
            0
        };
        assert!(
            operations <= 1 + repeats,
            "{action} more than once: {runs:#?}"
        );
        let again = of_action.iter().filter(|run| run.attempt > 1).count();
        match victim {
            Victim::Broker => assert_eq!(again, 0, "a run was made again: {runs:#?}"),
            Victim::Supervisor | Victim::Both => assert!(again <= 1, "{runs:#?}"),
        }
    }
}
