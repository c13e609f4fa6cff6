//! Times, and the expiry of bindings.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use sutler_osb::{BindingMetadata, RenewalAfterExpiryError, TimeError, UtcTime};

fn time(text: &str) -> UtcTime {
    UtcTime::try_from(text).unwrap()
}

/// Holds: B-196.
#[test]
fn a_time_is_kept_as_it_was_written() {
    for text in [
        "2019-12-31T23:59:59.0Z",
        "2024-02-29T00:00:00.123456789012Z",
    ] {
        assert_eq!(time(text).as_str(), text);
    }
}

/// Holds: B-196.
#[test]
fn other_forms_of_time_are_refused() {
    for text in [
        "",
        "2030-01-01",
        "2030-01-01T00:00:00Z",
        "2030-01-01T00:00:00.Z",
        "2030-01-01T00:00:00.0",
        "2030-01-01T00:00:00.0+00:00",
        "2030-01-01 00:00:00.0Z",
        "2030-01-01t00:00:00.0z",
        "2030-1-1T00:00:00.0Z",
        "+203-01-01T00:00:00.0Z",
        "2030-01-01T00:00:00.0xZ",
        "2030-01-01T00:00:0ä.0Z",
        " 2030-01-01T00:00:00.0Z",
    ] {
        assert_eq!(
            UtcTime::try_from(text).unwrap_err(),
            TimeError::Pattern,
            "{text:?}"
        );
    }
}

/// Holds: B-196.
#[test]
fn days_and_hours_that_do_not_exist_are_refused() {
    for text in [
        "2030-00-01T00:00:00.0Z",
        "2030-13-01T00:00:00.0Z",
        "2030-01-00T00:00:00.0Z",
        "2030-01-32T00:00:00.0Z",
        "2030-04-31T00:00:00.0Z",
        "2023-02-29T00:00:00.0Z",
        "2100-02-29T00:00:00.0Z",
        "2030-01-01T24:00:00.0Z",
        "2030-01-01T00:60:00.0Z",
        "2030-01-01T00:00:60.0Z",
    ] {
        assert_eq!(
            UtcTime::try_from(text).unwrap_err(),
            TimeError::NoSuchTime,
            "{text:?}"
        );
    }
    assert_eq!(time("2000-02-29T00:00:00.0Z").epoch_seconds(), 951_782_400);
}

#[test]
fn times_compare_by_moment() {
    assert_eq!(
        time("2030-01-01T00:00:00.5Z"),
        time("2030-01-01T00:00:00.500Z")
    );
    assert!(time("2030-01-01T00:00:00.5Z") < time("2030-01-01T00:00:00.51Z"));
    assert!(time("1969-12-31T23:59:59.9Z") < time("1970-01-01T00:00:00.0Z"));
}

#[test]
fn seconds_since_the_epoch_become_the_same_moment() {
    let check = |seconds, micros, text| {
        assert_eq!(UtcTime::from_epoch(seconds, micros).unwrap().as_str(), text);
        assert_eq!(time(text).epoch_seconds(), seconds);
    };
    check(0, 0, "1970-01-01T00:00:00.000000Z");
    check(-1, 999_999, "1969-12-31T23:59:59.999999Z");
    check(951_868_799, 1, "2000-02-29T23:59:59.000001Z");
    check(1_700_000_000, 0, "2023-11-14T22:13:20.000000Z");
    check(253_402_300_799, 0, "9999-12-31T23:59:59.000000Z");
    check(-62_167_219_200, 0, "0000-01-01T00:00:00.000000Z");
    for (seconds, micros) in [
        (253_402_300_800, 0),
        (-62_167_219_201, 0),
        (i64::MAX, 0),
        (0, 1_000_000),
    ] {
        assert_eq!(
            UtcTime::from_epoch(seconds, micros).unwrap_err(),
            TimeError::OutOfRange
        );
    }
}

/// Holds: B-196.
#[test]
fn a_binding_is_never_to_be_renewed_after_it_expired() {
    let early = || Some(time("2030-01-01T00:00:00.0Z"));
    let late = || Some(time("2030-01-02T00:00:00.0Z"));
    assert_eq!(
        BindingMetadata::new(early(), late()),
        Err(RenewalAfterExpiryError)
    );
    for (expires_at, renew_before) in [(late(), early()), (early(), early()), (None, late())] {
        assert!(BindingMetadata::new(expires_at, renew_before).is_ok());
    }
    let wire = r#"{"expires_at":"2030-01-01T00:00:00.0Z","renew_before":"2030-01-02T00:00:00.0Z"}"#;
    assert!(serde_json::from_str::<BindingMetadata>(wire).is_err());
}

proptest! {
    #[test]
    fn every_moment_survives_its_text(
        seconds in -62_167_219_200i64..=253_402_300_799,
        micros in 0..1_000_000u32,
    ) {
        let made = UtcTime::from_epoch(seconds, micros).unwrap();
        let read = time(made.as_str());
        prop_assert_eq!(read.epoch_seconds(), seconds);
        prop_assert_eq!(&read, &made);
        prop_assert!(UtcTime::from_epoch(seconds, 999_999).unwrap() >= made);
    }
}
