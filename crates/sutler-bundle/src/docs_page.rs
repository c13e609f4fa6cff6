//! Markdown page about a bundle, generated from its manifest: `sutler bundle docs`.
//!
//! Reads no files; the manifest is `manifest.rs`.

use crate::action::Action;
use crate::catalog;
use crate::manifest::{
    Condition, Example, Manifest, NumberRange, Parameter, PlanEntry, RangeBound, ValueKind,
    ValueType, duration_text,
};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The page of a bundle.
#[must_use]
pub fn docs_page(manifest: &Manifest) -> String {
    let mut page = String::new();
    let title = text_of(&manifest.metadata, "displayName").unwrap_or(&manifest.name);
    section(&mut page, &format!("# {}", inline(title)));
    section(&mut page, &inline(&manifest.description));
    if let Some(text) = text_of(&manifest.metadata, "longDescription") {
        section(&mut page, &inline(text));
    }
    section(&mut page, &facts(manifest));
    for plan in &manifest.plans {
        section(&mut page, &plan_section(manifest, plan));
    }
    if !manifest.secrets.is_empty() {
        section(&mut page, &secrets(manifest));
    }
    if !manifest.examples.is_empty() {
        section(&mut page, "## Examples");
        for example in &manifest.examples {
            section(&mut page, &example_section(example));
        }
    }
    page
}

/// Adds a part, with an empty line before it.
fn section(page: &mut String, part: &str) {
    if !page.is_empty() {
        page.push('\n');
    }
    page.push_str(part.trim_end());
    page.push('\n');
}

fn facts(manifest: &Manifest) -> String {
    let mut rows: Vec<(&str, String)> = vec![("name", code(&manifest.name))];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("version", manifest.bundle_version.as_deref().map(code));
    let impact = catalog::maintenance(manifest).and_then(|it| it.description);
    add("upgrade", impact.as_deref().map(inline));
    let tags: Vec<String> = manifest.tags.iter().map(|tag| code(tag)).collect();
    add("tags", (!tags.is_empty()).then(|| tags.join(", ")));
    let url = text_of(&manifest.metadata, "documentationUrl");
    let plain = |url: &&str| !url.contains(|c: char| c.is_whitespace() || "<>|".contains(c));
    add(
        "documentation",
        url.filter(plain).map(|url| format!("<{url}>")),
    );
    let provider = text_of(&manifest.metadata, "providerDisplayName");
    add("from", provider.map(inline));
    add(
        "dashboard",
        manifest.dashboard.as_ref().map(|it| code(&it.to_string())),
    );
    let deadlines = Action::ALL.iter().map(|action| {
        let deadline = duration_text(manifest.rules(*action).deadline);
        format!("{action} {deadline}")
    });
    let deadlines: Vec<String> = deadlines.collect();
    add("takes at most", Some(deadlines.join(", ")));
    let rows = rows
        .iter()
        .map(|(name, value)| format!("| {name} | {value} |\n"));
    let rows: String = rows.collect();
    format!("| | |\n|---|---|\n{rows}")
}

fn plan_section(manifest: &Manifest, plan: &PlanEntry) -> String {
    let mut text = format!(
        "## Plan {}\n\n{}\n",
        code(&plan.name),
        inline(&plan.description)
    );
    let mut traits: Vec<String> = Vec::new();
    match plan.free {
        Some(true) => traits.push("is free of charge".to_owned()),
        Some(false) => traits.push("costs money".to_owned()),
        None => (),
    }
    let bindable = manifest.is_bindable(plan);
    traits.push(
        if bindable {
            "can be bound"
        } else {
            "cannot be bound"
        }
        .to_owned(),
    );
    if !plan.updates_to.is_empty() {
        let targets: Vec<String> = plan.updates_to.iter().map(|name| code(name)).collect();
        traits.push(format!("can be changed to {}", targets.join(", ")));
    }
    let _ = writeln!(text, "\nIt {}.", traits.join("; "));
    if plan.parameters.is_empty() {
        text.push_str("\nIt has no parameters.\n");
    } else {
        let _ = write!(text, "\n{}", table(&plan.parameters));
    }
    if bindable && !plan.bind_parameters.is_empty() {
        let _ = write!(text, "\nFor a binding:\n\n{}", table(&plan.bind_parameters));
    }
    text
}

fn table(parameters: &[Parameter]) -> String {
    let mut text = "| parameter | type | default | |\n|---|---|---|---|\n".to_owned();
    for parameter in parameters {
        let default = match (&parameter.default, parameter.secret) {
            (Some(_), true) => "hidden".to_owned(),
            (Some(default), false) => code(&default.to_string()),
            (None, _) => String::new(),
        };
        let name = code(&parameter.name);
        let kind = kind_text(&parameter.value_type);
        let notes = notes(parameter);
        let _ = writeln!(text, "| {name} | {kind} | {default} | {notes} |");
    }
    text
}

