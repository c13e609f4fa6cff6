//! Paged listings of image names: read to their end, within limits.
//!
//! Pages are parsed by the adapters (`oci/listing.rs`, `docker_hub.rs`, `quay.rs`). The rules here apply to all: a
//! page that refers to another server or to itself, or that changes while it is read, makes the listing fail. Names
//! that are not image names are skipped: they cannot be pulled.

use crate::http_error::HttpError;
use crate::selection::is_image;
use async_trait::async_trait;
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;

/// Maximum length of a page, in bytes.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of pages of one listing.
pub(crate) const PAGES_MAX: usize = 1_000;
/// Maximum number of names of one listing, selected or not.
pub(crate) const NAMES_MAX: usize = 200_000;

/// One page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamePage {
    pub(crate) names: Vec<String>,
    /// URL of the next page.
    pub(crate) next: Option<Url>,
    /// Total number of names, if the server states it and counts pages: then a repeated name has moved from one page
    /// to another, and other names may have been missed.
    pub(crate) total: Option<u64>,
}

/// Reads single pages.
#[async_trait]
pub(crate) trait NamePages: Sync {
    async fn page(&self, url: &Url) -> Result<NamePage, HttpError>;
}

/// Reads all pages and returns the names that are valid and pass the filter.
pub(crate) async fn names(
    pages: &dyn NamePages,
    first: Url,
    keep: &(dyn Fn(&str) -> bool + Sync),
) -> Result<BTreeSet<String>, HttpError> {
    let (mut names, mut count, mut total) = (BTreeSet::new(), 0, None);
    let mut url = first;
    for _ in 0..PAGES_MAX {
        let page = pages.page(&url).await?;
        count += page.names.len();
        if count > NAMES_MAX {
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

/// Joins a link of a page, which must stay on the same server, because credentials are sent with it.
pub(crate) fn join_same_origin(page: &Url, target: &str) -> Result<Url, HttpError> {
    let refuse = |why: &str| {
        HttpError::Garbled(format!(
            "names a next page {why}: look at its log, or list `images`"
        ))
    };
    let url = page.join(target).map_err(|_| refuse("that is not a URL"))?;
    match url.origin() == page.origin() {
        true => Ok(url),
        false => Err(refuse("on another server, which is not followed")),
    }
}

/// Error for a listing that does not end.
pub(crate) fn too_many() -> HttpError {
    HttpError::TooMuch(format!(
        "has more than {NAMES_MAX} images or {PAGES_MAX} pages of them: list `images` instead"
    ))
}

/// Deserializes a required field that may be `null`: some servers send that for an empty list.
pub(crate) fn maybe_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Error for a listing whose pages refer to themselves.
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

    /// Fixed pages: names, link to the next page, and total.
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
    async fn pages_are_read_to_their_end_without_invalid_names() {
        let pages = FixedPages(vec![
            (&["b", "../x", "unwanted"], Some("?1"), None),
            (&["a", "b"], None, None),
        ]);
        assert_eq!(read(pages).await, Ok(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[tokio::test]
    async fn names_that_move_during_a_listing_fail_it() {
        // A push moved a name from the second page to the first, after the first was read.
        let pushed = FixedPages(vec![
            (&["a", "b"], Some("?1"), Some(4)),
            (&["b", "c"], None, Some(4)),
        ]);
        // A name of the first page was removed.
        let removed = FixedPages(vec![
            (&["a", "b"], Some("?1"), Some(4)),
            (&["d"], None, Some(3)),
        ]);
        for pages in [pushed, removed] {
            assert!(matches!(read(pages).await, Err(HttpError::Silent(_))));
        }
    }

    #[tokio::test]
    async fn pages_that_lead_nowhere_fail_the_listing() {
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
