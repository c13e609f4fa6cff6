//! Renders `docs/configuration.md` from the schema: every key with its form, default and meaning.
//!
//! The descriptions are the doc comments of the types; only the introduction is in `reference-head.md`.

use super::schema::{properties, resolve, schema};
use serde_json::Value;

const HEAD: &str = include_str!("reference-head.md");

/// Names of the forms of values.
const FORMS: [(&str, &str); 10] = [
    ("duration", "duration"),
    ("size", "size"),
    ("address", "host:port"),
    ("url", "URL"),
    ("path", "file"),
    ("schedule", "schedule"),
    ("secret", "secret"),
    ("catalog", "list of offerings"),
    ("store", "URL of a store"),
    ("tags", "tag, or tags"),
];

/// Renders the page.
pub fn reference() -> String {
    let schema = schema();
    let mut page = ReferencePage {
        text: HEAD.to_owned(),
        schema: &schema,
        sections: Vec::new(),
    };
    page.section("The top", "", &schema);
    let mut nth = 0;
    while let Some((path, name)) = page.sections.get(nth).cloned() {
        let part = &schema["$defs"][&name];
        page.section(&format!("`{path}`"), &path, part);
        nth += 1;
    }
    page.text
}

struct ReferencePage<'a> {
    text: String,
    schema: &'a Value,
    /// Sections to render: the path of the first key that has one, and the name of its type.
    sections: Vec<(String, String)>,
}

impl ReferencePage<'_> {
    fn section(&mut self, title: &str, path: &str, part: &Value) {
        self.text.push_str(&format!("\n## {title}\n\n"));
        if !path.is_empty() {
            self.text.push_str(&format!("{}\n\n", words(part)));
        }
        self.text
            .push_str("| key | is | default | means |\n|---|---|---|---|\n");
        for (key, property) in properties(part).into_iter().flatten() {
            let inner = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            let is = self.form(property, &inner);
            let required = part["required"].as_array();
            let needed = required.is_some_and(|it| it.iter().any(|name| name == key));
            let default = match needed {
                true => "needed".to_owned(),
                false => default(&property["default"]),
            };
            let means = self.meaning(property);
            self.text
                .push_str(&format!("| `{key}` | {is} | {default} | {means} |\n"));
        }
    }

    /// The form of a value; a mapping gets its own section.
    fn form(&mut self, property: &Value, path: &str) -> String {
        let part = resolve(property, self.schema);
        let format = part["format"].as_str().unwrap_or_default();
        if let Some((_, name)) = FORMS.iter().find(|(known, _)| *known == format) {
            return (*name).to_owned();
        }
        if properties(part).is_some() {
            return format!("[section](#{})", self.anchor(property, path));
        }
        if let Some(items) = part.get("items") {
            let each = format!("{path}[]");
            return format!("list of {}", self.form(items, &each));
        }
        let choices = choices(part);
        if !choices.is_empty() {
            let named: Vec<String> = choices.iter().map(|(it, _)| format!("`{it}`")).collect();
            return named.join(", ");
        }
        let kind = match &part["type"] {
            Value::Array(several) => several[0].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("boolean") => "`true` or `false`",
            Some("integer") => "number",
            Some("object") => "mapping",
            Some(_) | None => "text",
        }
        .to_owned()
    }

    /// The anchor of a type's section; keys of the same type share one.
    fn anchor(&mut self, property: &Value, path: &str) -> String {
        let name = reference_name(property);
        let known = self.sections.iter().find(|(_, known)| *known == name);
        let path = match known {
            Some((path, _)) => path.clone(),
            None => {
                self.sections.push((path.to_owned(), name));
                path.to_owned()
            }
        };
        path.chars()
            .filter(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    }

    fn meaning(&self, property: &Value) -> String {
        let mut meaning = words(property);
        let part = resolve(property, self.schema);
        for (choice, what) in choices(part) {
            meaning.push_str(&format!(" `{choice}`: {what}"));
        }
        meaning
    }
}

/// The name of the type that a property refers to.
fn reference_name(property: &Value) -> String {
    let choices = property["anyOf"].as_array().into_iter().flatten();
    let parts = std::iter::once(property).chain(choices);
    let reference = parts.into_iter().find_map(|part| part["$ref"].as_str());
    let name = reference.and_then(|it| it.rsplit('/').next());
    name.unwrap_or_default().to_owned()
}

/// The allowed words of a value, with their meanings.
fn choices(part: &Value) -> Vec<(String, String)> {
    let choices = part["oneOf"].as_array().into_iter().flatten();
    choices
        .filter_map(|choice| {
            let word = choice["const"].as_str()?;
            Some((word.to_owned(), words(choice)))
        })
        .collect()
}

fn words(part: &Value) -> String {
    let text = part["description"].as_str().unwrap_or_default();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn default(value: &Value) -> String {
    match value {
        Value::Null | Value::Object(_) => String::new(),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::String(text) => format!("`{text}`"),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => format!("`{value}`"),
    }
}
