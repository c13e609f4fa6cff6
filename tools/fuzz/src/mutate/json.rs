//! Mutations of JSON: one value of a tree changes, the rest stays valid.
//!
//! The tree is our own: unlike `serde_json::Value` it can hold duplicate keys and numbers that no
//! machine type can represent.

use serde_json::Value;
use sutler_servers::SeededRng;

/// Maximum bytes added by one step.
const BYTES_MAX: usize = 8 * 1024;

/// Depths near the limits of parsers.
const DEPTHS: [usize; 9] = [1, 2, 20, 62, 97, 100, 124, 128, 3000];

/// Lengths near limits.
const LENGTHS: [usize; 7] = [0, 255, 256, 512, 513, 1024, 10_001];

const NUMBERS: [&str; 18] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.5",
    "0.1",
    "123456789.123456789",
    "1e308",
    "1e999",
    "-1e999",
    "1e-999",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "01",
    "1.",
];

#[derive(Clone, Debug)]
enum Tree {
    /// Printed unchanged.
    Raw(String),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Changes one value; `None` if the bytes are not JSON.
pub(super) fn mutated(
    bytes: &[u8],
    other: &[u8],
    words: &[&str],
    rng: &mut SeededRng,
) -> Option<Vec<u8>> {
    let mut tree = Tree::from(serde_json::from_slice::<Value>(bytes).ok()?);
    let donor = serde_json::from_slice::<Value>(other)
        .map(Tree::from)
        .unwrap_or(Tree::List(vec![]));
    let donor = random_part(donor, rng);
    change(&mut tree, donor, words, rng);
    let mut text = String::new();
    tree.print(&mut text);
    Some(text.into_bytes())
}

/// Descends to a random value and changes it.
fn change(tree: &mut Tree, donor: Tree, words: &[&str], rng: &mut SeededRng) {
    let stop = rng.one_in(3);
    match tree {
        Tree::List(items) if !items.is_empty() && !stop => {
            let at = rng.index(items.len());
            change(&mut items[at], donor, words, rng);
        }
        Tree::Object(entries) if !entries.is_empty() && !stop => {
            let at = rng.index(entries.len());
            change(&mut entries[at].1, donor, words, rng);
        }
        Tree::Object(entries) if !rng.one_in(3) => change_object(entries, donor, words, rng),
        Tree::List(items) if !rng.one_in(3) => change_list(items, donor, rng),
        Tree::Raw(_) | Tree::Text(_) | Tree::List(_) | Tree::Object(_) => {
            let old = std::mem::replace(tree, Tree::Raw(String::new()));
            *tree = changed(old, donor, words, rng);
        }
    }
}

fn change_object(
    entries: &mut Vec<(String, Tree)>,
    donor: Tree,
    words: &[&str],
    rng: &mut SeededRng,
) {
    let word = if words.is_empty() {
        "x"
    } else {
        rng.pick(words)
    };
    if entries.is_empty() {
        entries.push((word.to_owned(), donor));
        return;
    }
    let at = rng.index(entries.len());
    match rng.index(6) {
        0 => {
            entries.remove(at);
        }
        1 => entries.push(entries[at].clone()),
        2 => entries.push((entries[at].0.clone(), donor)),
        3 => word.clone_into(&mut entries[at].0),
        4 => entries[at].0 = "k".repeat(*rng.pick(&LENGTHS)),
        _ => entries.push((word.to_owned(), donor)),
    }
}

fn change_list(items: &mut Vec<Tree>, donor: Tree, rng: &mut SeededRng) {
    if items.is_empty() {
        items.push(donor);
        return;
    }
    let at = rng.index(items.len());
    match rng.index(4) {
        0 => {
            items.remove(at);
        }
        1 => items.push(items[at].clone()),
        2 => {
            let item = items[at].clone();
            let mut printed = String::new();
            item.print(&mut printed);
            let many = (*rng.pick(&[10, 100, 2000])).min(BYTES_MAX / printed.len().max(1));
            items.extend(std::iter::repeat_n(item, many));
        }
        _ => items.push(donor),
    }
}

/// Replaces a value.
fn changed(old: Tree, donor: Tree, words: &[&str], rng: &mut SeededRng) -> Tree {
    match rng.index(12) {
        0 => Tree::Raw("null".to_owned()),
        1 => Tree::Raw((*rng.pick(&["true", "false"])).to_owned()),
        2 | 3 => Tree::Raw((*rng.pick(&NUMBERS)).to_owned()),
        4 => Tree::Text(String::new()),
        5 => Tree::Text("é".repeat(*rng.pick(&LENGTHS))),
        6 if !words.is_empty() => Tree::Text((*rng.pick(words)).to_owned()),
        7 => Tree::List(vec![old]),
        8 => Tree::Object(vec![("inner".to_owned(), old)]),
        9 => wrapped(old, *rng.pick(&DEPTHS), rng),
        10 => Tree::Object(Vec::new()),
        _ => donor,
    }
}

fn wrapped(inner: Tree, depth: usize, rng: &mut SeededRng) -> Tree {
    // Printed, not nested: dropping a deep tree would recurse.
    let key = "k".repeat(*rng.pick(&[1, 1, 90]));
    let (open, close) = if rng.one_in(2) {
        ("[".to_owned(), "]")
    } else {
        (format!("{{\"{key}\":"), "}")
    };
    let mut text = open.repeat(depth);
    inner.print(&mut text);
    text.push_str(&close.repeat(depth));
    Tree::Raw(text)
}

/// A random part of a tree, so that subtrees move between inputs.
fn random_part(tree: Tree, rng: &mut SeededRng) -> Tree {
    if rng.one_in(3) {
        return tree;
    }
    match tree {
        Tree::List(mut items) if !items.is_empty() => {
            let at = rng.index(items.len());
            random_part(items.swap_remove(at), rng)
        }
        Tree::Object(mut entries) if !entries.is_empty() => {
            let at = rng.index(entries.len());
            random_part(entries.swap_remove(at).1, rng)
        }
        Tree::Raw(_) | Tree::Text(_) | Tree::List(_) | Tree::Object(_) => tree,
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Raw(value.to_string()),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => Self::Object(
                entries
                    .into_iter()
                    .map(|(key, one)| (key, one.into()))
                    .collect(),
            ),
        }
    }
}

impl Tree {
    fn print(&self, text: &mut String) {
        match self {
            Self::Raw(raw) => text.push_str(raw),
            Self::Text(string) => text.push_str(&Value::from(string.as_str()).to_string()),
            Self::List(items) => {
                text.push('[');
                for (nth, item) in items.iter().enumerate() {
                    text.push_str(if nth == 0 { "" } else { "," });
                    item.print(text);
                }
                text.push(']');
            }
            Self::Object(entries) => {
                text.push('{');
                for (nth, (key, value)) in entries.iter().enumerate() {
                    text.push_str(if nth == 0 { "" } else { "," });
                    text.push_str(&Value::from(key.as_str()).to_string());
                    text.push(':');
                    value.print(text);
                }
                text.push('}');
            }
        }
    }
}
