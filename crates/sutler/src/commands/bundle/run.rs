//! `sutler bundle run`: runs one action of a bundle without a broker.
//!
//! State is stored in a folder, by default `.sutler` in the folder of the bundle. An interrupted action
//! continues when it is run again.

use super::environment::{BundleEnv, RunnerArgs};
use super::terminal::TerminalObserver;
use clap::Args;
use serde_json::{Map, Value};
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use sutler_bundle::Action;
use sutler_bundle_service::{LocalRequest, OperatorSecret};

/// Arguments of `bundle run`.
#[derive(Args)]
pub(super) struct RunArgs {
    /// provision, update, bind, unbind or deprovision
    #[arg(value_name = "ACTION")]
    action: Action,
    /// The bundle's folder
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The instance; its state is stored
    #[arg(long, value_name = "NAME", default_value = "local")]
    instance: String,
    /// The binding
    #[arg(long, value_name = "NAME", default_value = "local")]
    binding: String,
    /// The plan; the first if none is given
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// A file with parameters, as a JSON object
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// A file with secrets, as JSON: {"NAME": {"KEY": "value"}}
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// The folder for state [default: .sutler in the bundle's folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    #[command(flatten)]
    runner: RunnerArgs,
    /// Print the credentials that the action returns
    #[arg(long)]
    show_credentials: bool,
    /// Start the action and wait: to be killed by a test
    #[arg(long, hide = true)]
    only_start: bool,
}

pub(super) async fn run(args: &RunArgs) -> super::CommandResult {
    let place = BundleEnv::open(&args.folder, args.state.as_deref(), &args.runner)?;
    let secrets = secrets(args.secrets.as_deref())?;
    let mut local = place.instance(&args.instance, secrets)?;
    let of_binding = matches!(args.action, Action::Bind | Action::Unbind);
    let request = LocalRequest {
        plan: args.plan.clone(),
        parameters: object(args.params.as_deref())?,
        binding: of_binding.then(|| args.binding.clone()),
    };
    if args.only_start {
        local.start_only(args.action, request).await?;
        say("started")?;
        return std::future::pending().await;
    }
    let terminal = TerminalObserver::default();
    let interrupted = terminal.cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let result = local.act(args.action, request, &terminal).await?;
    if result.nothing_to_do {
        return say(&format!(
            "the bundle has no {} action: nothing to do",
            args.action
        ));
    }
    if let Some(url) = &result.dashboard_url {
        say(&format!("dashboard: {url}"))?;
    }
    match (&result.credentials, args.show_credentials) {
        (Some(credentials), true) => say(&serde_json::to_string_pretty(credentials)?)?,
        (Some(credentials), false) => {
            let keys: Vec<&str> = credentials.keys().map(String::as_str).collect();
            say(&format!(
                "credentials: {} (--show-credentials prints them)",
                keys.join(", ")
            ))?;
        }
        (None, _) => {}
    }
    say(&format!("{} done", args.action))
}

pub(super) fn say(text: &str) -> super::CommandResult {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn object(file: Option<&Path>) -> Result<Map<String, Value>, Box<dyn Error>> {
    let Some(path) = file else {
        return Ok(Map::new());
    };
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    // The message of serde may quote a value, and a value may be a secret.
    let object = serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("{shown}:{line}:{column}: must be a JSON object, such as {{\"size\": 1}}")
    })?;
    Ok(object)
}

pub(super) fn secrets(file: Option<&Path>) -> Result<Vec<OperatorSecret>, Box<dyn Error>> {
    let mut kept = Vec::new();
    for (name, keys) in object(file)? {
        let keys = keys.as_object().cloned().unwrap_or_default();
        let text = |(key, value): (String, Value)| Some((key, value.as_str()?.to_owned().into()));
        kept.push(OperatorSecret {
            name,
            bundles: std::collections::BTreeSet::new(),
            keys: keys.into_iter().filter_map(text).collect(),
        });
    }
    Ok(kept)
}
