//! Cases about recommended names, ids and other texts of a catalog.

use super::field::{CaseVerdict, CatalogVerdict, Places, offering_places, plan_places};
use crate::case::{Case, Level, Scope};
use crate::options::Profile;
use serde_json::Value;
use uuid::Uuid;

pub(super) const LENGTHS: Case = Case {
    name: "catalog-lengths",
    line: "B-053",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "Ids, names, descriptions and tags are not longer than 255 characters.",
};

pub(super) const CLI_FRIENDLY: Case = Case {
    name: "catalog-names",
    line: "B-054",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "Names can be typed: letters, digits, `.` and `-` only, and not only the last two; the suites for 2.13 take small letters, digits and `-`.",
};

pub(super) const UNRESERVED: Case = Case {
    name: "catalog-ids-unreserved",
    line: "B-021",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "Ids need no encoding in a URL: letters, digits, `-`, `.`, `_` and `~` only.",
};

pub(super) const GUID: Case = Case {
    name: "catalog-ids-guid",
    line: "B-056",
    level: Level::Should,
    scope: Scope::Broker,
    rule: "Ids are GUIDs, so that no other broker has the same.",
};

/// Longest text, in characters.
const LENGTH_MAX: usize = 255;

/// Checks the texts of offerings and plans.
pub(super) fn check(catalog: &Value, profile: Profile, into: &mut Vec<CaseVerdict>) {
    let mut places = offering_places(catalog);
    places.extend(plan_places(catalog));
    let texts = ["id", "name", "description", "tags"];
    into.push((&LENGTHS, each(&places, &texts, is_short)));
    let typeable = match profile {
        Profile::V2_17 => is_typeable,
        Profile::Compat2_13 => is_plain,
    };
    into.push((&CLI_FRIENDLY, each(&places, &["name"], typeable)));
    into.push((&UNRESERVED, each(&places, &["id"], is_unreserved)));
    into.push((&GUID, each(&places, &["id"], is_guid)));
}

fn each(
    places: &Places<'_>,
    fields: &[&str],
    check: fn(&str) -> Result<(), &'static str>,
) -> CatalogVerdict {
    let mut case_verdict = CatalogVerdict::Nowhere("the catalog has no offering".to_owned());
    for (place, value) in places {
        for field in fields {
            for text in texts(&value[*field]) {
                if let Err(why) = check(text) {
                    return CatalogVerdict::Judged(Err(format!("{place}: `{field}` {why}")));
                }
                case_verdict = CatalogVerdict::Judged(Ok(()));
            }
        }
    }
    case_verdict
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_short(text: &str) -> Result<(), &'static str> {
    if text.chars().count() <= LENGTH_MAX {
        Ok(())
    } else {
        Err("is longer than 255 characters")
    }
}

fn is_typeable(text: &str) -> Result<(), &'static str> {
    let plain = |it: char| it.is_alphanumeric() || matches!(it, '.' | '-');
    if !text.chars().all(plain) {
        Err("has other characters than letters, digits, `.` and `-`")
    } else if text.chars().any(char::is_alphanumeric) {
        Ok(())
    } else {
        Err("has neither letters nor digits")
    }
}

/// Names that the test suites for 2.13 accept.
fn is_plain(text: &str) -> Result<(), &'static str> {
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    if text.chars().all(plain) {
        is_typeable(text)
    } else {
        Err("has other characters than small letters, digits and `-`")
    }
}

fn is_unreserved(text: &str) -> Result<(), &'static str> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_' | '~');
    if text.chars().all(plain) {
        Ok(())
    } else {
        Err("has characters that must be encoded in a URL")
    }
}

fn is_guid(text: &str) -> Result<(), &'static str> {
    match Uuid::try_parse(text) {
        Ok(_) => Ok(()),
        Err(_) => Err("is not a GUID"),
    }
}
