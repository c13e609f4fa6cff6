//! Report as text: a table, then every failure with request and response, then the resources left behind.
//! The text always has colours; they are removed when it is not printed to a terminal.

use super::exit::CheckCommandError;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use owo_colors::OwoColorize as _;
use std::fmt::Write as _;
use std::io::Write as _;
use sutler_check::{Counts, Finding, Level, Report, Subject, Verdict};
use sutler_yaml::one_line;

const LEVELS: [Level; 3] = [Level::Must, Level::Should, Level::May];

/// The whole report; `verbose` adds passed and not applicable cases.
pub(super) fn render(report: &Report, verbose: bool) -> String {
    let mut text = String::new();
    // If no plan could be tested, only the reason is printed.
    let walked = report.not_walked.is_none() || report.subjects().len() > 1;
    if walked {
        text.push_str(&table(report));
        text.push('\n');
    }
    if verbose {
        others(report, &mut text);
    }
    for finding in report.failures(Level::May).filter(|_| walked || verbose) {
        // Cases where both results are allowed need no evidence.
        let evidence = verbose || finding.case.level != Level::May;
        failure(report, finding, evidence, &mut text);
    }
    left_behind(report, &mut text);
    let _ = writeln!(text, "{}", summary(report));
    text
}

/// The result in one line.
pub(super) fn summary(report: &Report) -> String {
    let failed = |level| report.counts(None, level).failed;
    let (musts, shoulds) = (failed(Level::Must), failed(Level::Should));
    let verdict = match (&report.not_walked, musts, shoulds) {
        (Some(why), _, _) => {
            let why = one_line(why);
            return format!("{}: {why}", "could not be checked".red().bold());
        }
        (None, 0, 0) => format!(
            "{}: no MUST and no SHOULD failed",
            "conformant".green().bold()
        ),
        (None, 0, many) => {
            format!(
                "{}: no MUST failed, {many} SHOULD did",
                "conformant".yellow().bold()
            )
        }
        (None, many, others) => format!(
            "{}: {many} MUST and {others} SHOULD failed",
            "not conformant".red().bold()
        ),
    };
    let stopped = match report.stopped {
        true => ", stopped before its end",
        false => "",
    };
    format!(
        "{verdict}{stopped} ({} requests, {} instances and {} bindings in {:.1} s)",
        report.requests,
        report.made.instances,
        report.made.bindings,
        report.took.as_secs_f64()
    )
}

fn table(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .enforce_styling()
        .style_text_only();
    let bold = |text: &str| Cell::new(text).add_attribute(Attribute::Bold);
    let mut header = vec![Cell::new("")];
    for level in LEVELS {
        for (nth, word) in ["passed", "failed", "n/a"].into_iter().enumerate() {
            let text = match nth {
                0 => format!("{level} {word}"),
                _ => word.to_owned(),
            };
            header.push(bold(&text).set_alignment(CellAlignment::Right));
        }
    }
    table.set_header(header);
    for subject in report.subjects() {
        table.add_row(row(report, &one_line(&subject.to_string()), Some(subject)));
    }
    table.add_row(row(report, "all", None));
    table.lines().fold(String::new(), |text, line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        text + line.trim_end() + "\n"
    })
}

fn row(report: &Report, name: &str, subject: Option<&Subject>) -> Vec<Cell> {
    let mut cells = vec![Cell::new(name)];
    for level in LEVELS {
        let Counts {
            passed,
            failed,
            not_applicable,
        } = report.counts(subject, level);
        let number = |count: usize| Cell::new(count).set_alignment(CellAlignment::Right);
        cells.push(number(passed));
        cells.push(match (failed, level) {
            (0, _) => number(0),
            (_, Level::Must) => number(failed).fg(Color::Red).add_attribute(Attribute::Bold),
            (_, Level::Should | Level::May) => number(failed).fg(Color::Yellow),
        });
        cells.push(number(not_applicable));
    }
    cells
}

/// Passed and not applicable cases, a line each.
fn others(report: &Report, text: &mut String) {
    for finding in &report.findings {
        let word = match finding.verdict {
            Verdict::Pass => "passed".green().to_string(),
            Verdict::NotApplicable(_) => "n/a   ".dimmed().to_string(),
            Verdict::Fail { .. } => continue,
        };
        let _ = write!(text, "{word} {}", title(finding));
        match report.said(finding) {
            Some(said) => {
                let _ = writeln!(text, ": {}", one_line(&said));
            }
            None => text.push('\n'),
        }
    }
    text.push('\n');
}

