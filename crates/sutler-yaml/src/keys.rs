//! Finds keys in any spelling: `plan-updateable`, `plan_updateable`, `planUpdateable`,
//! and `a.b.c: 1` for three nested mappings.
//!
//! Only for keys with a known meaning; free-form values keep their keys as written.

use crate::node::Node;

/// Longest key that is compared with known keys; a longer one is not a typing error.
const COMPARED_BYTES_MAX: usize = 64;

/// Normalises a key: lower case, without `-` and `_`.
pub fn plain(key: &str) -> String {
    let significant = key.chars().filter(|c| !matches!(c, '-' | '_'));
    significant.flat_map(char::to_lowercase).collect()
}

/// Every value under this path, where any number of segments may be written as one dotted key.
pub fn values_at<'a>(node: &'a Node, path: &[&str]) -> Vec<&'a Node> {
    if path.is_empty() {
        return vec![node];
    }
    let mut found = Vec::new();
    for (key, value) in node.entries().unwrap_or_default() {
        let segments: Vec<String> = key.split('.').map(plain).collect();
        let is_prefix = segments.len() <= path.len()
            && segments
                .iter()
                .zip(path)
                .all(|(one, other)| *one == plain(other));
        if is_prefix {
            found.extend(values_at(value, &path[segments.len()..]));
        }
    }
    found
}

/// Every value that is not a mapping, with its path.
pub fn leaves(node: &Node) -> Vec<(Vec<&str>, &Node)> {
    let Some(entries) = node.entries() else {
        return vec![(Vec::new(), node)];
    };
    let mut found = Vec::new();
    for (key, value) in entries {
        for (path, leaf) in leaves(value) {
            found.push((key.split('.').chain(path).collect(), leaf));
        }
    }
    found
}

/// The known key with the smallest edit distance, if it is small enough.
pub fn nearest<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let key = plain(key);
    if key.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let distances = known
        .into_iter()
        .map(|candidate| (distance(&key, &plain(candidate)), candidate));
    let allowed = (key.chars().count() / 4).clamp(1, 3);
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(candidate)
}

/// Edit distance: letters changed, added, removed or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (nth, letter) in one.iter().enumerate() {
        let mut row = vec![nth + 1];
        for (column, compared) in other.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != compared);
            let mut least = replaced.min(row[column] + 1).min(above[column + 1] + 1);
            let swapped =
                nth > 0 && column > 0 && *letter == other[column - 1] && one[nth - 1] == *compared;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn two_swapped_letters_are_one_edit() {
        assert_eq!(distance("lisetn", "listen"), 1);
        assert_eq!(distance("listen", "listen"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("ca", "abc"), 3);
    }

    #[test]
    fn a_distant_key_has_no_nearest_key() {
        assert_eq!(nearest("lisen", ["listen", "users"]), Some("listen"));
        assert_eq!(nearest("elephant", ["listen", "users"]), None);
        assert_eq!(nearest(&"x".repeat(1_000), ["listen"]), None);
    }
}
