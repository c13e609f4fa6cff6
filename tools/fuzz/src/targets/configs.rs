//! Configurations: files, and variables of the environment that change them.

use super::Verdict;
use crate::properties::{kind_of, refused, same, sentence};
use sutler::{ConfigError, ConfigInput, MergedConfig, merge, show};

pub(super) const WORDS: &[&str] = &[
    "listen",
    "auth",
    "none",
    "required",
    "users",
    "name",
    "password",
    "password_hash",
    "${env:HUSH}",
    "${file:hush}",
    "$${",
    "bearer",
    "issuer",
    "jwks_url",
    "https://hush@id/",
    "audience",
    "scopes",
    "skew",
    "platforms",
    "prefix",
    "/cf",
    "realm",
    "tls",
    "certificate",
    "client_auth",
    "catalog",
    "file",
    "services",
    "store",
    "sqlite:x.db",
    "memory:",
    "key_file",
    "admin",
    "limits",
    "timeouts",
    "30s",
    "99999999999d",
    "1MiB",
    "workers",
    "instances",
    "cleanup",
    "\"0 0 3 * * *\"",
    "log",
    "level",
    "spring",
    "com.equalities.osbapi",
    "server",
    "spring.profiles: x",
    ": ",
    "- ",
    "---",
    "&a ",
    "*a",
    "~",
    "hush",
];

pub(super) const VARIABLE_WORDS: &[&str] = &[
    "SUTLER_",
    "__",
    "=",
    "LISTEN",
    "LOG",
    "LEVEL",
    "USERS",
    "0",
    "1",
    "18446744073709551615",
    "NAME",
    "PASSWORD",
    "PLATFORMS",
    "BEARER",
    "AUDIENCE",
    "CATALOG",
    "SERVICES",
    "FILE",
    "SPRING",
    "TEST_",
    "CONFIG",
    "BROKER_USERNAME=a",
    "BROKER_PASSWORD=hush",
    "[{name: a, password: hush}]",
    "\n",
];

/// A file: the shown configuration reads the same again; a refused one is reported in sentences.
pub(super) fn file(input: &[u8]) -> Verdict {
    check_config(&of_text(&String::from_utf8_lossy(input)), input)
}

/// Lines `NAME=value`, over a small file.
pub(super) fn variables(input: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(input);
    let mut made = of_text("users: [{name: a, password: hush}]\n");
    let lines = text.lines().filter_map(|line| line.split_once('='));
    made.variables = lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    check_config(&made, input)
}

fn of_text(text: &str) -> ConfigInput {
    ConfigInput {
        file: Some(("sutler.yaml".to_owned(), text.to_owned())),
        ..ConfigInput::default()
    }
}

fn check_config(made: &ConfigInput, input: &[u8]) -> Verdict {
    match merge(made) {
        Ok(draft) => shown(&draft),
        Err(faults) => check_errors(&faults, input),
    }
}

fn shown(first: &MergedConfig) -> Verdict {
    for warning in &first.warnings {
        sentence(warning)?;
    }
    let text = show(&first.config, &first.sources);
    if first.config.catalog.services.is_some() {
        return Ok("with a catalog".to_owned());
    }
    let again = merge(&of_text(&text))
        .map_err(|faults| format!("does not read what it shows ({faults}): {text}"))?;
    let json = |draft: &MergedConfig| serde_json::to_string(&draft.config).unwrap_or_default();
    same(&json(&again), &json(first), "changes when shown")?;
    Ok(kind_of(&format!("{} users", first.config.users.len())))
}

fn check_errors(faults: &ConfigError, input: &[u8]) -> Verdict {
    same(&faults.0.is_empty(), &false, "no fault, but refused")?;
    let mut kinds = Vec::new();
    for fault in &faults.0 {
        let text = fault.to_string();
        // Keys and schedules are named; YAML's own faults name keys and aliases.
        let names =
            fault.path.contains("hush") || fault.path.contains("cleanup") || fault.path.is_empty();
        match names {
            true => sentence(&text)?,
            false => drop(refused(&text, input)?),
        }
        kinds.push(kind_of(&fault.reason));
    }
    kinds.sort();
    kinds.dedup();
    Ok(kinds.into_iter().take(2).collect())
}
