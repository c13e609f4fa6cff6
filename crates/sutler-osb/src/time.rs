//! Moments in the one form OSB allows, and when a binding ends (B-196).
//!
//! No clock and no time zones: a moment is checked, compared and written back as it was read.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

const SECONDS_PER_DAY: i64 = 86_400;
/// Digits of a fraction that are read; nobody's clock has more.
const FRACTION_DIGITS_MAX: usize = 30;
/// Digits of a fraction that are compared: nanoseconds.
const FRACTION_DIGITS_COMPARED: usize = 9;
/// The last second of the year 9999, which is the last with four digits.
const LAST_SECOND: i64 = 253_402_300_799;
/// The first second of the year 0000.
const FIRST_SECOND: i64 = -62_167_219_200;

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

/// Why a text or number is no [`UtcTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTime {
    /// Not the pattern.
    #[error("must be a UTC time such as 2030-01-31T23:59:59.0Z")]
    Pattern,
    /// The pattern, but no such day or hour.
    #[error("must be a time that exists: month, day, hour, minute or second is out of range")]
    NoSuchTime,
    /// Not within the years 0000 to 9999.
    #[error("must lie within the years 0000 to 9999")]
    OutOfRange,
}

impl UtcTime {
    /// The moment so many seconds after 1970-01-01T00:00:00Z, and microseconds after that.
    pub fn from_epoch(seconds: i64, micros: u32) -> Result<Self, InvalidTime> {
        if micros > 999_999 || !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
            return Err(InvalidTime::OutOfRange);
        }
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let text =
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
        Ok(Self {
            text,
            seconds,
            nanos: micros * 1000,
        })
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn epoch_seconds(&self) -> i64 {
        self.seconds
    }
}

impl TryFrom<String> for UtcTime {
    type Error = InvalidTime;
    fn try_from(text: String) -> Result<Self, InvalidTime> {
        let (date, rest) = text.split_at_checked(19).ok_or(InvalidTime::Pattern)?;
        let seconds = seconds_of(date.as_bytes())?;
        let fraction = rest
            .strip_prefix('.')
            .and_then(|rest| rest.strip_suffix('Z'));
        let nanos = nanos_of(fraction.ok_or(InvalidTime::Pattern)?)?;
        Ok(Self {
            text,
            seconds,
            nanos,
        })
    }
}

impl TryFrom<&str> for UtcTime {
    type Error = InvalidTime;
    fn try_from(text: &str) -> Result<Self, InvalidTime> {
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
pub struct RenewalAfterExpiry;

impl BindingMetadata {
    /// Both times are optional.
    pub fn new(
        expires_at: Option<UtcTime>,
        renew_before: Option<UtcTime>,
    ) -> Result<Self, RenewalAfterExpiry> {
        match (&expires_at, &renew_before) {
            (Some(expires_at), Some(renew_before)) if renew_before > expires_at => {
                Err(RenewalAfterExpiry)
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

    /// When it should have been rotated.
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
    type Error = RenewalAfterExpiry;
    fn try_from(unchecked: UncheckedMetadata) -> Result<Self, RenewalAfterExpiry> {
        Self::new(unchecked.expires_at, unchecked.renew_before)
    }
}

/// Reads the nineteen bytes of `yyyy-mm-ddThh:mm:ss`.
fn seconds_of(text: &[u8]) -> Result<i64, InvalidTime> {
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators
        .iter()
        .any(|&(at, separator)| text[at] != separator)
    {
        return Err(InvalidTime::Pattern);
    }
    let number = |from: usize, to: usize| {
        text[from..to]
            .iter()
            .try_fold(0i64, |number, byte| match byte {
                b'0'..=b'9' => Ok(number * 10 + i64::from(byte - b'0')),
                _ => Err(InvalidTime::Pattern),
            })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let day_exists = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !day_exists || hour > 23 || minute > 59 || second > 59 {
        return Err(InvalidTime::NoSuchTime);
    }
    let days = days_from_civil(year, month, day);
    Ok(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

fn nanos_of(fraction: &str) -> Result<u32, InvalidTime> {
    let digits = fraction.as_bytes();
    let is_fraction = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_fraction || digits.len() > FRACTION_DIGITS_MAX {
        return Err(InvalidTime::Pattern);
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0'));
    Ok(padded
        .take(FRACTION_DIGITS_COMPARED)
        .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first day of the year 0000 to the first day of a year.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    // The year 0000 is a leap year, and counts once the year is past it.
    year * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) + 1
}

/// Days from 1970-01-01 to a day; negative before it.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let in_year: i64 = (1..month).map(|month| days_in(year, month)).sum();
    days_before_year(year) - days_before_year(1970) + in_year + day - 1
}

/// The day so many days after 1970-01-01, for years from 0000 to 9999.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // 400 years have 146,097 days: the guess is at most one year off.
    let mut year = 1970 + (days * 400).div_euclid(146_097);
    while days_from_civil(year, 1, 1) > days {
        year -= 1;
    }
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut left = days - days_from_civil(year, 1, 1);
    let mut month = 1;
    while left >= days_in(year, month) {
        left -= days_in(year, month);
        month += 1;
    }
    (year, month, left + 1)
}