fn notes(parameter: &Parameter) -> String {
    let mut notes: Vec<String> = Vec::new();
    if parameter.is_demanded() {
        notes.push("**required**".to_owned());
    }
    let words = [&parameter.title, &parameter.description];
    let words = words.into_iter().flatten();
    notes.extend(words.map(|text| inline(text).trim_end_matches('.').to_owned()));
    notes.extend(rules(&parameter.value_type));
    notes.extend(parameter.conditions.iter().map(condition));
    if parameter.updatable {
        notes.push("may be changed later".to_owned());
    }
    if parameter.secret {
        notes.push("secret".to_owned());
    }
    notes.join("; ")
}

fn condition(condition: &Condition) -> String {
    let values: Vec<String> = condition
        .values
        .iter()
        .map(|it| code(&it.to_string()))
        .collect();
    let key = code(&condition.key);
    format!("only if {key} is {}", values.join(" or "))
}

fn kind_text(value_type: &ValueType) -> String {
    match &value_type.kind {
        ValueKind::Array {
            items: Some(items), ..
        } => format!("list of {}", kind_text(items)),
        kind => kind.name().to_owned(),
    }
}

/// Rules of a value, as text.
fn rules(value_type: &ValueType) -> Vec<String> {
    let mut rules = Vec::new();
    if let Some(choices) = &value_type.choices {
        let choices: Vec<String> = choices.iter().map(|it| code(&it.to_string())).collect();
        rules.push(format!("one of {}", choices.join(", ")));
    }
    let count = |least: &Option<u64>, most: &Option<u64>, of: &str| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most} {of}")),
        (Some(least), None) => Some(format!("at least {least} {of}")),
        (None, Some(most)) => Some(format!("at most {most} {of}")),
        (None, None) => None,
    };
    match &value_type.kind {
        ValueKind::Text {
            min_length,
            max_length,
            pattern,
        } => {
            rules.extend(count(min_length, max_length, "characters"));
            rules.extend(
                pattern
                    .as_ref()
                    .map(|it| format!("like {}", code(it.as_str()))),
            );
        }
        ValueKind::Integer(range) | ValueKind::Number(range) => rules.extend(range_rules(range)),
        ValueKind::Array {
            min_items,
            max_items,
            ..
        } => rules.extend(count(min_items, max_items, "items")),
        ValueKind::Object { properties, .. } if !properties.is_empty() => {
            let names: Vec<String> = properties
                .iter()
                .map(|it| format!("{} ({})", code(&it.name), kind_text(&it.value_type)))
                .collect();
            rules.push(format!("with {}", names.join(", ")));
        }
        ValueKind::Object { .. } | ValueKind::Boolean | ValueKind::Null => (),
    }
    rules
}

fn range_rules(range: &NumberRange) -> Vec<String> {
    let end = |bound: &Option<RangeBound>, plain: &str, strict: &str| {
        let bound = bound.as_ref()?;
        let word = if bound.exclusive { strict } else { plain };
        Some(format!("{word} {}", bound.value))
    };
    let multiple = range.multiple_of.as_ref();
    [
        end(&range.lower, "at least", "more than"),
        end(&range.upper, "at most", "less than"),
        multiple.map(|it| format!("a multiple of {it}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn secrets(manifest: &Manifest) -> String {
    let mut text = "## Secrets\n\nThe operator gives it these, as files:\n".to_owned();
    for secret in &manifest.secrets {
        let _ = write!(text, "\n- {}", code(&secret.name));
        if !secret.keys.is_empty() {
            let keys: Vec<String> = secret.keys.iter().map(|key| code(key)).collect();
            let _ = write!(text, " with {}", keys.join(", "));
        }
        if !secret.required {
            text.push_str(" (optional)");
        }
        if let Some(description) = &secret.description {
            let _ = write!(text, ": {}", inline(description));
        }
    }
    text
}

fn example_section(example: &Example) -> String {
    let mut text = format!("### {}\n", inline(&example.name));
    if let Some(description) = &example.description {
        let _ = writeln!(text, "\n{}", inline(description));
    }
    let _ = writeln!(text, "\nPlan {}:", code(&example.plan));
    let _ = write!(text, "\n{}", block(&example.parameters));
    if !example.bind_parameters.is_empty() {
        let _ = write!(text, "\nA binding:\n\n{}", block(&example.bind_parameters));
    }
    if let Some(update) = &example.update {
        let to = update.plan.as_ref();
        let to = to.map_or_else(String::new, |plan| format!(" to the plan {}", code(plan)));
        let _ = write!(text, "\nChanged{to} by:\n\n{}", block(&update.parameters));
    }
    text
}

fn block(parameters: &Map<String, Value>) -> String {
    let json = Value::Object(parameters.clone());
    format!("```json\n{json:#}\n```\n")
}

fn text_of<'a>(metadata: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    let text = metadata.get(key)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// Escapes text for one line of Markdown: no line breaks, no Markdown or HTML syntax.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars().filter(|c| !c.is_control()) {
            match c {
                '<' => out.push_str("&lt;"),
                '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                    out.push('\\');
                    out.push(c);
                }
                c => out.push(c),
            }
        }
    }
    out
}

/// Escapes text for a code span in a table cell, where a bar would end the cell.
fn code(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let plain = plain.replace('|', "\\|");
    match plain.contains('`') {
        true => format!("`` {plain} ``"),
        false => format!("`{plain}`"),
    }
}

#[cfg(test)]
mod tests;