fn title(finding: &Finding) -> String {
    let case = finding.case;
    let subject = one_line(&finding.subject.to_string());
    format!("{} {} ({}) of {subject}", case.level, case.name, case.line)
}

fn failure(report: &Report, finding: &Finding, evidence: bool, text: &mut String) {
    let word = match finding.case.level {
        Level::Must => "failed".red().bold().to_string(),
        Level::Should => "failed".yellow().bold().to_string(),
        Level::May => "differs".cyan().bold().to_string(),
    };
    let _ = writeln!(text, "{word} {}", title(finding));
    let _ = writeln!(text, "  {}", finding.case.rule);
    for line in report.said(finding).unwrap_or_default().lines() {
        let _ = writeln!(text, "  {}", line.bold());
    }
    if let Some(shown) = report.shown(finding).filter(|_| evidence) {
        for line in &shown.request {
            let _ = writeln!(text, "    {}", format!("> {line}").trim_end().dimmed());
        }
        for line in &shown.answer {
            let _ = writeln!(text, "    {}", format!("< {line}").trim_end().dimmed());
        }
    }
    text.push('\n');
}

fn left_behind(report: &Report, text: &mut String) {
    if report.left_behind.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}; remove it with:", "left behind".red().bold());
    for left in &report.left_behind {
        let _ = writeln!(
            text,
            "  # {}: {}",
            one_line(&left.what),
            one_line(&left.why)
        );
        let _ = writeln!(text, "  {}", report.removal(left));
    }
    text.push('\n');
}

/// Prints to standard output, with colours on a terminal.
pub(super) fn print(text: &str) -> Result<(), CheckCommandError> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader may have closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let sentence = "the report could not be printed; use --output".to_owned();
            Err(CheckCommandError::Failed(sentence, Some(error.into())))
        }
        Ok(()) => Ok(()),
    }
}

/// Prints a note to standard error.
pub(super) fn say(sentence: &str) {
    let _ = writeln!(anstream::stderr(), "{sentence}");
}

#[cfg(test)]
mod tests {
    use super::render;
    use sutler_check::{
        Case, Finding, LeftoverResource, Level, Profile, Redaction, Report, Scope, Subject, Tally,
        Verdict,
    };

    static CREATED: Case = Case {
        name: "created",
        line: "B-002",
        level: Level::Must,
        scope: Scope::Plan,
        rule: "What is made is answered with 201.",
    };
    static TOLD: Case = Case {
        name: "told",
        line: "B-004",
        level: Level::May,
        scope: Scope::Plan,
        rule: "A broker may tell why.",
    };

    fn report() -> Report {
        let find = |case, plan: &str, verdict| Finding {
            case,
            subject: Subject::Plan {
                service: "data".into(),
                plan: plan.into(),
            },
            verdict,
        };
        let fail = |said: &str| Verdict::Fail {
            said: said.to_owned(),
            exchange: None,
        };
        Report {
            broker: "https://broker.example".to_owned(),
            profile: Profile::V2_17,
            findings: vec![
                find(&CREATED, "small", fail("expected 201, got 200")),
                find(&CREATED, "a-larger-one", Verdict::Pass),
                find(&TOLD, "small", fail("it did not tell\u{1b}[2J")),
                find(
                    &TOLD,
                    "a-larger-one",
                    Verdict::NotApplicable("why not".to_owned()),
                ),
            ],
            left_behind: vec![LeftoverResource {
                what: "instance i".to_owned(),
                why: "its delete was answered with 500".to_owned(),
                target: "/v2/service_instances/i?service_id=s&plan_id=p".to_owned(),
            }],
            not_walked: None,
            stopped: true,
            took: std::time::Duration::from_millis(1234),
            requests: 42,
            made: Tally {
                instances: 3,
                bindings: 4,
            },
            redaction: Redaction::default(),
        }
    }

    #[track_caller]
    fn same(verbose: bool, kept: &str) {
        let made = render(&report(), verbose);
        let made = anstream::adapter::strip_str(&made).to_string();
        assert!(made == kept, "the report is now:\n{made}");
    }

    #[test]
    fn a_text_report_has_a_table_the_failures_and_what_is_left() {
        same(false, include_str!("tests/report.txt"));
    }

    #[test]
    fn a_verbose_report_lists_passed_cases_and_why_others_do_not_apply() {
        same(true, include_str!("tests/verbose.txt"));
    }
}
