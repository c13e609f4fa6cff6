//! Texts of brokers and users inside sentences: short, on one line, in backquotes.
//!
//! Such a text is untrusted input: it may be long, or hold control characters and marks that reverse the direction of a line.

/// Longest text in quotes, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text, QUOTED_CHARS_MAX))
}

/// A text without control characters, and with at most so many characters.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    let mut short: String = text.chars().take(chars_max).map(printable).collect();
    if text.chars().nth(chars_max).is_some() {
        short.pop();
        short.push('…');
    }
    short
}

fn printable(c: char) -> char {
    if c.is_control() || is_invisible(c) {
        ' '
    } else {
        c
    }
}

/// Marks without a glyph: line and paragraph separators, direction marks, zero-width characters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
