//! Cron expressions of Spring, in UTC, for the schedules of cleanup.
//!
//! The fields and their meaning are those of Spring's `CronExpression`; croner finds the times.
//! [`Schedule::parse`] translates where the two differ: `L-3`, several special days in one list, `*/2` as
//! a day of the week. Running a schedule is up to the caller.

#[cfg(test)]
mod tests;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{Date, DateTime};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use std::fmt;

/// Longest expression, in bytes: 60 seconds and 60 minutes written out fit.
const EXPRESSION_BYTES_MAX: usize = 1024;

/// Months searched for the n-th last day: after 400 years the calendar repeats.
const MONTHS_SEARCHED_MAX: usize = 12 * 400;

/// Start of the last 400 years that croner knows: an expression without a match in them never matches.
const LAST_CYCLE: DateTime = jiff::civil::date(4600, 1, 1).at(0, 0, 0, 0);

/// Most days of the month with `L` or `W`. Each is searched for by itself.
const SPECIAL_DAYS_MAX: usize = 8;

/// Spring's spelling of a schedule that never runs.
const DISABLED: &str = "-";

/// Points in time defined by six fields: second, minute, hour, day of the month, month, day of the week.
#[derive(Clone, Debug)]
pub struct Schedule {
    expression: String,
    /// The schedule's times are the times of any of these.
    alternatives: Vec<Alternative>,
}

/// Six fields. The day of the month is either a form that croner knows, or `L-n`.
#[derive(Clone, Debug)]
struct Alternative {
    /// For `L-n`, the expression with `*` as the day of the month.
    cron: Cron,
    days_before_last: Option<i8>,
}

/// An expression that is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{expression}` is not a cron expression: {reason}")]
pub struct ScheduleError {
    /// The expression, shortened if it is long.
    pub expression: String,
    /// Reason.
    pub reason: String,
}

impl Schedule {
    /// Parses an expression such as `0 0 0 */10 * *`, or a macro such as `@daily`.
    ///
    /// # Errors
    /// It does not have six fields, a field is out of range, no time ever matches, or it is `-` ("never"),
    /// which only [`Schedule::parse_optional`] accepts.
    pub fn parse(expression: &str) -> Result<Self, ScheduleError> {
        let trimmed = expression.trim();
        let refuse = |reason: String| ScheduleError {
            expression: trimmed.chars().take(80).map(one_line).collect(),
            reason: reason.chars().take(200).map(one_line).collect(),
        };
        if trimmed.len() > EXPRESSION_BYTES_MAX {
            let reason = format!("it is longer than {EXPRESSION_BYTES_MAX} bytes");
            return Err(refuse(reason));
        }
        let expanded = expand_macro(&trimmed.to_uppercase()).map_err(refuse)?;
        let mut alternatives = alternatives(&expanded).map_err(refuse)?;
        // The search for a date that never matches is slow: search once, near the end of croner's range.
        alternatives.retain(|one| one.next_after(LAST_CYCLE).is_some());
        if alternatives.is_empty() {
            return Err(refuse("no date will ever match it".to_owned()));
        }
        Ok(Self {
            expression: trimmed.to_owned(),
            alternatives,
        })
    }

    /// Parses an expression; `-` and an empty text mean that nothing is scheduled.
    ///
    /// # Errors
    /// As for [`Schedule::parse`].
    pub fn parse_optional(expression: &str) -> Result<Option<Self>, ScheduleError> {
        match expression.trim() {
            "" | DISABLED => Ok(None),
            expression => Self::parse(expression).map(Some),
        }
    }

    /// The first time strictly later than this one.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let after = TimeZone::UTC.to_datetime(time);
        let next = self
            .alternatives
            .iter()
            .filter_map(|alternative| alternative.next_after(after))
            .min()?;
        TimeZone::UTC.to_timestamp(next).ok()
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.expression
    }
}

/// As it was written.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expression)
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
    }
}

impl Eq for Schedule {}

impl Alternative {
    fn next_after(&self, time: DateTime) -> Option<DateTime> {
        let Some(days_before_last) = self.days_before_last else {
            return self.cron.find_next_occurrence(&time, false).ok();
        };
        let mut month = time.date().first_of_month();
        for _ in 0..MONTHS_SEARCHED_MAX {
            if let Some(day) = nth_before_last(month, days_before_last) {
                let midnight = day.to_datetime(jiff::civil::Time::midnight());
                // Before the day has begun, midnight itself counts.
                let found = if midnight > time {
                    self.cron.find_next_occurrence(&midnight, true)
                } else {
                    self.cron.find_next_occurrence(&time, false)
                };
                let found = found.ok()?;
                if found.date() == day {
                    return Some(found);
                }
                // There is no earlier match, so earlier months are skipped.
                month = found.date().first_of_month().max(month);
                if month > day {
                    continue;
                }
            }
            month = month.checked_add(1.month()).ok()?;
        }
        None
    }
}

