//! Expressions and the times they give, checked by hand against a calendar of 2026, a year that
//! begins on a Thursday.

use super::Schedule;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn check(expression: &str, after: &str, expected: &str) {
    let schedule = Schedule::parse(expression).unwrap();
    let next = schedule
        .next_after(time(after))
        .map(|next| next.to_string());
    assert_eq!(
        next.as_deref(),
        Some(expected),
        "{expression} after {after}"
    );
}

/// One row for each case: expression, time, next time.
fn check_table(table: &str) {
    let rows = table.lines().map(str::trim).filter(|row| !row.is_empty());
    for row in rows {
        match row.split('|').map(str::trim).collect::<Vec<_>>()[..] {
            [expression, after, expected] => check(expression, after, expected),
            _ => panic!("{row} has not three columns"),
        }
    }
}

#[test]
fn spring_expressions_give_the_next_time_that_spring_gives() {
    check_table(
        "
        0 0 0 */10 * *          | 2026-01-01T00:00:00Z | 2026-01-11T00:00:00Z
        0 0 0 */10 * *          | 2026-01-31T00:00:00Z | 2026-02-01T00:00:00Z
        0 0 * * * *             | 2026-01-01T00:30:00Z | 2026-01-01T01:00:00Z
        */10 * * * * *          | 2026-01-01T00:00:05Z | 2026-01-01T00:00:10Z
        0 0 8-10 * * *          | 2026-01-01T10:00:00Z | 2026-01-02T08:00:00Z
        0 0 6,19 * * *          | 2026-01-01T06:00:00Z | 2026-01-01T19:00:00Z
        0 0/30 8-10 * * *       | 2026-01-01T10:30:00Z | 2026-01-02T08:00:00Z
        0 10-40/15 * * * ?      | 2026-01-01T00:11:00Z | 2026-01-01T00:25:00Z
        0 0 9-17 * * MON-FRI    | 2026-01-02T17:00:00Z | 2026-01-05T09:00:00Z
        0 0 9-17 * * mon-fri    | 2026-01-02T17:00:00Z | 2026-01-05T09:00:00Z
        0 0 0 25 12 ?           | 2026-01-01T00:00:00Z | 2026-12-25T00:00:00Z
        0 0 0 25 Dec ?          | 2026-01-01T00:00:00Z | 2026-12-25T00:00:00Z
        0 0 12 1/5 * ?          | 2026-01-01T12:00:00Z | 2026-01-06T12:00:00Z
        59 59 23 31 12 *        | 2026-01-01T00:00:00Z | 2026-12-31T23:59:59Z
        0 0 0 29 2 ?            | 2026-01-01T00:00:00Z | 2028-02-29T00:00:00Z
        0 0 0 ? JAN-MAR SAT-SUN | 2026-01-01T00:00:00Z | 2026-01-03T00:00:00Z
        ",
    );
}

#[test]
fn days_counted_from_the_end_of_the_month_follow_its_length() {
    check_table(
        "
        0 0 0 L * *         | 2026-01-31T00:00:00Z | 2026-02-28T00:00:00Z
        0 0 0 L * *         | 2028-01-31T00:00:00Z | 2028-02-29T00:00:00Z
        0 0 0 L-3 * *       | 2026-01-01T00:00:00Z | 2026-01-28T00:00:00Z
        0 0 0 L-3 * *       | 2026-01-28T00:00:00Z | 2026-02-25T00:00:00Z
        0 0 0 L-3 * *       | 2028-01-31T00:00:00Z | 2028-02-26T00:00:00Z
        0 0 0 L-3 * *       | 2026-12-28T00:00:00Z | 2027-01-28T00:00:00Z
        0 30 6 L-1 * ?      | 2026-04-29T06:29:59Z | 2026-04-29T06:30:00Z
        0 30 6 L-1 * ?      | 2026-04-29T06:30:00Z | 2026-05-30T06:30:00Z
        0 0 */8 L-1 * ?     | 2026-04-29T08:00:00Z | 2026-04-29T16:00:00Z
        0 0 0 L-30 * *      | 2026-01-02T00:00:00Z | 2026-03-01T00:00:00Z
        0 0 0 L-28 2 MON    | 2026-01-01T00:00:00Z | 2044-02-01T00:00:00Z
        0 0 0 L-3 FEB,JUN * | 2026-02-25T00:00:00Z | 2026-06-27T00:00:00Z
        0 0 0 15,L-3 * *    | 2026-01-01T00:00:00Z | 2026-01-15T00:00:00Z
        0 0 0 15,L-3 * *    | 2026-01-15T00:00:00Z | 2026-01-28T00:00:00Z
        0 0 0 L,LW * *      | 2026-01-29T00:00:00Z | 2026-01-30T00:00:00Z
        0 0 0 L,LW * *      | 2026-01-30T00:00:00Z | 2026-01-31T00:00:00Z
        0 0 0 LW * *        | 2026-01-01T00:00:00Z | 2026-01-30T00:00:00Z
        ",
    );
}

