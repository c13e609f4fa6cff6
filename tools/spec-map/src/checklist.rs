//! The lines of the specification and their levels, from `checklist.txt`.
//!
//! Only numbers and levels: the text of a line is in the specification. The project's own decisions
//! from D-14 on have their headings in `docs/DECISIONS.md` and need no entry.

/// Reason why a decision of our own may have no test here.
const NAMED_THERE: &str = "Its rows and tests are named in `docs/DECISIONS.md`.";

/// Requirement level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A broker must.
    Must,
    /// A broker should.
    Should,
    /// A broker may.
    May,
    /// The specification states no level.
    Unsaid,
    /// A decision of ours where the specification leaves it open.
    Decision,
}

impl Level {
    fn of(word: &str) -> Option<Self> {
        match word {
            "M" => Some(Self::Must),
            "S" => Some(Self::Should),
            "O" => Some(Self::May),
            "-" => Some(Self::Unsaid),
            "D" => Some(Self::Decision),
            _ => None,
        }
    }

    /// Its name on the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
            Self::Unsaid => "–",
            Self::Decision => "decided",
        }
    }
}

/// One line of the checklist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `B-082`, `D-03`.
    pub number: String,
    /// Requirement level.
    pub level: Level,
    /// Why no test holds it, if none can or needs to.
    pub reason: Option<String>,
}

/// Reads the checklist and the headings of the decisions.
pub fn parse(text: &str, decisions: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = entry(line);
        lines.push(entry.ok_or_else(|| format!("line {} of the checklist: {line:?}", nth + 1))?);
    }
    let headings = decisions
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    for heading in headings {
        let number = heading.split_whitespace().next().unwrap_or_default();
        let known = lines.iter().any(|line: &Line| line.number == number);
        if number.starts_with("D-") && !known {
            lines.push(Line {
                number: number.to_owned(),
                level: Level::Decision,
                reason: Some(NAMED_THERE.to_owned()),
            });
        }
    }
    lines.sort_by(|a, b| a.number.cmp(&b.number));
    match lines.windows(2).find(|two| two[0].number == two[1].number) {
        Some(twice) => Err(format!("the checklist has {} twice", twice[0].number)),
        None => Ok(lines),
    }
}

fn entry(line: &str) -> Option<Line> {
    let (number, rest) = line.split_once(' ')?;
    let (level, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    Some(Line {
        number: number.to_owned(),
        level: Level::of(level)?,
        reason: Some(reason.trim().to_owned()).filter(|it| !it.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Level, parse};

    #[test]
    fn a_line_is_a_number_a_level_and_perhaps_a_reason() {
        let lines =
            parse("# words\n\nB-002 O\nB-001 - Not here.\n", "").expect("it is well-formed");
        assert_eq!(lines[0].number, "B-001");
        assert_eq!(lines[0].reason.as_deref(), Some("Not here."));
        assert_eq!((lines[1].level, &lines[1].reason), (Level::May, &None));
    }

    #[test]
    fn decisions_are_known_by_their_headings() {
        let lines = parse("D-01 D\n", "# Decisions\n## D-14 Words\ntext D-13\n").expect("it is");
        let numbers: Vec<_> = lines.iter().map(|line| line.number.as_str()).collect();
        assert_eq!(numbers, ["D-01", "D-14"]);
    }

    #[test]
    fn malformed_and_duplicate_lines_are_errors() {
        assert!(parse("B-001 X\n", "").is_err());
        assert!(parse("B-001\n", "").is_err());
        assert!(parse("B-001 M\nB-001 O\n", "").is_err());
    }
}
