//! The framework's settings, as the Spring framework documents them.

use super::{OFFERING, faults, parse};
use crate::{CleanupSettings, FileSettings, KindSettings, Schedule};
use std::time::Duration;

/// The examples of the documentation, unchanged, in one file.
const SPRING_EXAMPLE: &str = r#"
com:
  equalities:
    osbapi:
      service-bindings:
        # Use with care. Requests to delete unknown bindings (i.e. whose ID is not known) will be removed without error.
        force-delete-unknown: true 
        operations:
          cleanup-age:      "10d" # the age an operation should have to qualify for scheduled removal / clean up. Format: 1s / 2h / 3d
          cleanup-all:       "0 0 0 */10 * *"  # CRON pattern to schedule removal of all qualifying operations.
          cleanup-succeeded: "0 0 0 */10 * *"  # CRON pattern to schedule removal of succeeded, qualifying operations.
          cleanup-failed:    "0 0 0 */10 * *"  # CRON pattern to schedule removal of failed, qualifying operations.
      service-instances:        
        # Use with care. Requests to delete unknown instances (i.e. whose ID is not known) will be removed without error.
        force-delete-unknown: true 
        operations:
          cleanup-age:      "10d" # the age an operation should have to qualify for scheduled removal / clean up. Format: 1s / 2h / 3d
          cleanup-all:       "0 0 0 */10 * *"  # CRON pattern to schedule removal of all qualifying operations.
          cleanup-succeeded: "0 0 0 */10 * *"  # CRON pattern to schedule removal of succeeded, qualifying operations.
          cleanup-failed:    "0 0 0 */10 * *"  # CRON pattern to schedule removal of failed, qualifying operations.
"#;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn settings(yaml: &str) -> FileSettings {
    let file = parse(&format!("{yaml}\n{OFFERING}"));
    assert_eq!(file.warnings, Vec::<String>::new());
    file.settings
}

#[test]
fn the_spring_example_is_accepted_as_it_is() {
    let schedule = Schedule::parse("0 0 0 */10 * *").unwrap();
    let kind = KindSettings {
        force_delete_unknown: true,
        cleanup: CleanupSettings {
            age: 10 * DAY,
            all: Some(schedule.clone()),
            succeeded: Some(schedule.clone()),
            failed: Some(schedule),
            ..CleanupSettings::default()
        },
    };
    let expected = FileSettings {
        instances: kind.clone(),
        bindings: kind,
    };
    assert_eq!(settings(SPRING_EXAMPLE), expected);
}

#[test]
fn without_settings_nothing_is_forced_and_nothing_cleaned() {
    let defaults = settings("server.port: 1");
    assert_eq!(defaults, FileSettings::default());
    assert!(!defaults.instances.force_delete_unknown);
    assert_eq!(defaults.instances.cleanup.age, 3 * DAY);
    assert_eq!(defaults.instances.cleanup.all, None);
    let empty = settings("com.equalities.osbapi:\n  service-instances:\n    operations:\n");
    assert_eq!(empty, FileSettings::default());
}

#[test]
fn keys_may_be_dotted_and_spelled_freely() {
    let spellings = [
        "com.equalities.osbapi.service-instances.force-delete-unknown: true",
        "com.equalities.osbapi.serviceInstances.forceDeleteUnknown: 'true'",
        "com:\n  equalities.osbapi:\n    service_instances.force_delete_unknown: yes",
        "com.equalities:\n  osbapi.service-instances:\n    force-delete-unknown: on",
    ];
    for yaml in spellings {
        let settings = settings(yaml);
        assert!(settings.instances.force_delete_unknown, "{yaml}");
        assert!(!settings.bindings.force_delete_unknown, "{yaml}");
    }
}