/// The day `days` before the last one of this month, if the month has it.
fn nth_before_last(month: Date, days: i8) -> Option<Date> {
    let last = month.last_of_month();
    let day = last.day() - days;
    (day >= 1).then(|| jiff::civil::date(last.year(), last.month(), day))
}

/// Replaces characters that do not fit on one line of a message.
fn one_line(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn expand_macro(expression: &str) -> Result<String, String> {
    if !expression.starts_with('@') {
        return Ok(expression.to_owned());
    }
    let expanded = match expression {
        "@YEARLY" | "@ANNUALLY" => "0 0 0 1 1 *",
        "@MONTHLY" => "0 0 0 1 * *",
        "@WEEKLY" => "0 0 0 * * 0",
        "@DAILY" | "@MIDNIGHT" => "0 0 0 * * *",
        "@HOURLY" => "0 0 * * * *",
        _ => {
            let known = "@yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly";
            return Err(format!("the macros are {known}"));
        }
    };
    Ok(expanded.to_owned())
}

fn alternatives(expression: &str) -> Result<Vec<Alternative>, String> {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let [second, minute, hour, day, month, weekday] = fields[..] else {
        let wanted = "second, minute, hour, day of the month, month and day of the week";
        return Err(match fields[..] {
            [DISABLED] => "it says that nothing is scheduled".to_owned(),
            _ => format!("it has {} fields and needs six: {wanted}", fields.len()),
        });
    };
    for field in [second, minute, hour, day, month, weekday] {
        check_items(field)?;
    }
    let weekday = weekday_as_croner_reads_it(weekday)?;
    let days = split_days(day)?;
    let parser = CronParser::builder()
        .seconds(Seconds::Required)
        .year(Year::Disallowed)
        .dom_and_dow(true)
        .sloppy_ranges(true)
        .build();
    let parse = |(day, days_before_last): (String, Option<i8>)| {
        let expression = format!("{second} {minute} {hour} {day} {month} {weekday}");
        let cron = parser
            .parse(&expression)
            .map_err(|error| error.to_string())?;
        Ok(Alternative {
            cron,
            days_before_last,
        })
    };
    days.into_iter().map(parse).collect()
}

/// Refuses fields that croner accepts and Spring does not.
fn check_items(field: &str) -> Result<(), String> {
    for item in field.split(',') {
        let known = |c: char| c.is_ascii_alphanumeric() || "*/-?#".contains(c);
        if let Some(unknown) = item.chars().find(|&c| !known(c)) {
            return Err(format!("it contains `{unknown}`"));
        }
        if item.is_empty() || item.starts_with('/') {
            return Err(format!("`{field}` has an empty part"));
        }
        if item.contains('?') && item != "?" {
            return Err(format!("`?` must stand alone, not in `{item}`"));
        }
    }
    Ok(())
}

/// Every special day becomes an alternative of its own: croner has one mark for `L` and `LW` in a
/// list, and none for `L-3`.
fn split_days(field: &str) -> Result<Vec<(String, Option<i8>)>, String> {
    let is_special = |item: &&str| item.contains('L') || item.contains('W');
    let (special, plain): (Vec<&str>, Vec<&str>) = field.split(',').partition(is_special);
    let mut days = Vec::new();
    if special.len() > SPECIAL_DAYS_MAX {
        return Err(format!(
            "it has more than {SPECIAL_DAYS_MAX} days with `L` or `W`"
        ));
    }
    if !plain.is_empty() {
        days.push((plain.join(","), None));
    }
    for item in special {
        days.push(match item.strip_prefix("L-") {
            Some(offset) => ("*".to_owned(), Some(days_before_last(item, offset)?)),
            None => (item.to_owned(), None),
        });
    }
    Ok(days)
}

fn days_before_last(item: &str, offset: &str) -> Result<i8, String> {
    match offset.parse() {
        Ok(days @ 1..=30) => Ok(days),
        Ok(_) | Err(_) => Err(format!("`{item}` must be between `L-1` and `L-30`")),
    }
}

/// Spring counts the days of the week from Monday, 1, to Sunday, 7, and takes 0 for Sunday too. So
/// `*/2` is every second day beginning on Monday, and `7L` is the last Sunday.
fn weekday_as_croner_reads_it(field: &str) -> Result<String, String> {
    let mut items = Vec::new();
    for item in field.split(',') {
        items.push(if let Some(step) = item.strip_prefix("*/") {
            format!("1-7/{step}")
        } else if item == "L" {
            return Err("`L` as a day of the week needs a day before it, as in `5L`".to_owned());
        } else if let Some(special) = item.strip_prefix('7')
            && (special == "L" || special.starts_with('#'))
        {
            format!("0{special}")
        } else {
            item.to_owned()
        });
    }
    Ok(items.join(","))
}
