//! Names that no other offering may have. Compact, because every spec has them.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Names that no other offering may have: its name, its id, the ids of its plans. Sorted, without duplicates,
/// cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Box<str>>", into = "Vec<Box<str>>")]
pub struct ClaimedNames(Arc<[Box<str>]>);

impl ClaimedNames {
    /// Iterates over the names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether a name is claimed.
    #[must_use]
    pub fn contains(&self, what: &str) -> bool {
        let base_url = self.0.binary_search_by(|it| it.as_ref().cmp(what));
        base_url.is_ok()
    }
}

impl<T: Into<Box<str>>> FromIterator<T> for ClaimedNames {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let all: Vec<Box<str>> = all.into_iter().map(Into::into).collect();
        Self::from(all)
    }
}

impl From<Vec<Box<str>>> for ClaimedNames {
    fn from(mut all: Vec<Box<str>>) -> Self {
        all.sort_unstable();
        all.dedup();
        Self(all.into())
    }
}

impl From<ClaimedNames> for Vec<Box<str>> {
    fn from(wants: ClaimedNames) -> Self {
        wants.0.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::ClaimedNames;

    #[test]
    fn duplicate_names_are_kept_once_in_any_order() {
        let one: ClaimedNames = ["b", "a", "b"].into_iter().collect();
        let other: ClaimedNames = ["a", "b"].into_iter().collect();
        assert_eq!(one, other);
        assert!(one.contains("a") && one.contains("b") && !one.contains("c"));
        assert_eq!(serde_json::to_string(&one).expect("JSON"), r#"["a","b"]"#);
        let read: ClaimedNames = serde_json::from_str(r#"["b","a"]"#).expect("a list");
        assert_eq!(read, one);
    }
}
