//! `sutler bundle emit`: returns results from a script of a bundle, without writing JSON.
//!
//! Values may be secrets, and all users of a host can list arguments: `--stdin` reads a value from standard input.

use crate::commands::CommandResult;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use std::io::Read;
use std::path::PathBuf;
use sutler_runner::{KeyedFile, ResultWriter, Vars};

/// Maximum input on standard input, in bytes.
const INPUT_BYTES_MAX: u64 = 1 << 20;

/// The result to return.
#[derive(Args)]
pub(super) struct EmitArgs {
    /// Where results are written; the broker sets it for every run
    #[arg(long, value_name = "DIR", env = "SUTLER_RESULT_DIR", global = true)]
    result_dir: Option<PathBuf>,
    #[command(subcommand)]
    what: EmitCommand,
}

#[derive(Subcommand)]
enum EmitCommand {
    /// Credentials of the binding, or of the instance when it is provisioned
    Credentials(KeysArgs),
    /// State for later actions on this instance
    State(KeysArgs),
    /// State for later actions on this binding
    BindingState(KeysArgs),
    /// Progress of the action
    Progress {
        /// A sentence for the user
        text: String,
        /// From 0 to 100
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: Option<u8>,
    },
    /// URL of the dashboard of the instance
    DashboardUrl {
        /// The URL
        url: String,
    },
    /// Error description for the caller; the script should exit with a code other than 0
    Error {
        /// A sentence
        text: String,
    },
}

#[derive(Args)]
struct KeysArgs {
    /// Keys and their values. Not for secrets: all users of the host can list arguments
    #[arg(value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
    /// The value of this key is standard input, without its last line break
    #[arg(long, value_name = "KEY", conflicts_with = "json")]
    stdin: Option<String>,
    /// Keys and values are standard input, as a JSON object
    #[arg(long)]
    json: bool,
    /// Removes a key
    #[arg(long, value_name = "KEY")]
    remove: Vec<String>,
}

pub(super) fn run(args: &EmitArgs) -> CommandResult {
    let Some(folder) = &args.result_dir else {
        return Err("there is no SUTLER_RESULT_DIR here: only a run of a bundle has one; give --result-dir DIR to try it".into());
    };
    let writer = ResultWriter::new(folder.clone());
    let written = match &args.what {
        EmitCommand::Credentials(keys) => keyed(&writer, KeyedFile::Credentials, keys)?,
        EmitCommand::State(keys) => keyed(&writer, KeyedFile::State, keys)?,
        EmitCommand::BindingState(keys) => keyed(&writer, KeyedFile::BindingState, keys)?,
        EmitCommand::Progress { text, percent } => writer.progress(text, *percent),
        EmitCommand::DashboardUrl { url } => writer.dashboard_url(url),
        EmitCommand::Error { text } => writer.error(text),
    };
    written.map_err(|fault| {
        let place = folder.display();
        format!("cannot write to {place}: {fault}; see that it is there and may be written to")
            .into()
    })
}

fn keyed(
    writer: &ResultWriter,
    what: KeyedFile,
    keys: &KeysArgs,
) -> Result<std::io::Result<()>, Box<dyn std::error::Error>> {
    let mut set: Map<String, Value> = Map::new();
    for (key, value) in &keys.set {
        set.insert(key.clone(), Value::String(value.clone()));
    }
    if let Some(key) = &keys.stdin {
        let text = input()?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        set.insert(key.clone(), Value::String(text.to_owned()));
    }
    if keys.json {
        // The parser's message might quote a secret.
        let object = serde_json::from_str(&input()?);
        let object: Map<String, Value> =
            object.map_err(|_| "standard input is not a JSON object: write {\"KEY\": VALUE}")?;
        set.extend(object);
    }
    Ok(writer.merge(what, Vars(set), &keys.remove))
}

fn input() -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1);
    input.read_to_string(&mut text)?;
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err("standard input is longer than 1 MB: keep large things in the service".into());
    }
    Ok(text)
}

fn key_and_value(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        // Not quoted: it may be a secret.
        _ => Err("write KEY=VALUE, or --stdin KEY for a secret".to_owned()),
    }
}
