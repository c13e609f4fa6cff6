//! Selection of images and tags of a registry. Pure.
//!
//! Without an allow list all images are allowed; a denied image is never selected, even if it is allowed. Every
//! image has the default tag; some have more, and each tag is a separate item.

use crate::registry::Item;
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;

/// Maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_024;
/// Maximum size of a compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of patterns, and of images with named tags.
const ENTRIES_MAX: usize = 1_000;
/// Default tag.
pub const DEFAULT_TAG: &str = "latest";

/// Selection as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageSelection {
    /// Regular expressions of allowed images, each of which may match anywhere in a name; `None` allows all
    /// images.
    pub allow: Option<Vec<String>>,
    /// Regular expressions of denied images, which take precedence over `allow`.
    pub deny: Vec<String>,
    /// Tag of every image; `latest` if none is given.
    pub default_tag: Option<String>,
    /// More tags, by the full name of an image or its last part.
    pub named: BTreeMap<String, Vec<String>>,
}

/// Compiled selection.
#[derive(Clone, Debug)]
pub struct ImageFilter {
    allow: Option<Vec<Regex>>,
    deny: Vec<Regex>,
    tag: String,
    named: BTreeMap<String, Vec<String>>,
}

impl Default for ImageFilter {
    fn default() -> Self {
        Self {
            allow: None,
            deny: Vec::new(),
            tag: DEFAULT_TAG.to_owned(),
            named: BTreeMap::new(),
        }
    }
}

impl ImageFilter {
    /// Compiles a selection.
    ///
    /// # Errors
    /// A pattern or a tag is invalid; the sentence names it.
    pub fn new(wishes: &ImageSelection) -> Result<Self, String> {
        let lists = wishes.allow.iter().flatten().count() + wishes.deny.len();
        if lists > ENTRIES_MAX || wishes.named.len() > ENTRIES_MAX {
            return Err(format!(
                "there are more than {ENTRIES_MAX} patterns or images with tags: use fewer patterns that \
                 match more"
            ));
        }
        let tag = wishes
            .default_tag
            .clone()
            .unwrap_or_else(|| DEFAULT_TAG.to_owned());
        for tag in wishes.named.values().flatten().chain([&tag]) {
            if !is_tag(tag) {
                return Err(format!(
                    "{tag:?} is not a tag: use letters, digits, `_`, `.` and `-`, at most 128 of them"
                ));
            }
        }
        let allow = wishes.allow.as_ref().map(|list| compiled(list));
        Ok(Self {
            allow: allow.transpose()?,
            deny: compiled(&wishes.deny)?,
            tag,
            named: wishes.named.clone(),
        })
    }

    /// Whether an image is selected.
    #[must_use]
    pub fn wants(&self, image: &str) -> bool {
        let is_among = |list: &Vec<Regex>| list.iter().any(|it| it.is_match(image));
        self.allow.as_ref().is_none_or(is_among) && !is_among(&self.deny)
    }

    /// Selected tags of an image, the default tag first.
    pub fn tags(&self, image: &str) -> impl Iterator<Item = &str> {
        let last = image.rsplit('/').next().unwrap_or(image);
        let whole = self.named.get(image).into_iter();
        // An image without a path is its own last part.
        let last = (last != image).then(|| self.named.get(last)).flatten();
        let named = whole.chain(last).flatten().map(String::as_str);
        std::iter::once(self.tag.as_str()).chain(named)
    }

    /// Selected items of these images.
    #[must_use]
    pub fn items<'a>(&self, images: impl Iterator<Item = &'a str>) -> Vec<Item> {
        let filter = images.filter(|image| self.wants(image));
        let items = filter.flat_map(|image| self.tags(image).map(|tag| Item::new(image, tag)));
        items.collect()
    }
}

fn compiled(patterns: &[String]) -> Result<Vec<Regex>, String> {
    let compile = |text: &String| {
        let built = RegexBuilder::new(text)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build();
        match built {
            Ok(pattern) if text.len() <= PATTERN_BYTES_MAX => Ok(pattern),
            Ok(_) | Err(_) => Err(format!(
                "{text:?} is not a usable regular expression: close every bracket, leave out \
                 look-around and back-references, and keep it below {PATTERN_BYTES_MAX} bytes"
            )),
        }
    };
    patterns.iter().map(compile).collect()
}

/// Whether a text is a valid tag.
pub(crate) fn is_tag(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes
        .next()
        .is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_');
    let goes_on = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b'-');
    begins && text.len() <= 128 && bytes.all(goes_on)
}

