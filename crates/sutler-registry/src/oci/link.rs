//! Where the next page of a listing is: the header `Link`, read. Pure.

use reqwest::Url;

/// The URL of the next page, if there is one; it may be given relative to this page.
///
/// # Errors
/// It leads to another server, or is no URL: whoever follows it would take credentials along.
pub(crate) fn next(header: Option<&str>, page: &Url) -> Result<Option<Url>, String> {
    let Some(target) = header.and_then(target) else {
        return Ok(None);
    };
    let garbled =
        |why: &str| format!("names a next page {why}: look at the registry, or list `images`");
    let url = page.join(target).map_err(|_| garbled("that is no URL"))?;
    match url.origin() == page.origin() {
        true => Ok(Some(url)),
        false => Err(garbled("on another server, which is not followed")),
    }
}

/// `<target>; rel="next"` among others.
fn target(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let (target, after) = after.split_once('>')?;
        let end = after.find('<').unwrap_or(after.len());
        let parameters = after[..end].to_ascii_lowercase();
        let mut parameters = parameters.split([';', ',']).map(str::trim);
        let is_next = |it: &str| {
            it.strip_prefix("rel=")
                .is_some_and(|it| it.trim_matches('"').split(' ').any(|it| it == "next"))
        };
        if parameters.any(is_next) {
            return Some(target);
        }
        rest = &after[end..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(header: &str) -> Result<Option<String>, String> {
        let page = Url::parse("https://registry.example/v2/_catalog?n=2").expect("a URL");
        next(Some(header), &page).map(|it| it.map(String::from))
    }

    #[test]
    fn the_next_page_may_be_relative_or_whole() {
        let expected = Ok(Some(
            "https://registry.example/v2/_catalog?last=b&n=2".to_owned(),
        ));
        for header in [
            r#"</v2/_catalog?last=b&n=2>; rel="next""#,
            r#"<https://registry.example/v2/_catalog?last=b&n=2>; rel=next"#,
            r#"<_catalog?last=b&n=2>;title="x";rel="prev next""#,
            r#"</first>; rel="first", </v2/_catalog?last=b&n=2>; rel="next""#,
        ] {
            assert_eq!(followed(header), expected, "{header}");
        }
    }

    #[test]
    fn without_a_next_page_there_is_none() {
        for header in ["", "<", "</x>", r#"</x>; rel="prev""#, "rel=next"] {
            assert_eq!(followed(header), Ok(None), "{header}");
        }
    }

    #[test]
    fn a_next_page_on_another_server_is_not_followed() {
        for header in [
            r#"<https://other.example/v2/_catalog>; rel="next""#,
            r#"<http://registry.example/v2/_catalog>; rel="next""#,
            r#"<//other.example/>; rel="next""#,
        ] {
            assert!(followed(header).is_err(), "{header}");
        }
    }
}
