//! `sutler admin keys`: the keys of a running broker with their records, and the removal of one from the key file.
//!
//! The broker counts, this command changes the file. `sutler store keys` does the same without a broker, and makes and
//! orders keys.

use super::AdminOutput;
use super::client::AdminClient;
use super::error::AdminError;
use super::list::{print, shown};
use super::table::{self, ListTable};
use crate::commands::store::target_store::{self, key_file_of};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::{Path, PathBuf};
use sutler_journal::{KeyFileEdit, KeyId, KeyRing};

/// Keys of a running broker.
#[derive(Subcommand)]
pub(super) enum KeysCommand {
    /// List the keys of the broker, and how many records each one seals: reads the whole store
    List,
    /// Remove a key from the key file that no record of the broker's store needs any more
    Retire(RetireArgs),
}

/// Arguments of `retire`.
#[derive(Args)]
#[command(
    after_help = "The broker reads its whole store, and a key that seals a record of it stays. Of several stores with one \
key file only that of the broker is read. Backups that were made before the rekey need the old key: keep a copy of the \
key file with them.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage."
)]
pub(super) struct RetireArgs {
    /// The id of the key
    #[arg(value_name = "ID")]
    id: String,
    /// The key file of the broker
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The configuration of the broker, which names its key file
    #[arg(long, value_name = "FILE", env = "SUTLER_CONFIG")]
    config: Option<PathBuf>,
}

const KEYS: ListTable = ListTable {
    path: "keys",
    columns: &[
        ("KEY", "id"),
        ("STATE", "state"),
        ("DOCUMENTS", "documents"),
        ("OPERATIONS", "operations"),
        ("LOG CHUNKS", "log_chunks"),
    ],
    names: &["id"],
};

pub(super) async fn run(
    client: &AdminClient,
    output: AdminOutput,
    command: KeysCommand,
) -> Result<(), AdminError> {
    match command {
        KeysCommand::List => list(client, output).await,
        KeysCommand::Retire(args) => retire(client, &args).await,
    }
}

async fn list(client: &AdminClient, output: AdminOutput) -> Result<(), AdminError> {
    let answer = client.get(KEYS.path, &[]).await?;
    match output {
        AdminOutput::Json => shown(output, &answer),
        AdminOutput::Name => print(&table::names(&KEYS, items(&answer))),
        AdminOutput::Table => print(&text(&answer)),
    }
}

/// A table, and a line about damaged records.
fn text(answer: &Value) -> String {
    let row = |item: &Value| {
        let mut row = item["records"].clone();
        row["id"] = item["id"].clone();
        row["state"] = item["state"].clone();
        row
    };
    let rows: Vec<Value> = items(answer).iter().map(row).collect();
    let text = table::rows(&KEYS, &rows);
    match answer["damaged"].as_u64() {
        Some(0) | None => text,
        Some(damaged) => format!("{text}\ndamaged records, whose key is not known: {damaged}\n"),
    }
}

async fn retire(client: &AdminClient, args: &RetireArgs) -> Result<(), AdminError> {
    let failed = |error: &dyn std::fmt::Display| AdminError::failed(error.to_string());
    let id = KeyId::parse(&args.id).map_err(|error| failed(&error))?;
    let path = key_file(args)?;
    target_store::keys(&path).map_err(|error| failed(&error))?;
    let mut edit = KeyFileEdit::open(&path).map_err(|error| failed(&error))?;
    // Refuses unknown and current keys before the store is read.
    edit.remove(&id).map_err(|error| failed(&error))?;
    let answer = client.get(KEYS.path, &[]).await?;
    check(&answer, &id, &edit.ring(), &path).map_err(AdminError::failed)?;
    let (shown, retired) = (path.display(), edit.retired_file());
    let retired = retired.display();
    edit.save().map_err(|error| failed(&error))?;
    print(&format!(
        "{shown}: {id} is retired; no record of the broker's store needs it\nThe key is in {retired} now: delete that file when you are sure that nothing needs it.\nNext: give the key file to every replica. A running broker forgets the key when it is restarted.\n"
    ))
}

fn key_file(args: &RetireArgs) -> Result<PathBuf, AdminError> {
    let path = match (&args.key_file, &args.config) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(config)) => {
            key_file_of(config).map_err(|error| AdminError::failed(error.to_string()))?
        }
        (None, None) => None,
    };
    path.ok_or_else(|| {
        AdminError::Usage("name the key file with --key-file or --config".to_owned())
    })
}

