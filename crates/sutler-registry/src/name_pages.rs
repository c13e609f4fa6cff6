//! Listings that come in pages, whoever serves them: read to their end, within bounds.
//!
//! What a page says is read by whoever knows its form (`oci/names.rs`, `hub.rs`, `quay.rs`). Here is what holds
//! for all: a page that leads to another server or to itself, and one that moved while it was read, make no
//! listing. What is no name of an image is passed over: it cannot be pulled, and leads who knows where.

use crate::http_error::HttpError;
use crate::selection::is_image;
use async_trait::async_trait;
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;

/// Longest page, in bytes.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most pages of one listing.
pub(crate) const PAGES_MAX: usize = 1_000;
/// Most names of one listing, wanted or not.
pub(crate) const NAMES_MAX: usize = 200_000;

/// One page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePage {
    pub(crate) names: Vec<String>,
    /// Where more is.
    pub(crate) next: Option<Url>,
    /// How many names there are in all, where that is said and pages are counted: then a name that comes twice
    /// has moved from one page to another, and so may others have that did not come.
    pub(crate) total: Option<u64>,
}

/// Whoever can read a page.
#[async_trait]
pub(crate) trait NamePages: Sync {
    async fn page(&self, url: &Url) -> Result<NamePage, HttpError>;
}

/// All names of a listing that are fit to be asked for and kept.
pub(crate) async fn names(
    pages: &dyn NamePages,
    first: Url,
    keep: &(dyn Fn(&str) -> bool + Sync),
) -> Result<BTreeSet<String>, HttpError> {
    let (mut names, mut seen, mut total) = (BTreeSet::new(), 0, None);
    let mut url = first;
    for _ in 0..PAGES_MAX {
        let page = pages.page(&url).await?;
        seen += page.names.len();
        if seen > NAMES_MAX {
            break;
        }
        let counted = page.total.is_some();
        if counted && total.is_some_and(|it| Some(it) != page.total) {
            return Err(changed_while_listing());
        }
        total = page.total;
        for name in page.names.into_iter().filter(|it| is_image(it)) {
            let is_kept = keep(&name);
            if is_kept && !names.insert(name) && counted {
                return Err(changed_while_listing());
            }
        }
        match page.next {
            None => return Ok(names),
            Some(next) if next == url => return Err(endless_paging()),
            Some(next) => url = join_same_origin(&url, next.as_str())?,
        }
    }
    Err(too_many())
}

/// What a page leads to, which must be on the same server: credentials go with it.
pub(crate) fn join_same_origin(page: &Url, target: &str) -> Result<Url, HttpError> {
    let refuse = |why: &str| {
        HttpError::Garbled(format!(
            "names a next page {why}: look at its log, or list `images`"
        ))
    };
    let url = page.join(target).map_err(|_| refuse("that is no URL"))?;
    match url.origin() == page.origin() {
        true => Ok(url),
        false => Err(refuse("on another server, which is not followed")),
    }
}

/// A listing that does not end.
pub(crate) fn too_many() -> HttpError {
    HttpError::TooMuch(format!(
        "has more than {NAMES_MAX} images or {PAGES_MAX} pages of them: list `images` instead"
    ))
}

/// What must be there, be it `null`: some say that where they have none, and who says nothing has no list.
pub(crate) fn maybe_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A listing that leads to itself.
pub(crate) fn endless_paging() -> HttpError {
    HttpError::Garbled(
        "names the same page of its listing again and again: look at its log".to_owned(),
    )
}

fn changed_while_listing() -> HttpError {
    HttpError::Silent(
        "was changed while it was listed: it is listed anew at the next refresh".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages as they are written down: names, what they lead to, and how many there are.
    struct FixedPages(Vec<(&'static [&'static str], Option<&'static str>, Option<u64>)>);

    const PLACE: &str = "https://hub.example/";

    #[async_trait]
    impl NamePages for FixedPages {
        async fn page(&self, url: &Url) -> Result<NamePage, HttpError> {
            let nth: usize = url.query().unwrap_or("0").parse().expect("a number");
            let (names, next, total) = self.0[nth];
            Ok(NamePage {
                names: names.iter().map(|it| (*it).to_owned()).collect(),
                next: next.map(|it| url.join(it).expect("a URL")),
                total,
            })
        }
    }

    async fn read(pages: FixedPages) -> Result<Vec<String>, HttpError> {
        let first = Url::parse(PLACE).expect("a URL");
        let found = names(&pages, first, &|it| it != "unwanted").await?;
        Ok(found.into_iter().collect())
    }

    #[tokio::test]
    async fn pages_are_read_to_their_end_without_what_is_no_name() {
        let pages = FixedPages(vec![
            (&["b", "../x", "unwanted"], Some("?1"), None),
            (&["a", "b"], None, None),
        ]);
        assert_eq!(read(pages).await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[tokio::test]
    async fn what_moved_while_it_was_listed_is_no_listing() {
        // Somebody pushed what was on the second page, so that the first has it now and nobody saw it.
        let pushed = FixedPages(vec![
            (&["a", "b"], Some("?1"), Some(4)),
            (&["b", "c"], None, Some(4)),
        ]);
        // Somebody removed what was on the first page.
        let removed = FixedPages(vec![
            (&["a", "b"], Some("?1"), Some(4)),
            (&["d"], None, Some(3)),
        ]);
        for pages in [pushed, removed] {
            assert!(matches!(read(pages).await, Err(HttpError::Silent(_))));
        }
    }

    #[tokio::test]
    async fn pages_that_lead_nowhere_are_no_listing() {
        for next in ["?0", "https://other.example/?1", "http://hub.example/?1"] {
            let pages = FixedPages(vec![(&["a"], Some("?1"), None), (&["b"], Some("?1"), None)]);
            let pages = match next {
                "?0" => pages,
                other => FixedPages(vec![(&["a"], Some(other), None)]),
            };
            assert!(
                matches!(read(pages).await, Err(HttpError::Garbled(_))),
                "{next}"
            );
        }
    }
}
