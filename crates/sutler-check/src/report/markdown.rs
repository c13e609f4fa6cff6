//! A report as Markdown, for a pull request or an issue: a table, then every failure, folded.

use super::{Counts, Report};
use crate::case::Level;
use crate::verdicts::{Finding, Subject};
use std::fmt::Write as _;

pub(super) fn render(report: &Report) -> String {
    let mut text = format!("# sutler check of {}\n\n", cell(&report.broker));
    let _ = writeln!(text, "{}\n", outcome(report));
    text.push_str("| | MUST | SHOULD | MAY |\n|---|---|---|---|\n");
    for subject in report.subjects() {
        row(report, &subject.to_string(), Some(subject), &mut text);
    }
    row(report, "all", None, &mut text);
    let _ = writeln!(
        text,
        "\nPassed / failed / not applicable. {} requests in {:.1} s; profile {}.",
        report.requests,
        report.took.as_secs_f64(),
        report.profile
    );
    for level in [Level::Must, Level::Should, Level::May] {
        let of_level = report.failures(level).filter(|it| it.case.level == level);
        let failures: Vec<&Finding> = of_level.collect();
        if !failures.is_empty() {
            let _ = writeln!(text, "\n## {}", heading(level));
            for finding in failures {
                failure(report, finding, &mut text);
            }
        }
    }
    left_behind(report, &mut text);
    text
}

fn heading(level: Level) -> &'static str {
    match level {
        Level::Must => "Failed MUST",
        Level::Should => "Failed SHOULD",
        Level::May => "Good to know (MAY)",
    }
}

fn outcome(report: &Report) -> String {
    if let Some(why) = &report.not_walked {
        let why = report.redaction.text(why);
        return format!("**Could not be checked:** {}", cell(&why));
    }
    let stopped = match report.stopped {
        true => " The check was stopped before its end.",
        false => "",
    };
    let musts = report.counts(None, Level::Must).failed;
    let shoulds = report.counts(None, Level::Should).failed;
    match (musts, shoulds) {
        (0, 0) => format!("**Conformant:** no MUST and no SHOULD failed.{stopped}"),
        (0, many) => format!("**Conformant:** no MUST failed, {many} SHOULD did.{stopped}"),
        (many, others) => {
            format!("**Not conformant:** {many} MUST and {others} SHOULD failed.{stopped}")
        }
    }
}

fn row(report: &Report, name: &str, subject: Option<&Subject>, text: &mut String) {
    let show = |level| {
        let Counts {
            passed,
            failed,
            not_applicable,
        } = report.counts(subject, level);
        match failed {
            0 => format!("{passed} / 0 / {not_applicable}"),
            _ => format!("{passed} / **{failed}** / {not_applicable}"),
        }
    };
    let (must, should, may) = (show(Level::Must), show(Level::Should), show(Level::May));
    let _ = writeln!(text, "| {} | {must} | {should} | {may} |", cell(name));
}

fn failure(report: &Report, finding: &Finding, text: &mut String) {
    let case = finding.case;
    let _ = writeln!(
        text,
        "\n### {} of {}\n\n{} ({})\n\n{}",
        case.name,
        cell(&finding.subject.to_string()),
        cell(case.rule),
        case.line,
        cell(&report.said(finding).unwrap_or_default())
    );
    let Some(shown) = report.shown(finding) else {
        return;
    };
    let request_lines = shown.request.iter().map(|it| format!("> {it}"));
    let answered = shown.answer.iter().map(|it| format!("< {it}"));
    let lines: Vec<String> = request_lines.chain(answered).collect();
    let lines: Vec<&str> = lines.iter().map(|it| it.trim_end()).collect();
    let lines = lines.join("\n");
    let fence = fence(&lines);
    let _ = writeln!(
        text,
        "\n<details><summary>request and answer</summary>\n\n{fence}http\n{lines}\n{fence}\n\n</details>"
    );
}

fn left_behind(report: &Report, text: &mut String) {
    if report.left_behind.is_empty() {
        return;
    }
    text.push_str("\n## Left behind\n\n");
    for left in &report.left_behind {
        let why = report.redaction.text(&left.why);
        let _ = writeln!(text, "- {}: {}", cell(&left.what), cell(&why));
    }
    let commands: Vec<String> = report
        .left_behind
        .iter()
        .map(|it| report.removal(it))
        .collect();
    let _ = writeln!(text, "\n```sh\n{}\n```", commands.join("\n"));
}

/// A fence that is longer than any in the text.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Text of a broker without effect on the layout: one line, no markup except code.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '<' | '>' | '*' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            // A user name here would be notified about every report.
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{cell, fence};

    #[test]
    fn texts_of_a_broker_are_not_markup() {
        assert_eq!(cell("a|b\n# c <i> @me"), "a\\|b \\# c \\<i\\> &#64;me");
        assert_eq!(fence("x ``` y"), "````");
        assert_eq!(fence("plain"), "```");
    }
}
