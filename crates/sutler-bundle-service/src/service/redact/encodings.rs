//! Encodings in which a secret may appear in output: plain, escaped, encoded, split into lines. Pure.
//!
//! Programs print their inputs in their own ways: `curl -v` in base64, Ansible as JSON, a shell with `set -x` line
//! by line. A hash or an encryption of a secret is not a secret.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Shorter forms are not redacted: they occur in any text.
pub(super) const SECRET_CHARS_MIN: usize = 4;
/// Larger secrets are searched only in plain form, whole and line by line.
const ENCODED_BYTES_MAX: usize = 64 * 1024;
/// Maximum lines of a secret that are searched one by one.
const LINES_MAX: usize = 1_000;

/// Adds every form of a secret.
pub(super) fn add(secret: &str, forms: &mut BTreeSet<Vec<u8>>) {
    let mut guises = EncodedForms(forms);
    guises.all_of(secret);
    // A program that prints a line of it, or all of it if it has one line, may omit surrounding spaces.
    let lines = secret.split(['\n', '\r']).map(str::trim);
    let others = lines.filter(|line| *line != secret);
    others.take(LINES_MAX).for_each(|line| guises.all_of(line));
}

struct EncodedForms<'a>(&'a mut BTreeSet<Vec<u8>>);

impl EncodedForms<'_> {
    fn all_of(&mut self, secret: &str) {
        if secret.chars().count() < SECRET_CHARS_MIN {
            return;
        }
        self.take(secret.to_owned());
        if secret.len() > ENCODED_BYTES_MAX {
            return;
        }
        for non_ascii in [Letters::Kept, Letters::Numbered] {
            let escaped = json(secret, non_ascii);
            // JSON inside of JSON is escaped twice.
            self.take(json(&escaped, non_ascii));
            self.take(escaped.replace('/', "\\/"));
            self.take(escaped);
        }
        for kept in ["-_.~", "-_.~/", "-_.!~*'()"] {
            self.take(percent(secret, kept, Hex::Upper));
            self.take(percent(secret, kept, Hex::Lower));
        }
        let form = percent(secret, "-_.* ", Hex::Upper).replace(' ', "+");
        self.take(form);
        for ahead in 0..3 {
            self.take(in_base64(secret, ahead, &STANDARD));
            self.take(in_base64(secret, ahead, &URL_SAFE));
        }
    }

    fn take(&mut self, form: String) {
        if form.chars().count() >= SECRET_CHARS_MIN {
            self.0.insert(form.into_bytes());
        }
    }
}

/// Treatment of non-ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    Kept,
    Numbered,
}

/// Text between the quotes of a JSON string.
fn json(text: &str, non_ascii: Letters) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inside = quoted.get(1..quoted.len().saturating_sub(1));
    let inside = inside.unwrap_or_default();
    if non_ascii == Letters::Kept {
        return inside.to_owned();
    }
    let mut numbered = String::with_capacity(inside.len());
    for letter in inside.chars() {
        if letter.is_ascii() {
            numbered.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(numbered, "\\u{unit:04x}");
            }
        }
    }
    numbered
}

#[derive(Clone, Copy)]
enum Hex {
    Upper,
    Lower,
}

/// Text in a URL; letters, digits and `kept` are not encoded.
fn percent(text: &str, kept: &str, hex: Hex) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || (letter.is_ascii() && kept.contains(letter)) {
            encoded.push(letter);
            continue;
        }
        let _ = match hex {
            Hex::Upper => write!(encoded, "%{byte:02X}"),
            Hex::Lower => write!(encoded, "%{byte:02x}"),
        };
    }
    encoded
}

/// Part of a base64 text that depends on the secret only, if `ahead` bytes precede it in its group of three:
/// characters that share bits with adjacent text are left out.
fn in_base64(
    text: &str,
    ahead: usize,
    alphabet: &base64::engine::general_purpose::GeneralPurpose,
) -> String {
    let mut bytes = vec![0; ahead];
    bytes.extend_from_slice(text.as_bytes());
    let encoded = alphabet.encode(&bytes);
    let first = (ahead * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{add, in_base64};
    use base64::engine::general_purpose::STANDARD;
    use std::collections::BTreeSet;

    fn forms(secret: &str) -> Vec<String> {
        let mut forms = BTreeSet::new();
        add(secret, &mut forms);
        let texts = forms.into_iter().map(String::from_utf8);
        texts.collect::<Result<_, _>>().expect("text")
    }

    #[test]
    fn a_secret_has_all_its_encodings() {
        let found = forms("Pä\"ss/ w&rd\n-----BEGIN-----");
        for expected in [
            "Pä\"ss/ w&rd\n-----BEGIN-----",
            "Pä\\\"ss/ w&rd\\n-----BEGIN-----",
            "P\\u00e4\\\"ss/ w&rd\\n-----BEGIN-----",
            "Pä\\\"ss\\/ w&rd\\n-----BEGIN-----",
            "P%C3%A4%22ss%2F%20w%26rd%0A-----BEGIN-----",
            "P%c3%a4%22ss/%20w%26rd%0a-----BEGIN-----",
            "P%C3%A4%22ss%2F+w%26rd%0A-----BEGIN-----",
            "Pä\"ss/ w&rd",
            "-----BEGIN-----",
            "UMOkInNzLyB3JnJkCi0tLS0tQkVHSU4tLS0tL",
        ] {
            assert!(
                found.iter().any(|it| it == expected),
                "{expected}: {found:?}"
            );
        }
    }

    #[test]
    fn the_base64_form_does_not_depend_on_adjacent_text() {
        use base64::Engine as _;
        for around in ["", "a", "ab", "abc", "äöüß"] {
            let text = format!("{around}hunter22{around}");
            let encoded = STANDARD.encode(&text);
            let form = in_base64("hunter22", around.len() % 3, &STANDARD);
            assert!(
                form.len() >= 9 && encoded.contains(&form),
                "{form} in {encoded}"
            );
        }
    }

    #[test]
    fn short_lines_of_a_long_secret_are_left_alone() {
        let found = forms("{\n  \"key\": \"value-of-it\"\n}");
        assert!(!found.iter().any(|it| it == "{" || it == "}"), "{found:?}");
        assert!(found.iter().any(|it| it == "\"key\": \"value-of-it\""));
        assert!(forms("abc").is_empty());
    }
}
