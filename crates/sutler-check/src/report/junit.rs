//! The report as JUnit XML: one suite per subject, one test case per case.
//!
//! Cases that do not apply are skipped; a MAY never fails a build.

use super::Report;
use crate::case::Level;
use crate::verdicts::{Finding, Subject, Verdict};
use std::fmt::Write as _;

pub(super) fn render(report: &Report) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let failed = report.findings.iter().filter(|it| fails(it)).count();
    let _ = writeln!(
        xml,
        "<testsuites name=\"sutler check {}\" tests=\"{}\" failures=\"{failed}\" errors=\"{}\" time=\"{:.3}\">",
        attribute(&report.broker),
        report.findings.len(),
        usize::from(report.not_walked.is_some()) + report.left_behind.len(),
        report.took.as_secs_f64(),
    );
    for subject in report.subjects() {
        suite(report, subject, &mut xml);
    }
    errors(report, &mut xml);
    xml.push_str("</testsuites>\n");
    xml
}

fn fails(finding: &Finding) -> bool {
    finding.case.level != Level::May && matches!(finding.verdict, Verdict::Fail { .. })
}

fn suite(report: &Report, subject: &Subject, xml: &mut String) {
    let count = |of: fn(&Finding) -> bool| report.about(subject).filter(|it| of(it)).count();
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" errors=\"0\">",
        attribute(&subject.to_string()),
        count(|_| true),
        count(fails),
        count(|it| !fails(it) && !matches!(it.verdict, Verdict::Pass)),
    );
    for finding in report.about(subject) {
        case(report, finding, xml);
    }
    xml.push_str("  </testsuite>\n");
}

fn case(report: &Report, finding: &Finding, xml: &mut String) {
    let case = finding.case;
    let _ = write!(
        xml,
        "    <testcase name=\"{}\" classname=\"{}.{}\"",
        attribute(case.name),
        attribute(&finding.subject.to_string()),
        case.level
    );
    let said = attribute(&report.said(finding).unwrap_or_default());
    match &finding.verdict {
        Verdict::Pass => xml.push_str("/>\n"),
        Verdict::NotApplicable(_) => {
            let _ = write!(
                xml,
                ">\n      <skipped message=\"{said}\"/>\n    </testcase>\n"
            );
        }
        Verdict::Fail { .. } if !fails(finding) => {
            let _ = write!(
                xml,
                ">\n      <skipped message=\"MAY: {said}\"/>\n    </testcase>\n"
            );
        }
        Verdict::Fail { .. } => {
            let _ = writeln!(
                xml,
                ">\n      <failure type=\"{}\" message=\"{said}\">{}</failure>\n    </testcase>",
                case.level,
                content(&evidence(report, finding))
            );
        }
    }
}

fn evidence(report: &Report, finding: &Finding) -> String {
    let mut text = format!("{}: {}\n", finding.case.line, finding.case.rule);
    if let Some(shown) = report.shown(finding) {
        for line in &shown.request {
            let _ = writeln!(text, "{}", format!("> {line}").trim_end());
        }
        for line in &shown.answer {
            let _ = writeln!(text, "{}", format!("< {line}").trim_end());
        }
    }
    text
}

/// Faults of the check itself.
fn errors(report: &Report, xml: &mut String) {
    let not_walked = report
        .not_walked
        .iter()
        .map(|why| ("catalog".to_owned(), why.clone()));
    let left = report.left_behind.iter().map(|it| {
        let why = format!(
            "left behind: {}; remove it with: {}",
            it.why,
            report.removal(it)
        );
        (it.what.clone(), why)
    });
    let errors: Vec<(String, String)> = not_walked.chain(left).collect();
    if errors.is_empty() {
        return;
    }
    let many = errors.len();
    let _ = writeln!(
        xml,
        "  <testsuite name=\"the check itself\" tests=\"{many}\" failures=\"0\" skipped=\"0\" errors=\"{many}\">"
    );
    for (name, why) in errors {
        let _ = write!(
            xml,
            "    <testcase name=\"{}\" classname=\"the check itself\">\n      <error message=\"{}\"/>\n    </testcase>\n",
            attribute(&name),
            attribute(&report.redaction.text(&why))
        );
    }
    xml.push_str("  </testsuite>\n");
}

/// Text between tags.
fn content(text: &str) -> String {
    escaped(text, false)
}

/// Text between quotes.
fn attribute(text: &str) -> String {
    escaped(text, true)
}

/// Escapes a text. XML 1.0 cannot express most control characters and two noncharacters of Unicode.
fn escaped(text: &str, quoted: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' if quoted => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '\n' | '\t' => out.push(c),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{attribute, content};

    #[test]
    fn nothing_in_a_text_ends_its_element_or_breaks_the_document() {
        assert_eq!(
            content("a<b>&\"c\"]]>\n"),
            "a&lt;b&gt;&amp;&quot;c&quot;]]&gt;\n"
        );
        assert_eq!(
            attribute("x\ny\u{0}\u{1b}\u{85}\u{FFFF}"),
            "x&#10;y\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"
        );
    }
}
