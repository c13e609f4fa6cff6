//! Patterns of paths: literal segments, names in braces, and verbs after a colon.
//!
//! `/instances/{name}:undelete` matches `/instances/db:undelete`. A path is split before its names are decoded, so a name
//! may have any character; a colon in a name is written as `%3A`.

use percent_encoding::percent_decode_str;

/// Names of a path that were matched, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathNames(Vec<(&'static str, String)>);

impl PathNames {
    /// The part of the path that the pattern names so; empty if it names none so.
    pub(crate) fn get(&self, name: &str) -> &str {
        let mut names = self.0.iter();
        let found = names.find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    #[cfg(test)]
    pub(crate) fn of(names: &[(&'static str, &str)]) -> Self {
        let names = names
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Self(names.collect())
    }
}

/// The names of a path, if it has the form of a pattern.
pub(crate) fn matched(pattern: &'static str, path: &str) -> Option<PathNames> {
    let mut expected = pattern.split('/');
    let mut present = path.split('/');
    let mut names = Vec::new();
    loop {
        match (expected.next(), present.next()) {
            (None, None) => return Some(PathNames(names)),
            (Some(expected), Some(present)) => segment(expected, present, &mut names)?,
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
}

/// Matches one segment. `None`: it does not match.
fn segment(
    expected: &'static str,
    present: &str,
    names: &mut Vec<(&'static str, String)>,
) -> Option<()> {
    let Some((name, verb)) = expected.strip_prefix('{').and_then(|it| it.split_once('}')) else {
        return (expected == present).then_some(());
    };
    let value = present.strip_suffix(verb)?;
    if value.is_empty() || value.contains(':') {
        return None;
    }
    let value = percent_decode_str(value).decode_utf8().ok()?;
    names.push((name, value.into_owned()));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{PathNames, matched};

    #[test]
    fn names_are_decoded_after_the_path_is_split() {
        let found = matched(
            "/namespaces/{ns}/instances/{name}",
            "/namespaces/a/instances/b%2Fc",
        );
        let expected = PathNames::of(&[("ns", "a"), ("name", "b/c")]);
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn a_verb_belongs_to_its_pattern_only() {
        let plain = "/instances/{name}";
        let verb = "/instances/{name}:undelete";
        assert_eq!(matched(plain, "/instances/db:undelete"), None);
        assert_eq!(matched(verb, "/instances/db"), None);
        assert_eq!(matched(verb, "/instances/:undelete"), None);
        assert_eq!(matched(verb, "/instances/a:b:undelete"), None);
        let found = matched(verb, "/instances/a%3Ab:undelete");
        assert_eq!(found, Some(PathNames::of(&[("name", "a:b")])));
        assert!(matched("/instances:adopt", "/instances:adopt").is_some());
    }

    #[test]
    fn other_paths_do_not_match() {
        for path in [
            "/instances",
            "/instances/",
            "/instances/a/b",
            "instances/a",
            "/instances/%FF",
        ] {
            assert_eq!(matched("/instances/{name}", path), None, "{path}");
        }
    }
}