/// Fails unless the broker is the one of the key file, and no record of its store needs the key. `keys`: the ring
/// without it.
fn check(answer: &Value, id: &KeyId, keys: &KeyRing, path: &Path) -> Result<(), String> {
    let (current, path) = (keys.current(), path.display());
    let seals = answer["current"].as_str().unwrap_or_default();
    if seals != current.as_str() {
        return Err(format!(
            "the broker seals with {seals}, and the current key of {path} is {current}: send the broker SIGHUP, or name its key file; nothing was changed"
        ));
    }
    let key = |id: &KeyId| items(answer).iter().find(|it| it["id"] == id.as_str());
    let check = key(&current).and_then(|it| it["check"].as_str());
    if check.is_none() || check != keys.check_value(&current).as_deref() {
        return Err(format!(
            "the broker has another key {current} than {path}: is it the broker of this key file? Nothing was changed"
        ));
    }
    let records = key(id).and_then(|it| it["records"].as_object());
    let left = records.into_iter().flatten();
    let left: u64 = left.filter_map(|(_, count)| count.as_u64()).sum();
    if left > 0 {
        return Err(format!(
            "{id} still seals {left} records of the broker's store: run `sutler admin rekey --wait` first; nothing was changed"
        ));
    }
    match answer["damaged"].as_u64() {
        Some(0) => {}
        Some(damaged) => {
            return Err(format!(
                "damaged records, whose key is not known: {damaged}. Stop the broker if its store is an SQLite file, and run `sutler store check` about them; nothing was changed"
            ));
        }
        None => return Err("the broker's answer is not about keys; is --url right?".to_owned()),
    }
    match answer["opens"].as_bool() {
        Some(true) => Ok(()),
        Some(false) | None => Err(format!(
            "no record of the broker's store is sealed with {current}: run `sutler admin rekey --wait` first; nothing was changed"
        )),
    }
}

fn items(answer: &Value) -> &[Value] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::{check, text};
    use serde_json::{Value, json};
    use std::path::Path;
    use sutler_journal::{KeyId, KeyRing};

    fn answer(keys: &KeyRing, old_records: u64) -> Value {
        let counts = |count: u64| json!({ "documents": count, "operations": 0, "log_chunks": 0 });
        let value = keys.check_value(&keys.current());
        json!({
            "current": "k2", "opens": true, "damaged": 0,
            "items": [
                { "id": "k2", "state": "current", "check": value, "records": counts(5) },
                { "id": "k1", "state": "opens", "check": "00", "records": counts(old_records) },
            ],
        })
    }

    #[test]
    fn keys_are_a_table() {
        let keys = KeyRing::parse(&KeyRing::fresh_line("k2")).expect("a ring");
        let mut answer = answer(&keys, 2);
        answer["damaged"] = json!(1);
        let expected = "\
KEY  STATE    DOCUMENTS  OPERATIONS  LOG CHUNKS
k2   current  5          0           0
k1   opens    2          0           0

damaged records, whose key is not known: 1
";
        assert_eq!(text(&answer), expected);
    }

    #[test]
    fn a_key_is_retired_only_by_the_answer_of_the_broker_of_its_file() {
        let keys = KeyRing::parse(&KeyRing::fresh_line("k2")).expect("a ring");
        let id = KeyId::parse("k1").expect("an id");
        let checked = |answer: &Value| check(answer, &id, &keys, Path::new("one.key"));
        let good = answer(&keys, 0);
        assert_eq!(checked(&good), Ok(()));
        let with = |member: &str, value: Value| {
            let mut answer = good.clone();
            answer[member] = value;
            answer
        };
        let other_keys = KeyRing::parse(&KeyRing::fresh_line("k2")).expect("a ring");
        for (answer, sentence) in [
            (with("current", json!("k1")), "send the broker SIGHUP"),
            (answer(&other_keys, 0), "is it the broker of this key file?"),
            (answer(&keys, 3), "k1 still seals 3 records"),
            (with("damaged", json!(1)), "damaged records"),
            (with("damaged", Value::Null), "is --url right?"),
            (with("opens", json!(false)), "no record"),
            (json!({}), "send the broker SIGHUP"),
        ] {
            let refused = checked(&answer).expect_err("it is refused");
            assert!(refused.contains(sentence), "{refused}");
        }
    }
}
