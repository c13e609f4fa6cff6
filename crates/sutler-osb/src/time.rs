//! Times in the one format that OSB allows, and the expiry of bindings (B-196).
//!
//! No clock and no time zones: a time is checked, compared, and written as it was read.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// 1970-01-01T00:00:00, in UTC.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
/// Most digits of a fraction.
const FRACTION_DIGITS_MAX: usize = 30;
/// Digits of a fraction that are compared: nanoseconds.
const FRACTION_DIGITS_COMPARED: usize = 9;

/// A moment in UTC, written `yyyy-mm-ddThh:mm:ss.sZ` with any number of digits in the fraction.
///
/// Equal means the same moment, however many digits it was written with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UtcTime {
    text: String,
    seconds: i64,
    nanos: u32,
}

/// A text or number that is not a [`UtcTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text does not match the pattern.
    #[error("must be a UTC time such as 2030-01-31T23:59:59.0Z")]
    Pattern,
    /// The text matches the pattern, but the day or hour does not exist.
    #[error("must be a time that exists: month, day, hour, minute or second is out of range")]
    NoSuchTime,
    /// Not within the years 0000 to 9999.
    #[error("must lie within the years 0000 to 9999")]
    OutOfRange,
}

impl UtcTime {
    /// The moment `seconds` and `micros` after 1970-01-01T00:00:00Z.
    pub fn from_epoch(seconds: i64, micros: u32) -> Result<Self, TimeError> {
        let time = EPOCH.checked_add(SignedDuration::from_secs(seconds));
        let time = time.map_err(|_| TimeError::OutOfRange)?;
        if micros > 999_999 || time.year() < 0 {
            return Err(TimeError::OutOfRange);
        }
        let (year, month, day) = (time.year(), time.month(), time.day());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        let text =
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
        Ok(Self {
            text,
            seconds,
            nanos: micros * 1000,
        })
    }

    /// The text as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn epoch_seconds(&self) -> i64 {
        self.seconds
    }
}

impl TryFrom<String> for UtcTime {
    type Error = TimeError;
    fn try_from(text: String) -> Result<Self, TimeError> {
        let (date, rest) = text.split_at_checked(19).ok_or(TimeError::Pattern)?;
        let seconds = seconds_of(date.as_bytes())?;
        let fraction = rest
            .strip_prefix('.')
            .and_then(|rest| rest.strip_suffix('Z'));
        let nanos = nanos_of(fraction.ok_or(TimeError::Pattern)?)?;
        Ok(Self {
            text,
            seconds,
            nanos,
        })
    }
}

impl TryFrom<&str> for UtcTime {
    type Error = TimeError;
    fn try_from(text: &str) -> Result<Self, TimeError> {
        text.to_owned().try_into()
    }
}

impl From<UtcTime> for String {
    fn from(time: UtcTime) -> String {
        time.text
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for UtcTime {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for UtcTime {}

impl PartialOrd for UtcTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for UtcTime {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// When a binding ends and when to renew it; the latter is never later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedMetadata")]
pub struct BindingMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_before: Option<UtcTime>,
}

/// `renew_before` is later than `expires_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must not have a `renew_before` that is later than its `expires_at`")]
pub struct RenewalAfterExpiryError;

impl BindingMetadata {
    /// Both times are optional.
    pub fn new(
        expires_at: Option<UtcTime>,
        renew_before: Option<UtcTime>,
    ) -> Result<Self, RenewalAfterExpiryError> {
        match (&expires_at, &renew_before) {
            (Some(expires_at), Some(renew_before)) if renew_before > expires_at => {
                Err(RenewalAfterExpiryError)
            }
            (Some(_) | None, Some(_) | None) => Ok(Self {
                expires_at,
                renew_before,
            }),
        }
    }

    /// When the binding stops working.
    pub fn expires_at(&self) -> Option<&UtcTime> {
        self.expires_at.as_ref()
    }

    /// When it should be rotated at the latest.
    pub fn renew_before(&self) -> Option<&UtcTime> {
        self.renew_before.as_ref()
    }
}

#[derive(Deserialize)]
struct UncheckedMetadata {
    expires_at: Option<UtcTime>,
    renew_before: Option<UtcTime>,
}

impl TryFrom<UncheckedMetadata> for BindingMetadata {
    type Error = RenewalAfterExpiryError;
    fn try_from(unchecked: UncheckedMetadata) -> Result<Self, RenewalAfterExpiryError> {
        Self::new(unchecked.expires_at, unchecked.renew_before)
    }
}

/// Reads the nineteen bytes of `yyyy-mm-ddThh:mm:ss`.
fn seconds_of(text: &[u8]) -> Result<i64, TimeError> {
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators
        .iter()
        .any(|&(at, separator)| text[at] != separator)
    {
        return Err(TimeError::Pattern);
    }
    let pair = |at: usize| match (text[at], text[at + 1]) {
        (tens @ b'0'..=b'9', ones @ b'0'..=b'9') => {
            i8::try_from((tens - b'0') * 10 + (ones - b'0')).map_err(|_| TimeError::Pattern)
        }
        _ => Err(TimeError::Pattern),
    };
    let year = i16::from(pair(0)?) * 100 + i16::from(pair(2)?);
    let (month, day) = (pair(5)?, pair(8)?);
    let (hour, minute, second) = (pair(11)?, pair(14)?, pair(17)?);
    let time = DateTime::new(year, month, day, hour, minute, second, 0);
    let time = time.map_err(|_| TimeError::NoSuchTime)?;
    Ok(time.duration_since(EPOCH).as_secs())
}

fn nanos_of(fraction: &str) -> Result<u32, TimeError> {
    let digits = fraction.as_bytes();
    let is_fraction = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_fraction || digits.len() > FRACTION_DIGITS_MAX {
        return Err(TimeError::Pattern);
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0'));
    Ok(padded
        .take(FRACTION_DIGITS_COMPARED)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
}
