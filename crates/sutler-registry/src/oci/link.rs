//! Parses the `Link` header, which names the next page of a listing. Pure.

/// Target of the next page, if there is one; it may be relative.
///
/// # Errors
/// The header exists and cannot be parsed: treating that as the end would lose the following pages.
pub(crate) fn next<'a>(
    headers: impl IntoIterator<Item = &'a str>,
) -> Result<Option<&'a str>, String> {
    let mut found = None;
    for header in headers {
        if let Some(target) = target(header)? {
            found = Some(target);
        }
    }
    Ok(found)
}

/// Parses `<target>; rel="next"` among other links.
fn target(header: &str) -> Result<Option<&str>, String> {
    let garbled = || {
        "has a header `Link` that cannot be understood, so that nobody knows where its listing ends: look at \
         what is in between, or list `images`"
            .to_owned()
    };
    let mut rest = header.trim();
    while !rest.is_empty() {
        let (before, after) = rest.split_once('<').ok_or_else(garbled)?;
        let (target, after) = after.split_once('>').ok_or_else(garbled)?;
        if !before.trim_matches([',', ' ', '\t']).is_empty() {
            return Err(garbled());
        }
        let end = after.find('<').unwrap_or(after.len());
        if after[..end].split([';', ',']).any(is_next) {
            return Ok(Some(target));
        }
        // A comma separates links; the text before it belongs to this one.
        rest = &after[end..];
    }
    Ok(None)
}

fn is_next(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let value = value.trim().trim_matches('"');
    let mut words = value.split_ascii_whitespace();
    name.trim().eq_ignore_ascii_case("rel") && words.any(|it| it.eq_ignore_ascii_case("next"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_however_it_is_written() {
        let expected = Ok(Some("/v2/_catalog?last=b&n=2"));
        for header in [
            r#"</v2/_catalog?last=b&n=2>; rel="next""#,
            r#"</v2/_catalog?last=b&n=2>; rel=next"#,
            r#"</v2/_catalog?last=b&n=2>; Rel = "prev next""#,
            r#"</v2/_catalog?last=b&n=2>;title="x";rel="NEXT""#,
            r#"</first>; rel="first", </v2/_catalog?last=b&n=2>; rel="next""#,
        ] {
            assert_eq!(next([header]), expected, "{header}");
        }
        let several = [
            r#"</first>; rel="first""#,
            r#"</v2/_catalog?last=b&n=2>; rel="next""#,
        ];
        assert_eq!(next(several), expected);
    }

    #[test]
    fn without_a_next_page_there_is_none() {
        for header in ["", " ", "</x>", r#"</x>; rel="prev""#, "</x>; title=next"] {
            assert_eq!(next([header]), Ok(None), "{header}");
        }
        assert_eq!(next([]), Ok(None));
    }

    #[test]
    fn an_unparsable_link_is_not_taken_for_the_end() {
        for header in ["<", "rel=next", r#"</v2/_catalog; rel="next""#, "next"] {
            assert!(next([header]).is_err(), "{header}");
        }
    }
}
