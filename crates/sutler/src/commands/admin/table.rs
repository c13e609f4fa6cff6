//! Tables: the columns of each list, and single items as name and value. Pure.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// A list: its path and its columns.
pub(super) struct ListTable {
    /// Its path, and its name.
    pub path: &'static str,
    /// Heading and member.
    pub columns: &'static [(&'static str, &'static str)],
    /// The members that name an item.
    pub names: &'static [&'static str],
}

pub(super) const INSTANCES: ListTable = ListTable {
    path: "instances",
    columns: &[
        ("INSTANCE", "id"),
        ("LIFECYCLE", "lifecycle"),
        ("SERVICE", "service_id"),
        ("PLAN", "plan_id"),
        ("VERSION", "version"),
        ("UPGRADE", "upgrade_to"),
        ("CREATED", "created"),
        ("LAST OPERATION", "last_operation"),
    ],
    names: &["id"],
};

pub(super) const BINDINGS: ListTable = ListTable {
    path: "bindings",
    columns: &[
        ("INSTANCE", "instance_id"),
        ("BINDING", "id"),
        ("LIFECYCLE", "lifecycle"),
        ("SERVICE", "service_id"),
        ("PLAN", "plan_id"),
        ("CREATED", "created"),
    ],
    names: &["instance_id", "id"],
};

pub(super) const OPERATIONS: ListTable = ListTable {
    path: "operations",
    columns: &[
        ("OPERATION", "id"),
        ("VERB", "verb"),
        ("STATE", "state"),
        ("INSTANCE", "instance_id"),
        ("BINDING", "binding_id"),
        ("ATTEMPT", "attempt"),
        ("ACCEPTED", "accepted"),
        ("DESCRIPTION", "description"),
    ],
    names: &["id"],
};

pub(super) const AUDIT: ListTable = ListTable {
    path: "audit",
    columns: &[
        ("AT", "at"),
        ("WHO", "who"),
        ("VERB", "verb"),
        ("OUTCOME", "outcome"),
        ("INSTANCE", "on.instance_id"),
        ("BINDING", "on.binding_id"),
        ("REASON", "reason"),
    ],
    names: &["id"],
};

/// Longest text of a cell, in characters.
const CELL_CHARS_MAX: usize = 60;

/// Renders a list as columns.
pub(super) fn rows(listed: &ListTable, items: &[Value]) -> String {
    let mut table = plain();
    table.set_header(listed.columns.iter().map(|(heading, _)| *heading));
    for item in items {
        table.add_row(listed.columns.iter().map(|(_, member)| cell(item, member)));
    }
    trimmed(&table)
}

/// Renders the names of the items, one per line.
pub(super) fn names(listed: &ListTable, items: &[Value]) -> String {
    items.iter().fold(String::new(), |text, item| {
        let name: Vec<String> = listed.names.iter().map(|it| whole(item, it)).collect();
        text + &name.join(" ") + "\n"
    })
}

/// Renders a single item, one member per line; members of inner objects follow a dot.
pub(super) fn members(thing: &Value) -> String {
    let mut table = plain();
    add_members(&mut table, "", thing);
    trimmed(&table)
}

fn add_members(table: &mut Table, prefix: &str, thing: &Value) {
    let Value::Object(fields) = thing else {
        return;
    };
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(_) => add_members(table, &format!("{name}."), value),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for (index, item) in items.iter().enumerate() {
                    add_members(table, &format!("{name}.{index}."), item);
                }
            }
            other => {
                table.add_row([name, text(other)]);
            }
        }
    }
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Removes leading and trailing blanks of each line.
fn trimmed(table: &Table) -> String {
    table.lines().fold(String::new(), |text, line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        text + line.trim_end() + "\n"
    })
}

fn cell(item: &Value, member: &str) -> String {
    let text = to_the_second(whole(item, member));
    if text.chars().count() <= CELL_CHARS_MAX {
        return text;
    }
    let kept: String = text.chars().take(CELL_CHARS_MAX - 1).collect();
    kept + "…"
}

/// A time without fractions of a second.
fn to_the_second(text: String) -> String {
    match text.split_once('.') {
        Some((time, _)) if text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok() => {
            format!("{time}Z")
        }
        _ => text,
    }
}

fn whole(item: &Value, member: &str) -> String {
    text(member.split('.').fold(item, |item, name| &item[name]))
}

/// A value as text, without control characters.
fn text(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(text).collect();
            texts.join(", ")
        }
        other => other.to_string(),
    };
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{AUDIT, INSTANCES, cell, members, names, rows};
    use serde_json::json;

    #[test]
    fn columns_are_aligned_with_their_headings() {
        let items = [
            json!({ "id": "a", "lifecycle": "live", "service_id": "database", "plan_id": "small" }),
            json!({ "id": "a-long-one", "lifecycle": "create_failed", "service_id": "q", "plan_id": "p" }),
        ];
        let table = rows(&INSTANCES, &items);
        let lines: Vec<&str> = table.lines().collect();
        let at = lines[0].find("SERVICE").expect("a heading");
        assert!(lines[1][at..].starts_with("database"), "{table}");
        assert!(lines[2][at..].starts_with('q'), "{table}");
        assert!(lines.iter().all(|line| !line.ends_with(' ')));
        assert_eq!(names(&INSTANCES, &items), "a\na-long-one\n");
    }

    #[test]
    fn control_characters_are_not_printed() {
        let item = json!({ "who": "x\u{1b}[31m", "on": { "instance_id": "i" } });
        assert_eq!(cell(&item, "who"), "x [31m");
        assert!(rows(&AUDIT, &[item]).contains(" i "));
    }

    #[test]
    fn times_have_no_fractions_and_true_is_printed_as_yes() {
        let item = json!({
            "created": "2026-01-01T00:00:01.618933313Z", "id": "1.2Z", "lifecycle": true,
        });
        assert_eq!(cell(&item, "created"), "2026-01-01T00:00:01Z");
        assert_eq!(cell(&item, "id"), "1.2Z");
        assert_eq!(cell(&item, "lifecycle"), "yes");
    }

    #[test]
    fn a_single_object_has_one_member_per_line() {
        let thing = json!({ "id": "i", "last": { "verb": "bind" }, "state_keys": ["a", "b"], "none": null });
        let shown = members(&thing);
        assert!(shown.contains("last.verb"), "{shown}");
        assert!(shown.contains("a, b"), "{shown}");
        assert_eq!(shown.lines().count(), 4);
    }
}
