//! The file of mutations: the line of the checklist that each breaks, the expression, and its replacement.
//!
//! A block begins with the name and the file. `-` is the original expression, `+` its
//! replacement, `@` another text of the same line and `in` its function (if the expression alone
//! occurs more than once), `#` describes the effect, `*` the reason why all tests depend on it:
//!
//! ```text
//! B-083  crates/sutler-broker/src/lifecycle.rs
//! - Err(Refusal::AsyncRequired)
//! + Ok(Pace::Background)
//!   # 202 without being asked for
//! ```
//!
//! A line may have several mutations: `B-083/join`. A mutation that needs several places names the next one with
//! `& file`. Their positions in the source: `mutated_copy.rs`. The same form, with words as names, describes faults
//! that the simulation must find (`simulation_mutants.rs`); `seed` is the seed that showed it last.

use crate::BoxError;
use std::path::{Path, PathBuf};

/// One mutation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutation {
    /// `B-083`, or `B-083/join` if there are several.
    pub name: String,
    /// The file, from the workspace's root.
    pub file: PathBuf,
    pub original: String,
    /// Another text of its line.
    pub same_line: Option<String>,
    /// Its function.
    pub within: Option<String>,
    pub mutated: String,
    pub breaks: String,
    /// Why tests of other lines fail, too.
    pub broad: Option<String>,
    /// A further place of the mutation before it.
    pub also: bool,
    /// The seed of the simulation that showed it last.
    pub seed: Option<u64>,
}

impl Mutation {
    /// The line of the checklist.
    pub(crate) fn line(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

/// Reads the file; names must be unique and in order.
pub(crate) fn read(path: &Path) -> Result<Vec<Mutation>, BoxError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Mutation>, BoxError> {
    let mut mutations: Vec<Mutation> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |sentence: &str| format!("mutations.txt:{}: {sentence}", index + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, file)) = heading(line) {
            mutations.push(Mutation {
                name: name.to_owned(),
                file: PathBuf::from(file),
                ..Mutation::default()
            });
            continue;
        }
        let current = mutations.last_mut();
        let current = current.ok_or(at("a block begins with a name and a file"))?;
        let (mark, rest) = line
            .trim_start()
            .split_once(' ')
            .ok_or(at("nothing behind the mark"))?;
        let rest = rest.trim();
        match mark {
            "&" => {
                let (name, breaks) = (current.name.clone(), current.breaks.clone());
                mutations.push(Mutation {
                    name,
                    file: PathBuf::from(rest),
                    breaks,
                    also: true,
                    ..Mutation::default()
                });
            }
            "-" => rest.clone_into(&mut current.original),
            "+" => rest.clone_into(&mut current.mutated),
            "@" => current.same_line = Some(rest.to_owned()),
            "in" => current.within = Some(rest.to_owned()),
            "#" => rest.clone_into(&mut current.breaks),
            "*" => current.broad = Some(rest.to_owned()),
            "seed" => current.seed = Some(rest.parse().map_err(|_| at("not a seed"))?),
            _ => return Err(at("neither -, +, @, in, &, #, * nor seed").into()),
        }
    }
    check(&mutations)?;
    Ok(mutations)
}

/// Name and file of a line that begins a block.
fn heading(line: &str) -> Option<(&str, &str)> {
    let (name, file) = line.split_once(char::is_whitespace)?;
    let file = file.trim();
    let is_heading = name.starts_with(char::is_alphanumeric) && file.ends_with(".rs");
    is_heading.then_some((name, file))
}

fn check(mutations: &[Mutation]) -> Result<(), BoxError> {
    for one in mutations {
        if [&one.original, &one.mutated, &one.breaks]
            .iter()
            .any(|text| text.is_empty())
        {
            return Err(format!("{}: needs -, + and #", one.name).into());
        }
    }
    for pair in mutations.windows(2) {
        if pair[0].name >= pair[1].name && !pair[1].also {
            return Err(format!("{} must come before {}", pair[1].name, pair[0].name).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    const GOOD: &str = "# head\n\nB-001  a/b.rs\n- x\n+ y\n@ z\n  # why\n\nB-001/two  c.rs\n- p q\n+ r\n  # so\n  * all\n";

    #[test]
    fn blocks_are_read_with_all_their_marks() {
        let read = parse(GOOD).expect("well-formed");
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].line(), read[1].line()), ("B-001", "B-001"));
        assert_eq!(read[0].same_line.as_deref(), Some("z"));
        assert_eq!(
            (read[1].original.as_str(), read[1].mutated.as_str()),
            ("p q", "r")
        );
        assert_eq!(read[1].broad.as_deref(), Some("all"));
    }

    #[test]
    fn a_mutation_may_have_several_places() {
        let text = "late-claim  a.rs\n- x\n+ y\n  # why\nseed 7\n& b.rs\n- p\n+ q\n";
        let read = parse(text).expect("well-formed");
        assert_eq!(read[0].seed, Some(7));
        let places = read.iter().map(|it| (it.name.as_str(), it.also));
        assert_eq!(
            places.collect::<Vec<_>>(),
            [("late-claim", false), ("late-claim", true)]
        );
    }

    #[test]
    fn a_block_out_of_order_or_without_its_replacement_is_refused() {
        let twice = "B-002 a.rs\n- x\n+ y\n  # w\nB-001 a.rs\n- x\n+ y\n  # w\n";
        assert!(parse(twice).is_err());
        assert!(parse("B-002 a.rs\n- x\n  # w\n").is_err());
        assert!(parse("- x\n").is_err());
    }
}
