//! Finds tests that declare the lines they hold, in all Rust sources of the workspace.
//!
//! It reads text, not syntax: a doc comment that begins with `Holds:`, then attributes of which one
//! is a test's, then the function. Any other form is an error, never silently ignored.

use std::path::{Path, PathBuf};

/// Directories of the sources.
const FOLDERS: [&str; 3] = ["crates", "examples", "tools"];
const MARK: &str = "/// Holds:";
/// What the numbers of lines about platforms begin with.
const PLATFORM_LINE: &str = "P-";

/// A test and a line that it holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldLine {
    /// `B-082`.
    pub number: String,
    /// `sutler-broker::it::pace::a_test`.
    pub test: String,
}

/// The lines about brokers, and the decisions, that tests of the workspace declare to hold.
pub fn broker_lines(root: &Path) -> Result<Vec<HeldLine>, String> {
    let mut held = workspace(root)?;
    held.retain(|line| !line.number.starts_with(PLATFORM_LINE));
    Ok(held)
}

/// The lines about platforms that tests of the workspace declare to hold.
pub fn platform_lines(root: &Path) -> Result<Vec<HeldLine>, String> {
    let mut held = workspace(root)?;
    held.retain(|line| line.number.starts_with(PLATFORM_LINE));
    Ok(held)
}

fn workspace(root: &Path) -> Result<Vec<HeldLine>, String> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    let mut held = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        held.extend(source(&module(path), &text)?);
    }
    held.sort();
    Ok(held)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// `crates/sutler-broker/tests/it/provision.rs` is `sutler-broker::it::provision`.
fn module(path: &Path) -> String {
    let path = path.with_extension("");
    let parts = path.iter().filter_map(|part| part.to_str()).skip(1);
    // Source directories and names of roots are omitted; a module called `tests` is not.
    let is_omitted = |(nth, part): &(usize, &str)| match *part {
        "src" | "tests" => *nth == 1,
        "main" | "lib" | "mod" => true,
        _ => false,
    };
    let said = parts.enumerate().filter(|part| !is_omitted(part));
    let parts: Vec<&str> = said.map(|(_, part)| part).collect();
    parts.join("::")
}

/// The lines that the tests of one file hold.
fn source(module: &str, text: &str) -> Result<Vec<HeldLine>, String> {
    let mut held = Vec::new();
    let mut inner = String::new();
    let mut numbers: Vec<String> = Vec::new();
    let mut is_test = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(name) = line
            .strip_prefix("mod ")
            .and_then(|it| it.strip_suffix(" {"))
        {
            inner = format!("::{name}");
        } else if line == "}" {
            inner.clear();
        }
        if let Some(said) = trimmed.strip_prefix(MARK) {
            numbers.extend(parse(module, said)?);
        } else if trimmed.starts_with("#[") {
            is_test |= trimmed.contains("test");
        } else if let Some(name) = function(trimmed) {
            if !numbers.is_empty() && !is_test {
                return Err(format!("{module}: {name} holds lines but is no test"));
            }
            let test = format!("{module}{inner}::{name}");
            held.extend(numbers.drain(..).map(|number| HeldLine {
                number,
                test: test.clone(),
            }));
            is_test = false;
        } else if !trimmed.starts_with("//") && !numbers.is_empty() && trimmed.is_empty() {
            return Err(format!("{module}: `Holds:` stands above no function"));
        }
    }
    Ok(held)
}

fn parse(module: &str, said: &str) -> Result<Vec<String>, String> {
    let numbers = said
        .trim()
        .trim_end_matches(['.', ','])
        .split(',')
        .map(str::trim);
    let well_formed = |number: &str| {
        let digits = number
            .strip_prefix("B-")
            .or_else(|| number.strip_prefix("D-"))
            .or_else(|| number.strip_prefix(PLATFORM_LINE));
        digits.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    numbers
        .map(|number| match well_formed(number) {
            true => Ok(number.to_owned()),
            false => Err(format!(
                "{module}: `Holds:` names {number:?}, which is no line"
            )),
        })
        .collect()
}

fn function(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("fn ")
        .or_else(|| line.strip_prefix("async fn "))
        .or_else(|| line.strip_prefix("pub fn "))
        .or_else(|| line.strip_prefix("pub(crate) fn "))?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::{HeldLine, module, source};
    use std::path::Path;

    fn held(number: &str, test: &str) -> HeldLine {
        HeldLine {
            number: number.to_owned(),
            test: test.to_owned(),
        }
    }

    #[test]
    fn a_test_is_found_with_all_it_holds_and_where_it_is() {
        let text = "/// Holds: B-001, D-02.\n/// Holds: B-003.\n#[tokio::test]\nasync fn one() {\n}\n\
            mod tests {\n    /// Words.\n    /// Holds: B-004.\n    #[test]\n    fn two() {}\n}\n";
        let expected = [
            held("B-001", "c::m::one"),
            held("D-02", "c::m::one"),
            held("B-003", "c::m::one"),
            held("B-004", "c::m::tests::two"),
        ];
        assert_eq!(source("c::m", text).expect("it is well-formed"), expected);
    }

    #[test]
    fn a_declaration_without_a_test_or_a_line_is_an_error() {
        assert!(source("m", "/// Holds: B-001.\nfn one() {}\n").is_err());
        assert!(source("m", "/// Holds: everything.\n#[test]\nfn one() {}\n").is_err());
        assert!(source("m", "/// Holds: B-001.\n\nfn one() {}\n").is_err());
    }

    #[test]
    fn a_file_is_named_as_its_module() {
        let name = |path: &str| module(Path::new(path));
        assert_eq!(
            name("crates/a-b/tests/it/provision.rs"),
            "a-b::it::provision"
        );
        assert_eq!(name("crates/a-b/src/lib.rs"), "a-b");
        assert_eq!(name("tools/t/src/x/y.rs"), "t::x::y");
        assert_eq!(name("crates/a-b/src/x/tests/y.rs"), "a-b::x::tests::y");
    }
}
