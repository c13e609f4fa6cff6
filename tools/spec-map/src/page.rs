//! The page: a table of lines and their tests, counts, and lines without a test, with the reason.

use crate::checklist::{Level, Line};
use crate::scan::HeldLine;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines and the tests that hold them.
pub struct Map<'a> {
    rows: Vec<(&'a Line, Vec<&'a str>)>,
}

impl<'a> Map<'a> {
    /// Combines both.
    pub fn new(lines: &'a [Line], held: &'a [HeldLine]) -> Result<Self, String> {
        let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for held in held {
            tests.entry(&held.number).or_default().push(&held.test);
        }
        let known = |number: &str| lines.iter().any(|line| line.number == number);
        if let Some((number, tests)) = tests.iter().find(|(number, _)| !known(number)) {
            return Err(format!(
                "{} holds {number}, which is not in the checklist",
                tests[0]
            ));
        }
        let rows = lines
            .iter()
            .map(|line| (line, tests.remove(line.number.as_str()).unwrap_or_default()))
            .collect();
        Ok(Self { rows })
    }

    /// The MUST lines of a broker that no test holds.
    pub fn missing(&self) -> Vec<&'a str> {
        let open = |(line, tests): &&(&Line, Vec<&str>)| {
            line.level == Level::Must && line.reason.is_none() && tests.is_empty()
        };
        let missing = self.rows.iter().filter(open);
        missing.map(|(line, _)| line.number.as_str()).collect()
    }

    /// Summary of the coverage in one sentence.
    pub fn summary(&self) -> String {
        let (held, all) = self.count(None);
        format!("{held} of {all} lines are held by tests")
    }

    fn count(&self, level: Option<Level>) -> (usize, usize) {
        let mut counted = (0, 0);
        for (line, tests) in &self.rows {
            if level.is_none_or(|level| level == line.level) {
                counted.0 += usize::from(!tests.is_empty());
                counted.1 += 1;
            }
        }
        counted
    }

    /// The page as Markdown.
    pub fn page(&self) -> String {
        let mut page = String::from(
            "# Which test holds which line of the specification\n\n\
             Made by `cargo run -p sutler-spec-map` from the `Holds:` lines above the tests; do not edit.\n\
             B-lines number the statements of the OSB 2.17 specification about brokers; `docs/check-cases.md`\n\
             words those that `sutler check` tests. D-lines are the decisions in `docs/DECISIONS.md`, which names the\n\
             rows and tests of those from D-14 on. P-lines number its statements about platforms.\n\n\
             ## Brokers\n\n",
        );
        page += &self.section();
        page
    }

    /// The part of the page about its lines: counts, the table, and what no test holds.
    pub fn section(&self) -> String {
        let mut page = String::from("| level | lines | held by tests |\n|---|---|---|\n");
        let levels = [
            Level::Must,
            Level::Should,
            Level::May,
            Level::Unsaid,
            Level::Decision,
        ];
        for level in levels {
            let (held, all) = self.count(Some(level));
            if all == 0 {
                continue;
            }
            let _ = writeln!(page, "| {} | {all} | {held} |", level.word());
        }
        let (held, all) = self.count(None);
        let _ = writeln!(
            page,
            "| all | {all} | {held} |\n\n| line | level | tests |\n|---|---|---|"
        );
        for (line, tests) in self.rows.iter().filter(|(_, tests)| !tests.is_empty()) {
            let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            let (number, level) = (&line.number, line.level.word());
            let _ = writeln!(page, "| {number} | {level} | {} |", tests.join("<br>"));
        }
        page.push_str("\n### Held by no `Holds:` line\n\n");
        for (line, _) in self.rows.iter().filter(|(_, tests)| tests.is_empty()) {
            let reason = line.reason.as_deref().unwrap_or("Nothing yet.");
            let _ = writeln!(page, "- {} ({}): {reason}", line.number, line.level.word());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::Map;
    use crate::checklist::parse;
    use crate::scan::HeldLine;

    fn held(number: &str) -> HeldLine {
        HeldLine {
            number: number.to_owned(),
            test: format!("c::holds_{number}"),
        }
    }

    #[test]
    fn a_must_without_a_test_is_missing_unless_there_is_a_reason() {
        let lines = parse("B-001 M\nB-002 M\nB-003 M Elsewhere.\nB-004 O\n", "").expect("lines");
        let found = [held("B-001")];
        let map = Map::new(&lines, &found).expect("all are known");
        assert_eq!(map.missing(), ["B-002"]);
        assert_eq!(map.summary(), "1 of 4 lines are held by tests");
    }

    #[test]
    fn the_page_has_every_line_once_in_one_of_its_two_parts() {
        let lines = parse("B-001 M\nB-003 M Elsewhere.\n", "").expect("lines");
        let found = [held("B-001")];
        let page = Map::new(&lines, &found).expect("all are known").page();
        assert!(page.contains("| B-001 | must | `c::holds_B-001` |\n"));
        assert!(page.ends_with("- B-003 (must): Elsewhere.\n"));
    }

    #[test]
    fn a_test_that_holds_an_unknown_line_is_a_fault() {
        assert!(Map::new(&[], &[held("B-999")]).is_err());
    }
}