#[test]
fn weekdays_are_counted_as_spring_counts_them() {
    check_table(
        "
        0 0 0 1W * *      | 2026-01-15T00:00:00Z | 2026-02-02T00:00:00Z
        0 0 0 1W * *      | 2026-07-15T00:00:00Z | 2026-08-03T00:00:00Z
        0 0 0 15W * *     | 2026-02-01T00:00:00Z | 2026-02-16T00:00:00Z
        0 0 0 * * 5L      | 2026-01-01T00:00:00Z | 2026-01-30T00:00:00Z
        0 0 0 * * THUL    | 2026-01-01T00:00:00Z | 2026-01-29T00:00:00Z
        0 0 0 * * 7L      | 2026-01-01T00:00:00Z | 2026-01-25T00:00:00Z
        0 0 0 * * SUNL    | 2026-01-01T00:00:00Z | 2026-01-25T00:00:00Z
        0 0 0 ? * 5#2     | 2026-01-01T00:00:00Z | 2026-01-09T00:00:00Z
        0 0 0 ? * MON#1   | 2026-01-01T00:00:00Z | 2026-01-05T00:00:00Z
        0 0 0 ? * 7#1     | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z
        0 15 10 ? * 6#3   | 2026-01-01T00:00:00Z | 2026-01-17T10:15:00Z
        0 0 0 13 * FRI    | 2026-01-01T00:00:00Z | 2026-02-13T00:00:00Z
        0 0 0 * * 0       | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z
        0 0 0 * * 7       | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z
        0 0 0 * * SUN     | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z
        0 0 0 * * SUN-WED | 2026-01-01T00:00:00Z | 2026-01-04T00:00:00Z
        0 0 0 * * */2     | 2026-01-01T00:00:00Z | 2026-01-02T00:00:00Z
        0 0 0 * * */2     | 2026-01-02T00:00:00Z | 2026-01-04T00:00:00Z
        0 0 0 * * */2     | 2026-01-04T00:00:00Z | 2026-01-05T00:00:00Z
        ",
    );
}

#[test]
fn macros_expand_to_six_fields() {
    let table = [
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("@daily", "2026-01-02T00:00:00Z"),
        ("@midnight", "2026-01-02T00:00:00Z"),
        ("@Hourly", "2026-01-01T01:00:00Z"),
    ];
    for (expression, expected) in table {
        check(expression, "2026-01-01T00:00:00Z", expected);
    }
}

#[test]
fn fractions_of_a_second_are_before_the_next_one() {
    let (nearly, ten) = ("2026-01-01T00:00:09.999999999Z", "2026-01-01T00:00:10Z");
    check("*/10 * * * * *", nearly, ten);
    check(
        "*/10 * * * * *",
        "2026-01-01T00:00:10.5Z",
        "2026-01-01T00:00:20Z",
    );
    check(
        "0 0 0 L-3 * *",
        "2026-01-28T00:00:00.5Z",
        "2026-02-25T00:00:00Z",
    );
}

#[test]
fn a_dash_disables_a_schedule() {
    assert_eq!(Schedule::parse_optional("-"), Ok(None));
    assert_eq!(Schedule::parse_optional(" "), Ok(None));
    assert!(Schedule::parse("-").is_err());
    let daily = Schedule::parse_optional("@daily").unwrap();
    assert_eq!(
        daily.map(|daily| daily.to_string()),
        Some("@daily".to_owned())
    );
}

