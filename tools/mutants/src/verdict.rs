//! Verdicts of the runs, and the report.

use crate::mutation::Mutation;

/// A test that failed because of a mutant.
#[derive(Clone, Debug)]
pub(crate) struct FailedTest {
    pub test: String,
    /// It holds the mutant's line.
    pub holds: bool,
    /// It runs random lives and holds all lines at once.
    pub random: bool,
}

/// Verdict on one mutation.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub mutation: Mutation,
    /// Number of tests that hold its line.
    pub holders: usize,
    /// Whether tests of other lines ran, too.
    pub all_ran: bool,
    pub red: Vec<FailedTest>,
}

impl Verdict {
    /// Whether a test of its line failed.
    pub(crate) fn killed(&self) -> bool {
        self.red.iter().any(|red| red.holds)
    }

    /// Failed tests of other lines.
    fn other_failures(&self) -> impl Iterator<Item = &str> {
        let strange = |red: &&FailedTest| !red.holds && !red.random;
        self.red.iter().filter(strange).map(|red| red.test.as_str())
    }

    /// Short summary.
    pub(crate) fn words(&self) -> String {
        let (own, strange) = (
            self.red.iter().filter(|red| red.holds).count(),
            self.other_failures().count(),
        );
        let of = self.holders;
        if self.killed() && !self.all_ran {
            return "killed".to_owned();
        }
        match (self.killed(), strange, &self.mutation.broad) {
            (false, 0, _) => format!("SURVIVED all of its {of} tests"),
            (false, _, _) => {
                format!("SURVIVED all of its {of} tests, but {strange} others are red")
            }
            (true, 0, _) => format!("killed by {own} of {of}, exactly"),
            (true, _, Some(_)) => {
                format!("killed by {own} of {of}, and {strange} others stand on it")
            }
            (true, _, None) => format!("killed by {own} of {of}, INEXACTLY: {strange} others"),
        }
    }
}

impl Verdict {
    /// Full report: every unexpected failure, or every failure.
    fn full_report(&self, verbose: bool) -> String {
        let Mutation { name, breaks, .. } = &self.mutation;
        let mut full_report = format!("{name}: {breaks}: {}\n", self.words());
        let own = self.red.iter().filter(|red| verbose && red.holds);
        full_report.extend(own.map(|red| format!("    own:   {}\n", red.test)));
        full_report.extend(
            self.other_failures()
                .map(|test| format!("    other: {test}\n")),
        );
        full_report
    }
}

/// Prints the mutations and the lines without one.
pub(crate) fn list(mutations: &[Mutation], without: &[String]) {
    for one in mutations {
        print_text(&format!(
            "{:<14} {}\n    - {}\n    + {}\n",
            one.name, one.breaks, one.original, one.mutated
        ));
    }
    print_text(&format!("{} mutations\n", mutations.len()));
    missing(without);
}

/// Prints everything unexpected; returns whether all is well.
pub(crate) fn report(verdicts: &[Verdict], without: &[String], verbose: bool) -> bool {
    let (mut fast, mut exact, mut broad, mut inexact, mut survived) = (0, 0, 0, 0, 0);
    for verdict in verdicts {
        let strange: Vec<&str> = verdict.other_failures().collect();
        match (
            verdict.killed(),
            strange.is_empty(),
            &verdict.mutation.broad,
        ) {
            (false, _, _) => survived += 1,
            (true, _, _) if !verdict.all_ran => fast += 1,
            (true, true, _) => exact += 1,
            (true, false, Some(_)) => broad += 1,
            (true, false, None) => inexact += 1,
        }
        let fine = verdict.killed() && (strange.is_empty() || verdict.mutation.broad.is_some());
        if fine && !verbose {
            continue;
        }
        print_text(&verdict.full_report(verbose));
    }
    missing(without);
    print_text("\n");
    let rows = [
        (verdicts.len(), "mutants"),
        (fast, "killed (tests of other lines did not run)"),
        (exact, "killed, and no other test is red"),
        (broad, "killed, where other lines stand on the same"),
        (inexact, "killed, and other tests are red"),
        (survived, "survived"),
        (without.len(), "MUST lines without a mutation"),
    ];
    for (count, words) in rows {
        print_text(&format!("{count:>5}  {words}\n"));
    }
    survived == 0 && without.is_empty()
}

fn missing(without: &[String]) {
    without
        .iter()
        .for_each(|line| print_text(&format!("{line}: no mutation\n")));
}

/// The report is written to standard output, progress to standard error.
fn print_text(text: &str) {
    use std::io::Write as _;
    // A closed output needs no report.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
