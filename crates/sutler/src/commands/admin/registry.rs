//! `sutler registry`: lists registries and their bundles, refreshes them, shows the changes that a refresh would make.

use super::client::{AdminClient, segment};
use super::error::AdminError;
use super::list::{print, say, shown};
use super::table::{self, ListTable};
use super::{AdminOutput, ConnectionArgs};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two checks whether a refresh is over.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Maximum wait for a refresh.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// List the bundles of registries, and refresh them.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused by the broker."
)]
pub(crate) struct RegistryArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: RegistryCommand,
}

#[derive(Subcommand)]
enum RegistryCommand {
    /// List registries, and the state of their last refresh
    List,
    /// Show the bundles of one registry, offered or not, and why
    Show {
        /// Its name
        name: String,
    },
    /// Refresh all registries now
    Refresh {
        /// Wait until the refresh is over and its result is stored
        #[arg(long)]
        wait: bool,
    },
    /// Show what a refresh would change now, without changing anything
    Plan,
}

const REGISTRIES: ListTable = ListTable {
    path: "registries",
    columns: &[
        ("REGISTRY", "name"),
        ("ITEMS", "items"),
        ("OFFERED", "offered"),
        ("WITHDRAWN", "withdrawn"),
        ("FAULTY", "faulty"),
        ("FAILURES", "failures"),
        ("LISTED", "listed"),
    ],
    names: &["name"],
};

const SPECS: ListTable = ListTable {
    path: "registries",
    columns: &[
        ("ITEM", "item"),
        ("SERVICE", "service"),
        ("OFFERED", "offered"),
        ("DIGEST", "digest"),
    ],
    names: &["item"],
};

pub(crate) async fn run(args: RegistryArgs) -> ExitCode {
    match command(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            crate::commands::complain(&failure);
            failure.exit_code()
        }
    }
}

async fn command(args: RegistryArgs) -> Result<(), AdminError> {
    let connection = args.connection;
    let output = connection.output;
    let client = AdminClient::connect(&connection, super::password(&connection)?)?;
    match args.command {
        RegistryCommand::List => {
            let answer = client.get(REGISTRIES.path, &[]).await?;
            show(output, &answer, &REGISTRIES, "registries", all_text)
        }
        RegistryCommand::Show { name } => {
            let path = format!("registries/{}", segment(&name));
            let answer = match client.get(&path, &[]).await {
                Err(AdminError::NotFound(_)) => return Err(unknown(&client, &name).await?),
                answer => answer?,
            };
            show(output, &answer, &SPECS, "specs", one_text)
        }
        RegistryCommand::Refresh { wait } => refresh(&client, output, wait).await,
        RegistryCommand::Plan => {
            let answer = client.get("registry-plan", &[]).await?;
            match output {
                AdminOutput::Json => shown(output, &answer),
                AdminOutput::Table | AdminOutput::Name => print(&plan_text(&answer)),
            }
        }
    }
}

fn show(
    output: AdminOutput,
    answer: &Value,
    listed: &ListTable,
    key: &str,
    text: impl Fn(&Value) -> String,
) -> Result<(), AdminError> {
    match output {
        AdminOutput::Json => shown(output, answer),
        AdminOutput::Name => print(&table::names(listed, items(answer, key))),
        AdminOutput::Table => print(&text(answer)),
    }
}

/// Error text for an unknown registry, with the known names.
async fn unknown(client: &AdminClient, name: &str) -> Result<AdminError, AdminError> {
    let answer = client.get(REGISTRIES.path, &[]).await?;
    let names = items(&answer, "registries").iter();
    let names: Vec<&str> = names.filter_map(|it| it["name"].as_str()).collect();
    Ok(AdminError::NotFound(format!(
        "There is no registry {name}; there are: {}.",
        names.join(", ")
    )))
}

