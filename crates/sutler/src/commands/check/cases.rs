//! All cases: as a list, and as the page `docs/check-cases.md`.

use std::fmt::Write as _;
use sutler_check::{Case, Level, Scope, all_cases};

/// Head of the page; its link is relative to `docs/`.
const HEAD: &str = "\
# What `sutler check` judges

Made by `cargo run -p sutler -- check --reference > docs/check-cases.md`; do not edit. Lines are those
of the OSB 2.17 checklist; what the levels mean, and what happens with each verdict, is in
[check.md](check.md).

";

/// Name, line, level and rule of every case, for terminals.
pub(super) fn list() -> String {
    let widest = all_cases().map(|it| it.name.len()).max().unwrap_or(0);
    all_cases().fold(String::new(), |mut text, case| {
        let Case {
            name, line, level, ..
        } = case;
        let _ = writeln!(text, "{name:widest$}  {line}  {level:6}  {}", case.rule);
        text
    })
}

/// The page of all cases.
pub(super) fn page() -> String {
    let mut text = String::from(HEAD);
    let count = |level| all_cases().filter(|it| it.level == level).count();
    let _ = writeln!(
        text,
        "{} cases: {} MUST, {} SHOULD, {} MAY.",
        all_cases().count(),
        count(Level::Must),
        count(Level::Should),
        count(Level::May)
    );
    for (scope, heading) in [
        (Scope::Broker, "Once for the broker"),
        (Scope::Plan, "Once for each plan"),
    ] {
        let _ = writeln!(text, "\n## {heading}\n");
        text.push_str("| case | line | level | rule |\n|---|---|---|---|\n");
        for case in all_cases().filter(|it| it.scope == scope) {
            let rule = case.rule.replace('|', "\\|");
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {rule} |",
                case.name, case.line, case.level
            );
        }
    }
    text
}
