//! Actions of operators: retry, cancel, abandon, purge; drain and resume. A purge asks for confirmation.

use super::client::AdminClient;
use super::error::AdminError;
use super::list::{say, shown};
use super::{AdminOutput, BindingIdArg, InstanceIdArg};
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// The reason of an action, and whether to confirm it.
#[derive(Args)]
pub(super) struct ReasonArgs {
    /// The reason: stored in the audit trail, and returned to platforms if an operation is ended
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

impl ReasonArgs {
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }
}

/// An action on an instance.
#[derive(Args)]
pub(super) struct InstanceActionArgs {
    #[command(flatten)]
    pub id: InstanceIdArg,
    #[command(flatten)]
    pub why: ReasonArgs,
}

/// An action on a binding.
#[derive(Args)]
pub(super) struct BindingActionArgs {
    #[command(flatten)]
    pub id: BindingIdArg,
    #[command(flatten)]
    pub why: ReasonArgs,
}

/// Sends an action on a resource, and prints its result.
pub(super) async fn give(
    client: &AdminClient,
    output: AdminOutput,
    verb: &str,
    path: &str,
    id: &str,
    why: &ReasonArgs,
) -> Result<(), AdminError> {
    if verb == "purge" && !why.yes {
        confirm(id)?;
    }
    let answer = post(client, &format!("{path}/{verb}"), why).await?;
    if output != AdminOutput::Table {
        return shown(output, &answer);
    }
    say(&sentence(verb, id, &answer))
}

/// Sends an action on the broker as a whole.
pub(super) async fn broker(
    client: &AdminClient,
    output: AdminOutput,
    verb: &str,
    why: &ReasonArgs,
) -> Result<(), AdminError> {
    shown(output, &post(client, verb, why).await?)
}

pub(super) async fn post(
    client: &AdminClient,
    path: &str,
    why: &ReasonArgs,
) -> Result<Value, AdminError> {
    let request = client.ask(Method::POST, path, &[]);
    client
        .json(request.json(&json!({ "reason": why.reason })))
        .await
}

fn sentence(verb: &str, id: &str, answer: &Value) -> String {
    let lifecycle = answer["lifecycle"].as_str().unwrap_or("unknown");
    let audit = &answer["audit"];
    let came = match audit["outcome"].as_str() {
        Some("started") => match audit["operation"].as_str() {
            Some(operation) => format!("started operation {operation}"),
            None => "started".to_owned(),
        },
        Some("nothing_to_do") => "nothing to do".to_owned(),
        _ => "done".to_owned(),
    };
    format!("{verb} {id}: {came}; it is {lifecycle} now.")
}

/// Asks the user to type the id; fails if standard input is not a terminal.
fn confirm(id: &str) -> Result<(), AdminError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(AdminError::Unconfirmed(
            "purge removes a resource permanently and there is no terminal to confirm it; add --yes"
                .to_owned(),
        ));
    }
    let mut err = anstream::stderr();
    let _ = write!(
        err,
        "This removes {id} from the broker without calling its service; remove what is left there yourself.\nType its id to continue: "
    );
    let _ = err.flush();
    let mut typed = String::new();
    let read = stdin.lock().read_line(&mut typed);
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == id {
        return Ok(());
    }
    Err(AdminError::Unconfirmed(
        "the id does not match; nothing was done".to_owned(),
    ))
}