async fn refresh(client: &AdminClient, output: AdminOutput, wait: bool) -> Result<(), AdminError> {
    let order = client.ask(Method::POST, "registries/refresh", &[]);
    let answer = client.json(order).await?;
    let number = answer["number"].as_u64().unwrap_or_default();
    if !wait {
        return match output {
            AdminOutput::Json => shown(output, &answer),
            AdminOutput::Table | AdminOutput::Name => {
                say("Registries are asked; see `sutler registry list` for what comes of it.")
            }
        };
    }
    let until = Instant::now() + WAIT_MAX;
    let watched = std::io::stderr().is_terminal();
    let mut printed = String::new();
    loop {
        let answer = client.get(REGISTRIES.path, &[]).await?;
        let refresh = &answer["refresh"];
        let progress = refresh["progress"].as_str().unwrap_or_default();
        if watched && !progress.is_empty() && progress != printed {
            progress.clone_into(&mut printed);
            say(progress)?;
        }
        if refresh["served"].as_u64().unwrap_or_default() >= number {
            show(output, &answer, &REGISTRIES, "registries", all_text)?;
            return match refresh["failure"].as_str() {
                None => Ok(()),
                Some(failure) => Err(AdminError::failed(format!("the refresh failed: {failure}"))),
            };
        }
        if Instant::now() >= until {
            return Err(AdminError::failed(
                "the refresh is not over after an hour; see `sutler registry list` for how far it is",
            ));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// A table, the state of the refresh, and every fault in full.
fn all_text(answer: &Value) -> String {
    let mut text = table::rows(&REGISTRIES, items(answer, "registries"));
    let refresh = &answer["refresh"];
    if let Some(since) = refresh["running_since"].as_str() {
        let progress = refresh["progress"].as_str().unwrap_or("under way");
        let _ = write!(text, "\nrefresh: since {since}, {progress}\n");
    }
    if let Some(failure) = refresh["failure"].as_str() {
        let _ = write!(text, "\nrefresh: failed, {failure}\n");
    }
    for registry in items(answer, "registries") {
        if let (Some(name), Some(fault)) = (registry["name"].as_str(), registry["fault"].as_str()) {
            let _ = write!(text, "\n{name}: {fault}\n");
        }
    }
    text
}

fn one_text(answer: &Value) -> String {
    let mut text = table::rows(&SPECS, items(answer, "specs"));
    if let Some(fault) = answer["fault"].as_str() {
        let _ = write!(text, "\nfault: {fault}\n");
    }
    for spec in items(answer, "specs") {
        let item = spec["item"].as_str().unwrap_or_default();
        let mark = |key: &str| spec["mark"][key].as_str().unwrap_or_default();
        if !mark("at").is_empty() {
            let (at, reason, until) = (mark("at"), mark("reason"), mark("until"));
            let _ = write!(
                text,
                "\n{item}: withdrawn at {at} ({reason}), kept until {until} at least\n"
            );
        }
        if let Some(fault) = spec["fault"].as_str() {
            let _ = write!(text, "\n{item}: {fault}\n");
        }
    }
    let unread = answer["unread"].as_object().into_iter().flatten();
    for (item, fault) in unread {
        let fault = fault.as_str().unwrap_or_default();
        let _ = write!(text, "\n{item}: not offered, {fault}\n");
    }
    text
}

fn plan_text(answer: &Value) -> String {
    let lines = items(answer, "lines").iter().filter_map(Value::as_str);
    let text = lines.fold(String::new(), |text, line| format!("{text}{line}\n"));
    let changes = items(answer, "changes").iter();
    let mut changes = changes.filter(|it| it["change"] != "listed");
    match changes.next() {
        Some(_) => text,
        None => text + "\nNothing would change.\n",
    }
}

fn items<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::{all_text, one_text, plan_text};
    use serde_json::json;

    #[test]
    fn registries_are_a_table_with_their_faults_in_full() {
        let answer = json!({
            "refresh": { "running_since": "2026-01-01T00:00:00Z", "progress": "asking dh, own; items looked at: 3" },
            "registries": [
                { "name": "dh", "items": 12, "offered": 10, "withdrawn": 1, "faulty": 1, "failures": 0,
                  "listed": "2026-01-01T00:00:00Z", "fault": null },
                { "name": "own", "items": 0, "offered": 0, "withdrawn": 0, "faulty": 0, "failures": 3,
                  "listed": null, "fault": "it does not answer; start it" },
            ],
        });
        let expected = "\
REGISTRY  ITEMS  OFFERED  WITHDRAWN  FAULTY  FAILURES  LISTED
dh        12     10       1          1       0         2026-01-01T00:00:00Z
own       0      0        0          0       3         -

refresh: since 2026-01-01T00:00:00Z, asking dh, own; items looked at: 3

own: it does not answer; start it
";
        assert_eq!(all_text(&answer), expected);
    }

    #[test]
    fn a_registry_shows_for_each_bundle_whether_it_is_offered_and_why_not() {
        let answer = json!({
            "specs": [
                { "item": "org/a:latest", "service": "a", "offered": true, "digest": "sha256:1" },
                { "item": "org/b:latest", "service": "b", "offered": false, "digest": "sha256:2",
                  "mark": { "reason": "absent", "at": "T1", "until": "T2" } },
            ],
            "unread": { "org/c:latest": "no manifest; add one" },
        });
        let expected = "\
ITEM          SERVICE  OFFERED  DIGEST
org/a:latest  a        yes      sha256:1
org/b:latest  b        no       sha256:2

org/b:latest: withdrawn at T1 (absent), kept until T2 at least

org/c:latest: not offered, no manifest; add one
";
        assert_eq!(one_text(&answer), expected);
    }

    #[test]
    fn a_plan_is_printed_line_by_line() {
        let answer = json!({
            "lines": ["listed r: 2 items", "add r/a"],
            "changes": [{ "change": "listed" }, { "change": "add" }],
        });
        assert_eq!(plan_text(&answer), "listed r: 2 items\nadd r/a\n");
    }

    #[test]
    fn a_plan_without_changes_says_so() {
        let listed = json!({ "lines": ["listed r: 2 items"], "changes": [{ "change": "listed" }] });
        let expected = "listed r: 2 items\n\nNothing would change.\n";
        assert_eq!(plan_text(&listed), expected);
    }
}