#[test]
fn expressions_that_spring_refuses_are_refused_with_a_reason() {
    let wrong = [
        ("", "0 fields"),
        ("0 0 * * *", "5 fields and needs six"),
        ("0 0 0 * * * *", "7 fields"),
        ("60 0 0 * * *", ""),
        ("0 0 24 * * *", ""),
        ("0 0 0 32 * *", ""),
        ("0 0 0 0 * *", ""),
        ("0 0 0 * 13 *", ""),
        ("0 0 0 * * 8", ""),
        ("0 0 0 L-31 * *", "between `L-1` and `L-30`"),
        ("0 0 0 L-0 * *", "between `L-1` and `L-30`"),
        ("0 0 0 L-x * *", "between `L-1` and `L-30`"),
        ("0 0 0 * * L", "needs a day before it"),
        ("0 0 0 * * +5", "contains `+`"),
        ("0 0 0 1,,2 * *", "empty part"),
        ("/5 0 0 * * *", "empty part"),
        ("0 0 0 5? * *", "must stand alone"),
        ("*/0 0 0 * * *", ""),
        ("0 0 0 30 2 *", "no date will ever match"),
        ("0 0 0 L-29 2 *", "no date will ever match"),
        ("@fortnightly", "the macros are"),
        ("tomorrow", "1 fields"),
        ("0 0 0 * * FRI#6", ""),
        ("0 0 0 * * FRI-MON", ""),
    ];
    for (expression, reason) in wrong {
        let error = Schedule::parse(expression)
            .expect_err(expression)
            .to_string();
        assert!(error.contains(reason), "{expression}: {error}");
        assert!(
            error.starts_with(&format!("`{expression}` is not a cron")),
            "{error}"
        );
    }
    assert!(Schedule::parse(&"0,".repeat(10_000)).is_err());
}

/// A field of plain values, and its values.
fn field(min: u8, max: u8) -> impl Strategy<Value = (String, Vec<u8>)> {
    let all = ("*".to_owned(), (min..=max).collect());
    let one = (min..=max).prop_map(|value| (value.to_string(), vec![value]));
    let step = (min..=max, 1..=max).prop_map(move |(from, step)| {
        let values = (from..=max).step_by(step.into()).collect();
        (format!("{from}/{step}"), values)
    });
    let range = (min..=max, min..=max).prop_map(|(one, other)| {
        let (from, to) = (one.min(other), one.max(other));
        (format!("{from}-{to}"), (from..=to).collect())
    });
    proptest::prop_oneof![proptest::strategy::Just(all), one, step, range]
}

proptest! {
    #[test]
    fn the_next_time_is_later_and_in_every_field(
        (second, seconds) in field(0, 59),
        (minute, minutes) in field(0, 59),
        (hour, hours) in field(0, 23),
        (month, months) in field(1, 12),
        before_last in 1_i8..28,
        from_the_end in any::<bool>(),
        start in 0_i64..4_000_000_000,
    ) {
        let day = if from_the_end { format!("L-{before_last}") } else { "*".to_owned() };
        let schedule = Schedule::parse(&format!("{second} {minute} {hour} {day} {month} ?")).unwrap();
        let start = Timestamp::from_second(start).unwrap();
        let next = schedule.next_after(start).unwrap();
        prop_assert!(next > start);
        let civil = TimeZone::UTC.to_datetime(next);
        prop_assert!(seconds.contains(&u8::try_from(civil.second()).unwrap()));
        prop_assert!(minutes.contains(&u8::try_from(civil.minute()).unwrap()));
        prop_assert!(hours.contains(&u8::try_from(civil.hour()).unwrap()));
        prop_assert!(months.contains(&u8::try_from(civil.month()).unwrap()));
        if from_the_end {
            prop_assert_eq!(civil.days_in_month() - civil.day(), before_last);
        }
        // No match is skipped: a search from one second before finds the same time.
        let just_before = next - SignedDuration::from_secs(1);
        prop_assert_eq!(schedule.next_after(just_before.max(start)), Some(next));
    }
}
