//! Lines of the checklist without a case, because they cannot be observed from outside of a broker.
//!
//! Every other line has at least one case; the test below verifies that.

/// Lines of the checklist, and why they cannot be observed from outside.
pub const NOT_OBSERVABLE: &[(&str, &str)] = &[
    ("B-007", "what a broker writes into its log stays inside"),
    (
        "B-012",
        "which other mechanism is agreed on is known to the two sides only",
    ),
    (
        "B-013",
        "whether other platforms are served elsewhere does not show here",
    ),
    (
        "B-036",
        "a broker's own failure cannot be brought about by asking",
    ),
    (
        "B-080",
        "when an operation takes time, and how much, is the broker's to decide",
    ),
    (
        "B-085",
        "a broker that is always done with the answer is right either way",
    ),
    (
        "B-088",
        "how many operations a broker can tell apart is its own matter",
    ),
    (
        "B-090",
        "how much is served side by side is the broker's choice",
    ),
    (
        "B-092",
        "whether a bind changes an instance is the broker's choice",
    ),
    (
        "B-131",
        "what is made in the world does not show; what is told of it has cases of its own",
    ),
    (
        "B-169",
        "says again what B-037, B-033 and B-034 say, which have cases",
    ),
    (
        "B-172",
        "no update can be made to fail by asking, and so none be repaired",
    ),
    (
        "B-197",
        "what is needed to connect, only who connects can know",
    ),
    ("B-241", "what is removed in the world does not show"),
    ("B-251", "what is removed in the world does not show"),
    (
        "B-257",
        "no deprovision can be made to fail by asking; what an error may say is B-033",
    ),
    (
        "B-258",
        "what a broker removes on its own does not show in a walk",
    ),
];

#[cfg(test)]
mod tests {
    use super::NOT_OBSERVABLE;
    use crate::cases::all_cases;
    use std::collections::BTreeSet;

    const COVERAGE: &str = include_str!("../../../docs/spec-coverage.md");

    #[test]
    fn every_line_of_the_checklist_has_a_case_or_a_reason_why_not() {
        let lines: BTreeSet<&str> = COVERAGE
            .lines()
            .filter_map(|it| it.strip_prefix("| ").or(it.strip_prefix("- ")))
            .filter_map(|it| it.split(' ').next())
            .filter(|it| it.starts_with("B-"))
            .collect();
        assert!(lines.len() > 100, "{} lines", lines.len());
        let with_case: BTreeSet<&str> = all_cases().map(|it| it.line).collect();
        let unseen: BTreeSet<&str> = NOT_OBSERVABLE.iter().map(|it| it.0).collect();
        let neither: Vec<&&str> = lines
            .iter()
            .filter(|it| !with_case.contains(**it) && !unseen.contains(**it))
            .collect();
        assert!(neither.is_empty(), "neither case nor reason: {neither:?}");
        let both: Vec<&&str> = with_case.intersection(&unseen).collect();
        assert!(both.is_empty(), "both case and reason: {both:?}");
        let strangers: Vec<&&str> = with_case
            .union(&unseen)
            .filter(|it| !lines.contains(**it))
            .collect();
        assert!(strangers.is_empty(), "not on the checklist: {strangers:?}");
    }
}
