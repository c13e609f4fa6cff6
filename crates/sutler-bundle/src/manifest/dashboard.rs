//! Dashboard URL templates: a URL with placeholders that are known before any run.
//!
//! A URL that a run returns is `sutler-runner/src/run_result.rs`.

use std::fmt;

/// Longest URL, in bytes.
const URL_BYTES_MAX: usize = 2_048;

/// Placeholders of a URL.
const PLACES: [&str; 3] = ["instance_id", "plan", "bundle"];

/// A URL such as `https://db.example.com/{instance_id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard(String);

/// Values of a URL's placeholders.
#[derive(Clone, Copy, Debug)]
pub struct DashboardOf<'a> {
    /// `{instance_id}`.
    pub instance_id: &'a str,
    /// `{plan}`: its name.
    pub plan: &'a str,
    /// `{bundle}`: its name.
    pub bundle: &'a str,
}

impl Dashboard {
    /// Parses a template, or returns the reason why it is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let web = text.starts_with("https://") || text.starts_with("http://");
        let strange = |c: char| c.is_control() || c.is_whitespace();
        if !web || text.len() > URL_BYTES_MAX || text.contains(strange) {
            let reason = "must be a URL that begins with https:// or http://, of at most";
            return Err(format!("{reason} {URL_BYTES_MAX} bytes"));
        }
        for piece in text.split('{').skip(1) {
            let name = piece.split_once('}').map(|(name, _)| name);
            if !name.is_some_and(|name| PLACES.contains(&name)) {
                let all = PLACES.join("}`, `{");
                return Err(format!("may have `{{{all}}}` and nothing else in braces"));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// URL of an instance. Values are percent-encoded, so that each stays one part of the URL.
    #[must_use]
    pub fn url(&self, of: DashboardOf<'_>) -> String {
        let values = [of.instance_id, of.plan, of.bundle];
        let filled = PLACES.into_iter().zip(values);
        filled.fold(self.0.clone(), |url, (place, value)| {
            url.replace(&format!("{{{place}}}"), &encoded(value))
        })
    }
}

impl fmt::Display for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::{Dashboard, DashboardOf};

    #[test]
    fn values_of_placeholders_cannot_leave_their_part_of_the_url() {
        let text = "https://db.example.com/{bundle}/{instance_id}?plan={plan}";
        let dashboard = Dashboard::parse(text).expect("a template");
        let url = dashboard.url(DashboardOf {
            instance_id: "a/../b?c={plan}",
            plan: "big one",
            bundle: "pg",
        });
        let expected = "https://db.example.com/pg/a%2F..%2Fb%3Fc%3D%7Bplan%7D?plan=big%20one";
        assert_eq!(url, expected);
    }

    #[test]
    fn a_template_is_a_url_with_known_places() {
        for text in [
            "ftp://x",
            "x",
            "https://x/{secret}",
            "https://x/{plan",
            "https://x/ y",
        ] {
            assert!(Dashboard::parse(text).is_err(), "{text}");
        }
    }
}