/// Whether a text is a valid image name: parts of lower-case letters, digits and single separators.
pub(crate) fn is_image(text: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_part = |part: &str| {
        let allowed = part
            .bytes()
            .all(|it| is_letter(it) || matches!(it, b'_' | b'.' | b'-'));
        let ends = [part.bytes().next(), part.bytes().next_back()];
        allowed && !part.contains("..") && ends.into_iter().all(|it| it.is_some_and(is_letter))
    };
    text.len() <= 255 && text.split('/').all(is_part)
}

/// Whether a text is a valid image name with a host, as an engine takes it: no character that an engine or a
/// terminal could interpret.
pub(crate) fn is_reference(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"._-/:[]".contains(&it);
    let begins = text
        .bytes()
        .next()
        .is_some_and(|it| it != b'-' && it != b'/');
    begins && text.len() <= 512 && text.bytes().all(fits) && !text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(wishes: &ImageSelection) -> ImageFilter {
        ImageFilter::new(wishes).expect("they make sense")
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn without_an_allow_list_all_images_except_denied_ones_are_selected() {
        assert!(filter(&ImageSelection::default()).wants("any/thing"));
        let wishes = ImageSelection {
            deny: texts(&["^org/bad-apb$"]),
            ..ImageSelection::default()
        };
        assert!(filter(&wishes).wants("org/good-apb"));
        assert!(!filter(&wishes).wants("org/bad-apb"));
    }

    #[test]
    fn an_empty_allow_list_selects_nothing_and_a_denial_takes_precedence() {
        let nothing = ImageSelection {
            allow: Some(Vec::new()),
            ..ImageSelection::default()
        };
        assert!(!filter(&nothing).wants("org/hello-apb"));
        let both = ImageSelection {
            allow: Some(texts(&[".*-apb$"])),
            deny: texts(&["broken"]),
            ..ImageSelection::default()
        };
        let both = filter(&both);
        assert!(both.wants("org/hello-apb"));
        assert!(!both.wants("org/hello"));
        assert!(!both.wants("org/broken-apb"));
    }

    #[test]
    fn named_tags_are_items_of_their_own_by_the_whole_name_or_its_last_part() {
        let named = [
            ("hello-apb", ["v1.0", "v2.0"].as_slice()),
            ("org/postgres-apb", &["v3.9"]),
        ];
        let wishes = ImageSelection {
            named: named
                .map(|(image, tags)| (image.to_owned(), texts(tags)))
                .into(),
            ..ImageSelection::default()
        };
        let images = ["org/hello-apb", "org/postgres-apb", "other/postgres-apb"];
        let items = filter(&wishes).items(images.into_iter());
        let items: Vec<String> = items.iter().map(Item::to_string).collect();
        let expected = [
            "org/hello-apb:latest",
            "org/hello-apb:v1.0",
            "org/hello-apb:v2.0",
            "org/postgres-apb:latest",
            "org/postgres-apb:v3.9",
            "other/postgres-apb:latest",
        ];
        assert_eq!(items, expected);
    }

    #[test]
    fn invalid_patterns_and_tags_are_reported() {
        let pattern = ImageSelection {
            deny: texts(&["(open"]),
            ..ImageSelection::default()
        };
        let sentence = ImageFilter::new(&pattern).expect_err("no pattern");
        assert!(sentence.contains("(open"), "{sentence}");
        let tag = ImageSelection {
            default_tag: Some("no tag".to_owned()),
            ..ImageSelection::default()
        };
        assert!(ImageFilter::new(&tag).is_err());
    }

    #[test]
    fn references_that_an_engine_could_misread_are_refused() {
        for name in ["app", "registry.example:5000/org/app", "[::1]:5000/app"] {
            assert!(is_reference(name), "{name}");
        }
        let long = "a".repeat(513);
        for name in [
            "",
            "-v",
            "/a",
            "a b",
            "a\u{1b}[2J",
            "https://a/b",
            "a@b",
            &long,
        ] {
            assert!(!is_reference(name), "{name}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_images() {
        for name in ["a", "org/hello-apb", "a/b__c/d.e", "a--b"] {
            assert!(is_image(name), "{name}");
        }
        for name in [
            "", "/a", "a/", "a//b", "../a", "a/../b", "A", "a?b", "a b", "-a", "a%2fb",
        ] {
            assert!(!is_image(name), "{name}");
        }
    }
}
