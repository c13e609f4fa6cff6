//! Amounts with a unit, as people write them: durations such as `30s`, sizes such as `64KiB`.
//!
//! Each format has its own units, bounds and words; this file reads and prints. The durations of Spring
//! (`catalog_file/duration.rs` of the broker) are another form: signs, any case, nanoseconds, ISO 8601, and a
//! plain number is milliseconds.

/// Units of durations and their lengths in milliseconds, the longest first.
pub const DURATION_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Why a text has no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    /// It is not a whole number with one of the units.
    Malformed,
    /// It does not fit into 64 bits.
    TooLarge,
}

/// Reads digits and one of these units, perhaps with white space between them.
///
/// # Errors
/// The text has another form, or the amount is too large.
pub fn parse_amount<'a>(
    text: &str,
    units: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<u64, AmountError> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit());
    let (count, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let count: u64 = count.parse().map_err(|_| AmountError::Malformed)?;
    let mut units = units.into_iter();
    let known = units.find(|(name, _)| *name == unit.trim_start());
    let (_, size) = known.ok_or(AmountError::Malformed)?;
    count.checked_mul(size).ok_or(AmountError::TooLarge)
}

/// Prints an amount in the first unit that divides it, or else in the last, which has the size 1.
pub fn amount_text(amount: u128, units: &[(&str, u64)]) -> String {
    let divides = |size: u64| amount > 0 && amount.is_multiple_of(size.into());
    let fitting = units.iter().find(|(_, size)| divides(*size));
    let (unit, size) = fitting.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{unit}", amount / u128::from(size))
}
