//! `sutler store keys`: makes, lists, orders and retires the keys of a key file.
//!
//! A new key is first known to every broker, then current, then everything is sealed with it
//! (`sutler store rekey`), then the old one is retired; each command prints the next step. The file is changed
//! by the journal (`KeyFileEdit`), the records of a key are counted by `key_usage.rs`.

use super::key_usage::{self, words};
use super::target_store::{self, TargetStore, TargetStoreArgs, URLS};
use super::{StoreOutput, say, say_json};
use crate::BoxError;
use clap::{Args, Subcommand};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sutler_journal::copy::check_usable;
use sutler_journal::rekey::{KeyUsage, has_documents_of};
use sutler_journal::{KeyFileEdit, KeyId, KeyRing};

const EXIT_CODES: &str = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage.";

/// Maintain the key file.
#[derive(Subcommand)]
#[command(
    after_help = "Rotate a key: make, let every broker read the file (SIGHUP), use, let every broker read it again, \
`sutler store rekey`, retire. For an SQLite file in use by its broker: `sutler admin rekey`, `sutler admin keys retire`."
)]
pub(crate) enum KeysCommand {
    /// Add a new key, which opens and does not seal yet; creates the key file if there is none
    Make(MakeArgs),
    /// List the keys, and on demand how many records each one seals
    List(ListArgs),
    /// Make a key the current one, which seals
    Use(UseArgs),
    /// Remove a key that no record needs any more
    Retire(RetireArgs),
}

/// The key file.
#[derive(Args)]
struct KeyFileArgs {
    #[command(flatten)]
    chosen: TargetStoreArgs,
    /// The key file [default: as in the configuration, or the database's name with .key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl KeyFileArgs {
    fn path(&self) -> Result<PathBuf, BoxError> {
        self.chosen.key_file(self.key_file.as_deref())
    }

    /// The existing file, locked against other changes.
    fn edit(&self) -> Result<(KeyFileEdit, PathBuf), BoxError> {
        let path = self.path()?;
        target_store::keys(&path)?;
        Ok((KeyFileEdit::open(&path)?, path))
    }
}

/// Arguments of `make`.
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct MakeArgs {
    #[command(flatten)]
    file: KeyFileArgs,
    /// The id of the key [default: k and the next number]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Make the key current at once; only if at most one broker uses the store
    #[arg(long)]
    current: bool,
}

/// Arguments of `list`.
#[derive(Args)]
#[command(after_help = format!("{URLS}\n\n{EXIT_CODES}"))]
pub(crate) struct ListArgs {
    #[command(flatten)]
    file: KeyFileArgs,
    /// Count the records that each key seals: reads the whole store
    #[arg(long)]
    records: bool,
    /// Output format
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t)]
    output: StoreOutput,
}

/// Arguments of `use`.
#[derive(Args)]
#[command(after_help = format!("Every broker must know the key before: one that does not cannot read what others write \
with it until it has read the file.\n\n{EXIT_CODES}"))]
pub(crate) struct UseArgs {
    #[command(flatten)]
    file: KeyFileArgs,
    /// The id of the key
    #[arg(value_name = "ID")]
    id: String,
}

