//! One Rust file: its functions and modules.
//!
//! Not a parser: strings and comments are blanked, then braces and a few words are enough to
//! find functions and modules. It does not rely on rustfmt's layout.

/// A file with its text twice: as written, and with strings and comments blanked.
#[derive(Clone, Debug)]
pub struct Source {
    text: String,
    code: String,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub first_line: usize,
    /// The line of its closing brace.
    pub last_line: usize,
}

impl Function {
    /// Number of lines, including the signature.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }
}

impl Source {
    /// Reads a file's text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            code: blank(text),
        }
    }

    /// As written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// With every character of strings and comments replaced by a space; lines stay where they are.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The functions that have a body, outer before inner.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let starts = words(&self.code).filter(|(_, word)| *word == "fn");
        starts.filter_map(|(at, _)| self.function(at)).collect()
    }

    /// The modules declared in separate files; `true` for those compiled only for tests.
    #[must_use]
    pub fn modules(&self) -> Vec<(String, bool)> {
        let mut modules = Vec::new();
        let mut only_tests = false;
        for (line, text) in self.code.lines().map(str::trim).zip(self.text.lines()) {
            if is_for_tests(text.trim()) {
                only_tests = true;
                continue;
            }
            if let Some(name) = declared(line) {
                modules.push((name.to_owned(), only_tests));
            }
            if !line.is_empty() {
                only_tests = false;
            }
        }
        modules
    }

    /// The lines (from 1) inside `#[cfg(test)] mod … { … }`.
    #[must_use]
    pub fn test_lines(&self) -> Vec<(usize, usize)> {
        let mut at = 0;
        let mut found = Vec::new();
        for (line, code) in self.text.lines().zip(self.code.split_inclusive('\n')) {
            at += code.len();
            if is_for_tests(line.trim()) {
                let rest = &self.code[at..];
                let open = rest
                    .find(['{', ';'])
                    .filter(|open| rest[*open..].starts_with('{'));
                found.extend(open.and_then(|open| self.block(at + open)));
            }
        }
        found
    }

    fn function(&self, at: usize) -> Option<Function> {
        let rest = &self.code[at + 2..];
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        // `fn(u8) -> u8` is a type.
        if name.is_empty() {
            return None;
        }
        let mut depth = 0_usize;
        for (offset, c) in rest.char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => return None,
                '{' if depth == 0 => {
                    let (_, last_line) = self.block(at + 2 + offset)?;
                    let first_line = self.line_of(at);
                    return Some(Function {
                        name,
                        first_line,
                        last_line,
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// First and last line of the block whose brace opens here.
    fn block(&self, open: usize) -> Option<(usize, usize)> {
        let mut depth = 0_usize;
        for (offset, c) in self.code[open..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some((self.line_of(open), self.line_of(open + offset)));
            }
        }
        None
    }

    fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }
}

/// Features that only tests, fuzzing and benchmarks switch on.
const FEATURES_OF_TESTS: [&str; 4] = ["testing", "conformance", "fuzzing", "faults"];

/// Whether an attribute excludes the next item from the product.
fn is_for_tests(line: &str) -> bool {
    let Some(condition) = line
        .strip_prefix("#[cfg(")
        .and_then(|it| it.strip_suffix(")]"))
    else {
        return false;
    };
    let mut features = FEATURES_OF_TESTS.iter();
    let by_feature = features.any(|it| condition.contains(&format!("feature = \"{it}\"")));
    let by_test = words(condition).any(|(_, word)| word == "test");
    !condition.contains("not(") && (by_test || by_feature)
}

/// `pub mod name;` and its like.
fn declared(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let (before, name) = line.rsplit_once("mod ")?;
    let visible = before.is_empty() || before.starts_with("pub");
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (visible && is_name).then_some(name)
}

fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    code.split(move |c| !is_word(c)).map(move |word| {
        // The pieces are adjacent in `code`, one separator apart.
        let start = at;
        let separator = code[start + word.len()..]
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        at = start + word.len() + separator;
        (start, word)
    })
}

/// State of the scanner.
enum In {
    Code,
    LineComment,
    /// With its nesting.
    BlockComment(usize),
    Text,
    /// With the number of `#` that close it.
    RawText(usize),
}