#[test]
fn ages_are_read_as_spring_reads_durations() {
    let table = [
        ("10d", 10 * DAY),
        ("1s", Duration::from_secs(1)),
        ("2h", Duration::from_secs(7_200)),
        ("30m", Duration::from_secs(1_800)),
        ("500ms", Duration::from_millis(500)),
        ("+7us", Duration::from_micros(7)),
        ("9ns", Duration::from_nanos(9)),
        ("5000", Duration::from_secs(5)),
        ("'5000'", Duration::from_secs(5)),
        ("0", Duration::ZERO),
        ("P10D", 10 * DAY),
        ("PT2H", Duration::from_secs(7_200)),
        ("p1dt1h30m", DAY + Duration::from_secs(5_400)),
        ("PT0.5S", Duration::from_millis(500)),
        ("3D", 3 * DAY),
    ];
    for (text, expected) in table {
        let yaml = format!("com.equalities.osbapi.service-bindings.operations.cleanup-age: {text}");
        assert_eq!(settings(&yaml).bindings.cleanup.age, expected, "{text}");
    }
}

#[test]
fn a_dash_switches_a_schedule_off() {
    let yaml = "com.equalities.osbapi.service-instances.operations:\n  cleanup-all: '-'\n  \
                cleanup-failed: '@daily'";
    let cleanup = settings(yaml).instances.cleanup;
    assert_eq!(cleanup.all, None);
    assert_eq!(cleanup.failed, Some(Schedule::parse("@daily").unwrap()));
}

#[test]
fn a_wrong_setting_is_reported_with_its_key_and_location() {
    let root = "com.equalities.osbapi.service-instances";
    let wrong = [
        (
            "force-delete-unknown: perhaps",
            "is `perhaps`, but must be true or false",
        ),
        (
            "operations.cleanup-age: 10 days",
            "is `10 days`, but must be a duration",
        ),
        (
            "operations.cleanup-age: -5s",
            "is `-5s`, but must be a duration",
        ),
        (
            "operations.cleanup-age: P1M",
            "is `P1M`, but must be a duration",
        ),
        (
            "operations.cleanup-age: -PT1H",
            "is `-PT1H`, but must be a duration",
        ),
        (
            "operations.cleanup-age: 99999999999999999999d",
            "but must be a duration",
        ),
        (
            "operations.cleanup-age: 40000d",
            "must not be longer than 36500 days",
        ),
        (
            "operations.cleanup-age: [1d]",
            "must be a single value, but is a list",
        ),
        (
            "operations.cleanup-all: daily",
            "must be a schedule: `daily` is not a cron expression",
        ),
        (
            "operations.cleanup-failed: 0 0 * * *",
            "5 fields and needs six",
        ),
    ];
    for (line, expected) in wrong {
        let faults = faults(&format!("{root}.{line}\n{OFFERING}"), None);
        let message = faults[0].to_string();
        let key = line.split(':').next().unwrap();
        assert!(message.starts_with("line 1, column "), "{message}");
        assert!(message.contains(&format!(": {root}.{key} ")), "{message}");
        assert!(message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn a_setting_given_twice_is_a_fault() {
    let yaml = format!(
        "com.equalities.osbapi.service-instances.force-delete-unknown: true\ncom:\n  equalities:\n    \
         osbapi:\n      service-instances:\n        force-delete-unknown: false\n{OFFERING}"
    );
    assert!(
        faults(&yaml, None)[0]
            .to_string()
            .contains("is given twice")
    );
}

#[test]
fn an_unknown_setting_is_a_warning_with_the_likely_key() {
    let yaml = "com.equalities.osbapi.service-instances.operations.cleanup-suceeded: '@daily'";
    let warnings = parse(&format!("{yaml}\n{OFFERING}")).warnings;
    assert_eq!(
        warnings,
        ["line 1, column 70: the unknown key \
          `com.equalities.osbapi.service-instances.operations.cleanup-suceeded` is ignored; did you mean \
          `com.equalities.osbapi.service-instances.operations.cleanup-succeeded`?"]
    );
}