/// Arguments of `retire`.
#[derive(Args)]
#[command(after_help = format!("The whole store is read, and a key that seals a record of it stays. Of several stores with \
one key file only the given one is read. Backups that were made before `sutler store rekey` need the old key: keep a \
copy of the key file with them. An SQLite file belongs to one process: while its broker runs, use `sutler admin keys \
retire`.\n\n{URLS}\n\n{EXIT_CODES}"))]
pub(crate) struct RetireArgs {
    #[command(flatten)]
    file: KeyFileArgs,
    /// The id of the key
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) async fn run(command: KeysCommand) -> Result<ExitCode, BoxError> {
    match command {
        KeysCommand::Make(args) => make(&args)?,
        KeysCommand::List(args) => list(&args).await?,
        KeysCommand::Use(args) => make_current(&args)?,
        KeysCommand::Retire(args) => retire(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn make(args: &MakeArgs) -> Result<(), BoxError> {
    let path = args.file.path()?;
    let shown = path.display();
    if !path.exists() {
        let id = KeyFileEdit::create(&path, args.id.as_deref())?;
        return say(&format!(
            "{shown}: did not exist; made with the key {id}, which seals\nIt opens nothing that was sealed before. Back it up, apart from the store.\n"
        ));
    }
    let mut edit = KeyFileEdit::open(&path)?;
    let id = edit.make(args.id.as_deref())?;
    if args.current {
        edit.make_current(&id)?;
    }
    let seals = edit.ring().current();
    edit.save()?;
    say(&match args.current {
        true => format!(
            "{shown}: made the key {id}, which seals from now on\n{}",
            after_use(&id)
        ),
        false => format!(
            "{shown}: made the key {id}; {seals} still seals\nNext: give the file to every replica and send each broker SIGHUP; then make the key current with\n  sutler store keys use {id}\n"
        ),
    })
}

fn make_current(args: &UseArgs) -> Result<(), BoxError> {
    let id = KeyId::parse(&args.id)?;
    let (mut edit, path) = args.file.edit()?;
    let shown = path.display();
    if edit.ring().current() == id {
        return say(&format!("{shown}: {id} seals already; nothing to do\n"));
    }
    edit.make_current(&id)?;
    edit.save()?;
    say(&format!(
        "{shown}: {id} seals from now on\n{}",
        after_use(&id)
    ))
}

fn after_use(id: &KeyId) -> String {
    format!(
        "Next: give the file to every replica and send each broker SIGHUP; then seal everything with {id} by\n  sutler store rekey\nFor SQLite, while its broker runs: `sutler admin rekey --wait`, then `sutler admin keys retire`.\n"
    )
}

async fn retire(args: &RetireArgs) -> Result<(), BoxError> {
    let id = KeyId::parse(&args.id)?;
    let (mut edit, path) = args.file.edit()?;
    // Refuses unknown and current keys before the store is read.
    edit.remove(&id)?;
    args.file.chosen.must_exist()?;
    let online = format!("sutler admin keys retire {id}");
    let found = args.file.chosen.open_or_suggest(&online).await?;
    // Records of a store that was moved are in another one.
    check_usable(&*found.store).await?;
    let usage = key_usage::count(&found.store).await?;
    let left = usage.of(&id);
    if left.total() > 0 {
        let (name, left) = (&found.name, words(left));
        return Err(format!(
            "{id} still seals {left} of {name}: run `sutler store rekey` first; nothing was changed"
        )
        .into());
    }
    check_store(&found, &usage, &edit.ring(), &path).await?;
    let (shown, retired) = (path.display(), edit.retired_file());
    let retired = retired.display();
    edit.save()?;
    say(&format!(
        "{shown}: {id} is retired; no record of {} needs it\nThe key is in {retired} now: delete that file when you are sure that nothing needs it.\nNext: give the key file to every replica. A running broker forgets the key when it is restarted.\n",
        found.name
    ))
}

/// Fails if it is not certain that the counted store is the one of the keys: another store needs none of them.
async fn check_store(
    found: &TargetStore,
    usage: &KeyUsage,
    keys: &KeyRing,
    path: &Path,
) -> Result<(), BoxError> {
    let (name, damaged) = (&found.name, usage.damaged);
    if damaged > 0 {
        return Err(format!(
            "damaged records of {name}, whose key is not known: {damaged}. Run `sutler store check` about them; nothing was changed"
        )
        .into());
    }
    if has_documents_of(&*found.store, keys).await? {
        return Ok(());
    }
    let (current, path) = (keys.current(), path.display());
    Err(format!(
        "{name} has no record that the current key {current} of {path} seals: is it the store of this key file? If it is, run `sutler store rekey` first; nothing was changed"
    )
    .into())
}

async fn list(args: &ListArgs) -> Result<(), BoxError> {
    let path = args.file.path()?;
    let ring = target_store::keys(&path)?;
    let usage = match args.records {
        false => None,
        true => {
            args.file.chosen.must_exist()?;
            let found = args
                .file
                .chosen
                .open_or_suggest("sutler admin keys list")
                .await?;
            Some(key_usage::count(&found.store).await?)
        }
    };
    match args.output {
        StoreOutput::Table => say(&table(&ring, usage.as_ref())),
        StoreOutput::Json => say_json(&value(&path, &ring, usage.as_ref())),
    }
}

/// All keys of the file, and those of the store that the file lacks, with their part.
fn states(ring: &KeyRing, usage: Option<&KeyUsage>) -> Vec<(KeyId, &'static str)> {
    let current = ring.current();
    let ids = ring.ids();
    let used = usage.into_iter().flat_map(|it| it.by_key.keys());
    let missing = used.filter(|id| !ids.contains(id)).cloned();
    let missing: Vec<KeyId> = missing.collect();
    let state = |id: &KeyId| match *id == current {
        true => "current",
        false => "opens",
    };
    let known = ids.into_iter().map(|id| {
        let state = state(&id);
        (id, state)
    });
    known
        .chain(missing.into_iter().map(|id| (id, "missing")))
        .collect()
}

fn table(ring: &KeyRing, usage: Option<&KeyUsage>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let counted = ["DOCUMENTS", "OPERATIONS", "LOG CHUNKS"];
    let counted = usage.map(|_| counted).into_iter().flatten();
    table.set_header(["KEY", "STATE"].into_iter().chain(counted));
    for (id, state) in states(ring, usage) {
        let counts = usage.map(|it| it.of(&id));
        let counts = counts.map(|it| [it.documents, it.operations, it.log_chunks]);
        let counts = counts.into_iter().flatten().map(|it| it.to_string());
        let row = [id.to_string(), state.to_owned()].into_iter();
        table.add_row(row.chain(counts));
    }
    let lines = table.lines().map(|line| line.trim().to_owned() + "\n");
    lines.collect()
}

fn value(path: &Path, ring: &KeyRing, usage: Option<&KeyUsage>) -> serde_json::Value {
    let keys = states(ring, usage).into_iter().map(|(id, state)| {
        let mut key = json!({ "id": id.as_str(), "state": state });
        if let Some(usage) = usage {
            key["records"] = key_usage::value(usage.of(&id));
        }
        key
    });
    let keys: Vec<_> = keys.collect();
    let mut value = json!({ "key_file": path, "current": ring.current().as_str(), "keys": keys });
    if let Some(usage) = usage {
        value["damaged"] = usage.damaged.into();
    }
    value
}
