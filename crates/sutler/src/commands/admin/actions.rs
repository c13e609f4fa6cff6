//! Orders: retry, cancel, abandon, purge; drain and resume. What destroys asks first.

use super::client::AdminClient;
use super::error::AdminError;
use super::list::{say, shown};
use super::{AdminOutput, BindingIdArg, InstanceIdArg};
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Why, and whether to ask.
#[derive(Args)]
pub(super) struct ReasonArgs {
    /// Why: kept in the audit trail, and told to platforms where an operation is ended
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Does not ask
    #[arg(long)]
    yes: bool,
}

impl ReasonArgs {
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }
}

/// An order for an instance.
#[derive(Args)]
pub(super) struct InstanceActionArgs {
    #[command(flatten)]
    pub id: InstanceIdArg,
    #[command(flatten)]
    pub why: ReasonArgs,
}

/// An order for a binding.
#[derive(Args)]
pub(super) struct BindingActionArgs {
    #[command(flatten)]
    pub id: BindingIdArg,
    #[command(flatten)]
    pub why: ReasonArgs,
}

/// Gives an order for a resource, and says what came of it.
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

/// Gives an order for the broker as a whole.
pub(super) async fn broker(
    client: &AdminClient,
    output: AdminOutput,
    verb: &str,
    why: &ReasonArgs,
) -> Result<(), AdminError> {
    shown(output, &post(client, verb, why).await?)
}

async fn post(client: &AdminClient, path: &str, why: &ReasonArgs) -> Result<Value, AdminError> {
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

/// Has the id typed; without somebody to type it, refuses.
fn confirm(id: &str) -> Result<(), AdminError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(AdminError::Unconfirmed(
            "purge forgets a resource for ever and nobody is there to confirm it; add --yes"
                .to_owned(),
        ));
    }
    let mut err = anstream::stderr();
    let _ = write!(
        err,
        "This forgets {id} without calling its service; what is left there is yours to remove.\nType its id to go on: "
    );
    let _ = err.flush();
    let mut typed = String::new();
    let read = stdin.lock().read_line(&mut typed);
    if read.is_ok() && typed.trim_end_matches(['\r', '\n']) == id {
        return Ok(());
    }
    Err(AdminError::Unconfirmed(
        "that is not its id, so nothing was done".to_owned(),
    ))
}
