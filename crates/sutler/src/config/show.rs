//! Prints the resulting configuration with the source of each value. Secrets stay hidden.

use super::model::BrokerConfig;
use super::sources::ConfigSources;
use serde_json::{Map, Value};

/// Column of the source comments, if the value is short enough.
const ORIGINS_AT: usize = 48;

/// YAML with a comment after every value; valid as input except for hidden values.
pub fn show(config: &BrokerConfig, sources: &ConfigSources) -> String {
    let mut page = ConfigListing {
        text: String::new(),
        sources,
    };
    if let Ok(Value::Object(entries)) = serde_json::to_value(config) {
        page.mapping(&entries, "", 0);
    }
    page.text
}

struct ConfigListing<'a> {
    text: String,
    sources: &'a ConfigSources,
}

impl ConfigListing<'_> {
    fn mapping(&mut self, entries: &Map<String, Value>, path: &str, depth: usize) {
        for (key, value) in entries {
            let path = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            self.entry(
                &format!("{}{key}:", "  ".repeat(depth)),
                value,
                &path,
                depth,
            );
        }
    }

    fn entry(&mut self, head: &str, value: &Value, path: &str, depth: usize) {
        match value {
            Value::Object(entries) if !entries.is_empty() => {
                self.text.push_str(&format!("{head}\n"));
                self.mapping(entries, path, depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                self.text.push_str(&format!("{head}\n"));
                for (nth, item) in items.iter().enumerate() {
                    self.item(item, &format!("{path}[{nth}]"), depth + 1);
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                let line = format!("{head} {}", scalar(value));
                let origin = self.sources.origin(path);
                self.text
                    .push_str(&format!("{line:<ORIGINS_AT$} # {origin}\n"));
            }
        }
    }

    /// The first entry of an item is on the line of the dash.
    fn item(&mut self, item: &Value, path: &str, depth: usize) {
        let indent = "  ".repeat(depth);
        let Value::Object(entries) = item else {
            self.entry(&format!("{indent}-"), item, path, depth);
            return;
        };
        for (nth, (key, value)) in entries.iter().enumerate() {
            let dash = if nth == 0 { "- " } else { "  " };
            let path = format!("{path}.{key}");
            self.entry(&format!("{indent}{dash}{key}:"), value, &path, depth + 1);
        }
    }
}

/// A scalar. Text that YAML would read as another type is quoted.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => match is_plain(text) {
            true => text.clone(),
            false => value.to_string(),
        },
        Value::Null => "~".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || "/(.".contains(c);
    let inner = |c: char| c.is_ascii_alphanumeric() || "/.-_:,=()+ ".contains(c);
    let words = ["true", "false", "null", "yes", "no", "on", "off"];
    text.starts_with(first)
        && text.chars().all(inner)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && text.parse::<f64>().is_err()
        && !words.contains(&text.to_ascii_lowercase().as_str())
}
