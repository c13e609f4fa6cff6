//! Value types with a text form: durations, sizes, addresses, URLs, paths, schedules.
//!
//! Each is parsed from text and prints as equivalent text. Error texts do not quote the value, because it may be
//! a secret that was pasted by mistake.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use sutler_broker::Schedule;
use sutler_client::wire::{IpNetwork, IpNetworkError};
use sutler_yaml::{AmountError, DURATION_UNITS, amount_text, parse_amount};

/// Maximum duration: a hundred years.
const DAYS_MAX: u64 = 36_500;

/// Implements a type that is written as text: `serde` uses `parse` and `Display`, and the schema has the name of
/// the form.
macro_rules! written {
    ($name:ident, $form:literal, $example:literal) => {
        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                Self::parse(text.trim())
            }
        }
        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $form, "examples": [$example] })
            }
        }
    };
}

/// A duration: `500ms`, `30s`, `5m`, `2h`, `10d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct DurationText(pub Duration);

written!(DurationText, "duration", "30s");

impl DurationText {
    /// A duration of whole seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "must be a duration such as `500ms`, `30s`, `5m`, `2h` or `10d`".to_owned();
        match parse_amount(text, DURATION_UNITS) {
            Err(AmountError::Malformed) => Err(wrong()),
            Ok(all) if all <= DAYS_MAX * 86_400_000 => Ok(Self(Duration::from_millis(all))),
            Ok(_) | Err(AmountError::TooLarge) => {
                Err(format!("must not be longer than {DAYS_MAX} days"))
            }
        }
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&amount_text(self.0.as_millis(), &DURATION_UNITS))
    }
}

/// A size: `1MiB`, `64KiB`, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteSize(pub usize);

written!(ByteSize, "size", "1MiB");

/// Units of sizes: those that are printed, then others that are read.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
];

impl ByteSize {
    fn parse(text: &str) -> Result<Self, String> {
        let bytes = parse_amount(text, SIZE_UNITS);
        if bytes == Err(AmountError::Malformed) {
            return Err("must be a size such as `64KiB`, `1MiB` or `1048576`".to_owned());
        }
        let bytes = bytes.ok().filter(|bytes| *bytes <= 1 << 40);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes
            .map(Self)
            .ok_or_else(|| "must not be larger than 1024GiB".to_owned())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&amount_text(self.0 as u128, &SIZE_UNITS[..4]))
    }
}

/// A host and a port: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort(String);

written!(HostPort, "address", "127.0.0.1:8080");

impl HostPort {
    /// Reads an address.
    ///
    /// # Errors
    /// Host or port is missing, or the port is not a number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = "must be a host and a port such as `127.0.0.1:8080` or `[::1]:8080`";
        let (host, port) = text.rsplit_once(':').ok_or(wrong)?;
        let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        let strange = |c: char| !(c.is_ascii_alphanumeric() || ".-_[]:".contains(c));
        if host.is_empty() || bare_v6 || host.contains(strange) || port.parse::<u16>().is_err() {
            return Err(wrong.to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let ip = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An HTTP URL: `https://…`, without user and password.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpUrl(String);

written!(HttpUrl, "url", "https://id.example.com/keys");

impl HttpUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
        match authority {
            None | Some("") => {
                Err("must be a URL that begins with `https://` or `http://`".to_owned())
            }
            Some(authority) if authority.contains('@') => {
                Err("must not hold a user or a password; remove what stands before the `@`".into())
            }
            Some(_) if text.chars().any(|c| c.is_whitespace() || c.is_control()) => {
                Err("must be a URL without spaces".to_owned())
            }
            Some(_) => Ok(Self(text.to_owned())),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file, relative to the directory in which the program was started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilePath(pub PathBuf);

written!(FilePath, "path", "/etc/sutler/tls.pem");

impl FilePath {
    fn parse(text: &str) -> Result<Self, String> {
        match text.is_empty() || text.contains('\0') {
            true => Err("must be the name of a file".to_owned()),
            false => Ok(Self(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// A network, or a single address: `10.0.0.0/8`, `fd00::/8`, `127.0.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct NetworkText(pub IpNetwork);

written!(NetworkText, "network", "10.0.0.0/8");

impl NetworkText {
    fn parse(text: &str) -> Result<Self, String> {
        let network = text.parse().map(Self);
        network.map_err(|error: IpNetworkError| format!("cannot be used: {error}"))
    }
}

impl fmt::Display for NetworkText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A cron schedule with seconds first: `0 0 3 * * *`; `-` is never.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct CronText(pub Option<Schedule>);

written!(CronText, "schedule", "0 0 3 * * *");

impl CronText {
    fn parse(text: &str) -> Result<Self, String> {
        let parsed = Schedule::parse_optional(text);
        parsed
            .map(Self)
            .map_err(|error| format!("must be a schedule such as `0 0 3 * * *`: {error}"))
    }
}

impl fmt::Display for CronText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(schedule) => schedule.fmt(f),
            None => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteSize, CronText, DurationText, HostPort, HttpUrl};

    #[test]
    fn durations_are_printed_in_the_largest_exact_unit() {
        let texts = [
            ("30s", "30s"),
            ("90000ms", "90s"),
            ("120s", "2m"),
            ("24h", "1d"),
        ];
        for (text, printed) in texts {
            let span = DurationText::try_from(text.to_owned());
            assert_eq!(span.map(|it| it.to_string()), Ok(printed.to_owned()));
        }
        for wrong in ["", "30", "s", "-1s", "1.5h", "1w", "99999999999d"] {
            assert!(DurationText::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_printed_in_the_largest_exact_unit() {
        for (text, printed) in [("1MiB", "1MiB"), ("1048576", "1MiB"), ("1000", "1000")] {
            let size = ByteSize::try_from(text.to_owned());
            assert_eq!(size.map(|it| it.to_string()), Ok(printed.to_owned()));
        }
        for wrong in ["", "MiB", "1XB", "-1", "99999999999GiB"] {
            assert!(ByteSize::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_needs_a_host_and_a_port() {
        for good in ["127.0.0.1:80", "[::1]:0", "localhost:8080", "0.0.0.0:443"] {
            assert!(HostPort::parse(good).is_ok(), "{good}");
        }
        for wrong in [
            "", "8080", ":80", "::1:80", "a:b", "a:70000", "a b:80", "u@a:80",
        ] {
            assert!(HostPort::parse(wrong).is_err(), "{wrong}");
        }
        let loopback = |text| HostPort::parse(text).is_ok_and(|it| it.is_loopback());
        assert!(loopback("127.0.0.1:80") && loopback("[::1]:80") && loopback("localhost:1"));
        assert!(!loopback("0.0.0.0:80") && !loopback("broker.example.com:80"));
    }

    #[test]
    fn a_url_holds_no_password() {
        assert!(HttpUrl::try_from("https://id.example.com/keys".to_owned()).is_ok());
        for wrong in [
            "",
            "id.example.com",
            "https://",
            "https://me:hush@id/",
            "https://a b",
        ] {
            let error = HttpUrl::try_from(wrong.to_owned()).expect_err(wrong);
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn a_schedule_may_be_never() {
        assert_eq!(CronText::try_from("-".to_owned()), Ok(CronText(None)));
        assert!(CronText::try_from("0 0 3 * * *".to_owned()).is_ok());
        assert!(CronText::try_from("tomorrow".to_owned()).is_err());
    }
}
