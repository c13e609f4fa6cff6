//! Variables of the environment as values of the configuration: `SUTLER_LOG__LEVEL` is `log.level`.
//!
//! The known variables follow from the schema, so that a misspelt one is an error instead of being ignored.
//! Values of secrets are never quoted. Pure: the environment is an argument.

use super::schema::{is_composite, properties, resolve};
use super::sources::{ConfigDiagnostic, ValueOrigin};
use super::tree::{KeyPath, PathStep, put};
use serde_json::Value;
use sutler_yaml::{Kind, Node, nearest};

/// Prefix of all variables.
const PREFIX: &str = "SUTLER_";

/// Separator between levels.
const LEVELS: &str = "__";

/// Variables with the prefix that are not settings of a broker.
const OTHERS: [&str; 1] = ["SUTLER_CONFIG"];

/// Prefixes of variables of other commands and of tests.
const OTHER_BEGINNINGS: [&str; 3] = ["SUTLER_TEST_", "SUTLER_ADMIN_", "SUTLER_COPY_"];

/// Older short variables, with the path they set.
const SHORT: [(&str, &str); 1] = [("SUTLER_LOG", "log.level")];

/// Maximum length of a value, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Sets every variable that is a setting in the tree, and records the changed paths.
pub(super) fn overlay(
    root: &mut Node,
    variables: &[(String, String)],
    schema: &Value,
    changed: &mut Vec<(String, ValueOrigin)>,
) -> Vec<ConfigDiagnostic> {
    let mut faults = Vec::new();
    for (name, value) in variables {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        // `SUTLER_ADMIN__USERS` is a setting, `SUTLER_ADMIN_URL` is for `sutler admin`.
        let other = OTHER_BEGINNINGS.iter().any(|it| {
            let rest = name.strip_prefix(it);
            rest.is_some_and(|rest| !rest.starts_with('_'))
        });
        if other || OTHERS.contains(&name.as_str()) {
            continue;
        }
        let done = setting(name, rest, schema).and_then(|(path, part)| {
            let node = node(value, part)?;
            put(root, &path.0, node)?;
            changed.push((path.to_string(), ValueOrigin::Variable(name.clone())));
            Ok(())
        });
        if let Err(reason) = done {
            faults.push(ConfigDiagnostic {
                at: name.chars().take(120).collect(),
                path: String::new(),
                reason,
            });
        }
    }
    faults
}

/// The path that a variable sets, and the schema at that path.
fn setting<'a>(name: &str, rest: &str, schema: &'a Value) -> Result<(KeyPath, &'a Value), String> {
    if let Some((_, path)) = SHORT.iter().find(|(short, _)| *short == name) {
        let path = KeyPath::of_keys(path);
        let text = &schema["$defs"]["Log"]["properties"]["level"];
        return Ok((path, text));
    }
    let mut path = KeyPath::default();
    let mut part = resolve(schema, schema);
    let mut written = PREFIX.to_owned();
    for segment in rest.split(LEVELS) {
        part = match (properties(part), part.get("items")) {
            (Some(known), _) => {
                let key = segment.to_ascii_lowercase();
                let exact = segment.to_ascii_uppercase() == segment;
                let Some(next) = known.get(&key).filter(|it| exact && is_settable(it)) else {
                    return Err(unknown(&written, &key, known));
                };
                path.0.push(PathStep::Key(key));
                next
            }
            (None, Some(items)) => {
                let nth = segment.parse().map_err(|_| {
                    format!("must have the number of an item after `{written}`, from 0")
                })?;
                path.0.push(PathStep::Nth(nth));
                items
            }
            (None, None) => return Err("goes deeper than there are settings".to_owned()),
        };
        part = resolve(part, schema);
        written = format!("{written}{segment}{LEVELS}");
    }
    Ok((path, part))
}

/// Whether a key can be set by a variable: catalogs and the sections of Spring cannot.
fn is_settable(part: &Value) -> bool {
    let is_open = part["type"] == "object" && part.get("properties").is_none();
    part["format"] != "catalog" && !is_open
}

fn unknown(before: &str, key: &str, known: &serde_json::Map<String, Value>) -> String {
    let names: Vec<&str> = known
        .iter()
        .filter(|(_, part)| is_settable(part))
        .map(|(name, _)| name.as_str())
        .collect();
    let variable = |name: &str| format!("{before}{}", name.to_ascii_uppercase());
    match nearest(key, names.iter().copied()) {
        Some(near) => format!("is no setting; did you mean {}?", variable(near)),
        None => {
            let all: Vec<String> = names.iter().map(|name| variable(name)).collect();
            format!(
                "is no setting; unset it, or use one of {}, with {LEVELS} before what is below",
                all.join(", ")
            )
        }
    }
}

/// Parses a value: text for scalars, YAML such as `[a, b]` for lists and mappings.
fn node(value: &str, part: &Value) -> Result<Node, String> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("must not be longer than {VALUE_BYTES_MAX} bytes"));
    }
    if !is_composite(part) {
        return Ok(Node::text_from_elsewhere(value));
    }
    let documents = sutler_yaml::parse(value).ok();
    let mut documents = documents.into_iter().flatten();
    match (documents.next(), documents.next()) {
        (Some(mut node), None) => {
            forget_places(&mut node);
            Ok(node)
        }
        _ => Err("must be YAML on one line, such as `[a, b]` or `{name: value}`".to_owned()),
    }
}

/// Clears line numbers: those of a variable are not lines of the file.
fn forget_places(node: &mut Node) {
    let Node { place, key, kind } = node;
    (place.line, place.column, *key) = (0, 0, None);
    match kind {
        Kind::List(items) => items.iter_mut().for_each(forget_places),
        Kind::Mapping(entries) => entries.iter_mut().for_each(|(_, it)| forget_places(it)),
        Kind::Null | Kind::Bool(_) | Kind::Number(..) | Kind::Text(_) => {}
    }
}
