//! Texts of a database that are printed on terminals.
//!
//! What is not sealed can be written by every user of the database, so it may contain sequences that control a
//! terminal, or characters that change the direction of a text.

/// Maximum length of such a text, in characters.
const CHARS_MAX: usize = 200;

/// A text with everything escaped that is not printed as it is, control, format and bidirectional characters among
/// them, and cut to a maximum length.
pub(crate) fn printable(text: &str) -> String {
    let end = text.char_indices().nth(CHARS_MAX).map(|(at, _)| at);
    let cut = if end.is_some() { "…" } else { "" };
    let text = &text[..end.unwrap_or(text.len())];
    format!("{}{cut}", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_format_and_bidirectional_characters_are_escaped() {
        assert_eq!(printable("sqlite:/a b ü"), "sqlite:/a b ü");
        assert_eq!(printable("a\u{1b}[2J"), r"a\u{1b}[2J");
        let hidden = [
            '\u{7f}', '\u{9b}', '\u{ad}', '\u{61c}', '\u{200b}', '\u{200e}',
        ];
        let turned = [
            '\u{202a}', '\u{202e}', '\u{2028}', '\u{2066}', '\u{2069}', '\u{feff}',
        ];
        for character in hidden.into_iter().chain(turned) {
            let code = u32::from(character);
            let escaped = format!(r"a\u{{{code:x}}}b");
            assert_eq!(printable(&format!("a{character}b")), escaped);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let fits = "ü".repeat(200);
        assert_eq!(printable(&fits), fits);
        assert_eq!(printable(&format!("{fits}ü")), format!("{fits}…"));
    }
}