/// Replaces strings, characters and comments by spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut state = In::Code;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (next, take) = match state {
            In::Code => begins(rest, out.chars().next_back()),
            In::LineComment if c == '\n' => (In::Code, 1),
            In::LineComment => (In::LineComment, c.len_utf8()),
            In::BlockComment(depth) => match rest {
                _ if rest.starts_with("/*") => (In::BlockComment(depth + 1), 2),
                _ if rest.starts_with("*/") && depth == 1 => (In::Code, 2),
                _ if rest.starts_with("*/") => (In::BlockComment(depth - 1), 2),
                _ => (In::BlockComment(depth), c.len_utf8()),
            },
            In::Text if c == '\\' => (
                In::Text,
                1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            ),
            In::Text if c == '"' => (In::Code, 1),
            In::Text => (In::Text, c.len_utf8()),
            In::RawText(hashes) => {
                let closing = format!("\"{}", "#".repeat(hashes));
                match rest.starts_with(&closing) {
                    true => (In::Code, closing.len()),
                    false => (In::RawText(hashes), c.len_utf8()),
                }
            }
        };
        let visible = matches!((&state, &next), (In::Code, In::Code)) && !is_character(rest, take);
        for c in rest[..take].chars() {
            out.push(if visible || c == '\n' { c } else { ' ' });
        }
        state = next;
        rest = &rest[take..];
    }
    out
}

/// The state that begins here in code, and the length of its start.
fn begins(rest: &str, before: Option<char>) -> (In, usize) {
    if rest.starts_with("//") {
        return (In::LineComment, 2);
    }
    if rest.starts_with("/*") {
        return (In::BlockComment(1), 2);
    }
    let after_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('r') && !after_word {
        let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
        if rest[1 + hashes..].starts_with('"') {
            return (In::RawText(hashes), hashes + 2);
        }
    }
    match rest.chars().next() {
        Some('"') => (In::Text, 1),
        Some('\'') => (In::Code, character(rest)),
        Some(c) => (In::Code, c.len_utf8()),
        None => (In::Code, 0),
    }
}

/// The length of a character literal; 1 for the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut inner = rest[1..].char_indices();
    let Some((_, first)) = inner.next() else {
        return 1;
    };
    if first == '\\' {
        // The escaped character itself may be a quote.
        let from = 3.min(rest.len());
        return rest[from..].find('\'').map_or(1, |end| from + end + 1);
    }
    match inner.next() {
        Some((at, '\'')) => at + 2,
        _ => 1,
    }
}

fn is_character(rest: &str, take: usize) -> bool {
    rest.starts_with('\'') && take > 1
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn strings_characters_and_comments_are_not_code() {
        let text = "let a = \"fn x() {\"; // fn y() {\nlet b = '{'; /* { /* } */ */ let c: &'a str = r#\"}\"}\"#;";
        let code = Source::new(text).code().to_owned();
        assert_eq!(code.len(), text.len());
        assert!(
            !code.contains('{') && !code.contains('}') && !code.contains("fn"),
            "{code}"
        );
        assert!(code.contains("let c: &'a str ="), "{code}");
    }

    #[test]
    fn a_function_is_measured_from_its_name_to_its_last_brace() {
        let source =
            Source::new("trait T { fn no(&self); }\nfn yes(a: [u8; 2])\n{\n  if x { '\\'' }\n}\n");
        let found = source.functions();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (
                found[0].name.as_str(),
                found[0].first_line,
                found[0].lines()
            ),
            ("yes", 2, 4)
        );
    }

    #[test]
    fn modules_are_found_with_what_they_are_for() {
        let source =
            Source::new("mod a;\npub(crate) mod b;\n#[cfg(test)]\nmod c;\nmod d { }\n// mod e;\n");
        let found = source.modules();
        let expected = [("a", false), ("b", false), ("c", true)];
        assert_eq!(
            found,
            expected.map(|(name, tests)| (name.to_owned(), tests))
        );
    }

    #[test]
    fn the_lines_of_inline_tests_are_known() {
        let source = Source::new(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\n#[cfg(test)]\nmod c;\n#[cfg(any(test, feature = \"testing\"))]\nfn d() {}\n#[cfg(not(test))]\nfn e() {}\n",
        );
        assert_eq!(source.test_lines(), [(3, 5), (9, 9)]);
    }
}
