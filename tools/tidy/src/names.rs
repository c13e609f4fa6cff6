//! The names of types: their definitions, their numbers of words, and which are participles.
//!
//! Pure over [`Source`] texts; the rules that use it are in `tests/it/names.rs`, the figures are printed
//! by `cargo run -p sutler-tidy -- names`.

use crate::Source;

/// A definition of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The type's name.
    pub name: String,
    /// The line of its name, from 1.
    pub line: usize,
    /// Whether it derives `thiserror::Error`.
    pub error: bool,
}

/// Words that begin the definition of a type.
const KINDS: [&str; 4] = ["struct", "enum", "union", "trait"];

/// Words that end in `ed` and are not participles.
const NOUNS_IN_ED: [&str; 7] = ["Bed", "Deed", "Feed", "Need", "Seed", "Shed", "Speed"];

/// Participles that do not end in `ed`. `Lost` is an error of the glossary; `Read`, `Set` and `Put`
/// are nouns or verbs as often.
const IRREGULAR: [&str; 53] = [
    "Begun",
    "Bought",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Come",
    "Cut",
    "Done",
    "Drawn",
    "Driven",
    "Felt",
    "Forgotten",
    "Found",
    "Frozen",
    "Given",
    "Gone",
    "Grown",
    "Had",
    "Heard",
    "Held",
    "Hidden",
    "Hurt",
    "Kept",
    "Known",
    "Laid",
    "Led",
    "Left",
    "Lent",
    "Made",
    "Meant",
    "Met",
    "Overtaken",
    "Paid",
    "Ran",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Shut",
    "Sought",
    "Spent",
    "Stuck",
    "Taken",
    "Thought",
    "Thrown",
    "Told",
    "Torn",
    "Understood",
    "Won",
    "Worn",
    "Written",
];

/// Prefixes of participles: `Unread`, `Rewritten`.
const PREFIXES: [&str; 3] = ["Un", "Re", "Over"];

/// The words of a name in camel case; digits belong to the word before them.
#[must_use]
pub fn words(name: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let letters: Vec<(usize, char)> = name.char_indices().collect();
    for pair in letters.windows(2) {
        let [(_, before), (at, here)] = pair else {
            continue;
        };
        if here.is_uppercase() && !before.is_uppercase() {
            starts.push(*at);
        }
    }
    starts.push(name.len());
    let ends = starts.windows(2);
    ends.filter_map(|pair| name.get(*pair.first()?..*pair.last()?))
        .collect()
}

/// Whether a name is a past participle and nothing else.
#[must_use]
pub fn is_participle(name: &str) -> bool {
    if words(name).len() != 1 {
        return false;
    }
    let bare = PREFIXES.iter().find_map(|it| {
        let rest = name.strip_prefix(it)?;
        let first = rest.chars().next()?;
        Some(format!(
            "{}{}",
            first.to_uppercase(),
            &rest[first.len_utf8()..]
        ))
    });
    let irregular = |word: &str| IRREGULAR.contains(&word) || word == "Read";
    (name.ends_with("ed") && !NOUNS_IN_ED.contains(&name))
        || IRREGULAR.contains(&name)
        || bare.is_some_and(|it| irregular(&it))
}

/// The types that a file defines, top to bottom. Associated types are not definitions.
#[must_use]
pub fn definitions(source: &Source) -> Vec<Definition> {
    let mut found = Vec::new();
    let mut derives = String::new();
    for (number, line) in source.code().lines().enumerate() {
        let trimmed = line.trim();
        // A derive may go over several lines; what it lists counts until the next item.
        if let Some(name) = defined(line) {
            found.push(Definition {
                name: name.to_owned(),
                line: number + 1,
                error: derives_error(&derives, source),
            });
            derives.clear();
        } else if trimmed.ends_with(['{', '}', ';']) {
            derives.clear();
        } else if trimmed.starts_with("#[derive(") || !derives.is_empty() {
            derives.push_str(trimmed);
        }
    }
    found
}

fn derives_error(derives: &str, source: &Source) -> bool {
    let lists = derives.split("derive(").skip(1);
    let mut names = lists.flat_map(|it| it.split(')').next().unwrap_or_default().split(','));
    let imported = source.code().contains("use thiserror::Error");
    names.any(|it| it.trim() == "thiserror::Error" || (imported && it.trim() == "Error"))
}

/// The type that this line defines.
fn defined(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let alias = line.starts_with("type ") || line.starts_with("pub");
    let code = code.strip_prefix("pub").map_or(code, |rest| {
        let rest = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        rest.map_or(&code["pub".len()..], |(_, rest)| rest)
    });
    let code = code.trim_start();
    let code = code.strip_prefix("unsafe ").unwrap_or(code);
    let (kind, rest) = code.split_once(' ')?;
    if !(KINDS.contains(&kind) || kind == "type" && alias) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    name.starts_with(char::is_uppercase).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{definitions, is_participle, words};
    use crate::Source;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("Asked"), ["Asked"]);
        assert_eq!(words("PinnedPlan"), ["Pinned", "Plan"]);
        assert_eq!(words("HTTPReply"), ["HTTPReply"]);
        assert_eq!(words("Layout1Rows"), ["Layout1", "Rows"]);
    }

    #[test]
    fn a_participle_alone_is_found_and_one_with_a_noun_is_not() {
        for name in ["Asked", "Seen", "Kept", "Unread", "Rewritten", "Overtaken"] {
            assert!(is_participle(name), "{name}");
        }
        for name in [
            "AskedPlan",
            "Seed",
            "Feed",
            "Lost",
            "Read",
            "Store",
            "Record",
            "Rebind",
        ] {
            assert!(!is_participle(name), "{name}");
        }
    }

    #[test]
    fn definitions_are_found_with_whether_they_are_errors() {
        let text = "use x::y;\n#[derive(Debug, thiserror::Error)]\n#[error(\"no\")]\npub(crate) struct ReadError;\n\
            trait Kept {\n    type Item;\n}\nimpl Kept for u8 {\n    type Item = u8;\n}\ntype Pair = (u8, u8);\n\
            // struct No;\n#[derive(\n    Debug,\n    thiserror::Error,\n)]\nenum Trouble {}\n";
        let found = definitions(&Source::new(text));
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.line, it.error))
            .collect();
        let expected = [
            ("ReadError", 4, true),
            ("Kept", 5, false),
            ("Pair", 11, false),
            ("Trouble", 17, true),
        ];
        assert_eq!(found, expected);
    }
}
