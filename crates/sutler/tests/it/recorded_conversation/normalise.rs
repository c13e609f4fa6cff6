//! Replaces values that differ in every run: ids, times and sealed bytes. Everything else stays.

/// Numbers ids in the order of their first appearance, so that equal ids stay equal.
pub(super) struct Normaliser {
    /// Ids that are the same in every run are not replaced.
    fixed: String,
    ids: Vec<String>,
}

/// A text with its replacements.
pub(super) struct Normalised {
    pub(super) text: String,
    /// Whether the replaced parts have the same length in every run.
    pub(super) fixed_length: bool,
}

/// Length of a UUID as text.
const UUID_LENGTH: usize = 36;
/// Length of an id of 16 bytes in hexadecimal digits.
const HEX_LENGTH: usize = 32;
/// Digits of a time in milliseconds since 1970.
const MILLISECONDS_LENGTH: usize = 13;
/// Length of `2026-01-01T00:00:00`, before a fraction and a zone.
const TIME_LENGTH: usize = 19;
/// Beginnings of the keys of audit entries, in base64; the rest of such a key differs in every run.
const AUDIT_KEYS: [&str; 2] = ["YnJva2VyAGF1ZGl0AG", "b3RoZXIAYXVkaXQA"];
/// Length of the header `date` and its value.
const DATE_LENGTH: usize = "date: Mon, 16 Nov 2026 16:38:37 GMT".len();
/// Minimum length of base64 that counts as sealed bytes; keys are shorter.
const SEALED_LENGTH: usize = 120;

impl Normaliser {
    /// Treats the ids in this text as fixed.
    pub(super) fn new(fixed: &str) -> Self {
        Self {
            fixed: fixed.to_owned(),
            ids: Vec::new(),
        }
    }

    /// Normalises a header line. The length of a body is kept if it is the same in every run.
    pub(super) fn header(&mut self, line: &str, fixed_length: bool) -> String {
        let name = line.split(':').next().unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "date" => format!("{name}: DATE"),
            "content-length" if !fixed_length => format!("{name}: LENGTH"),
            "content-length" | "etag" => line.to_owned(),
            _ => self.text(line).text,
        }
    }

    /// Normalises a body.
    pub(super) fn text(&mut self, text: &str) -> Normalised {
        let mut out = String::with_capacity(text.len());
        let mut fixed_length = true;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let begins = !out.chars().next_back().is_some_and(char::is_alphanumeric);
            let length = match begins.then(|| self.token(rest)).flatten() {
                Some((replacement, length)) => {
                    fixed_length &= !matches!(replacement.as_str(), "TIME" | "SEALED");
                    out.push_str(&replacement);
                    length
                }
                None => {
                    out.push(c);
                    c.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        Normalised {
            text: out,
            fixed_length,
        }
    }

    /// If a replaced value begins here: its replacement, and the length of the original.
    fn token(&mut self, rest: &str) -> Option<(String, usize)> {
        if let Some(id) = rest.get(..UUID_LENGTH).filter(|it| is_uuid(it)) {
            let fixed = self.fixed.contains(id) || id.starts_with("0b7f4ac4-");
            return (!fixed).then(|| (self.number(id), UUID_LENGTH));
        }
        if let Some(length) = time(rest) {
            return Some(("TIME".to_owned(), length));
        }
        // The second reply on one connection.
        if rest.starts_with("date: ") {
            return Some(("date: DATE".to_owned(), DATE_LENGTH));
        }
        let base64 = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_');
        let word = &rest[..rest.chars().take_while(base64).count()];
        let all = |is: fn(&u8) -> bool| word.bytes().all(|it| is(&it));
        match word.len() {
            HEX_LENGTH if all(u8::is_ascii_hexdigit) => Some((self.number(word), HEX_LENGTH)),
            MILLISECONDS_LENGTH if all(u8::is_ascii_digit) => {
                Some(("MILLISECONDS".to_owned(), MILLISECONDS_LENGTH))
            }
            length if AUDIT_KEYS.iter().any(|it| word.starts_with(it)) => {
                Some(("AUDIT-KEY".to_owned(), length))
            }
            length @ SEALED_LENGTH.. => Some(("SEALED".to_owned(), length)),
            _ => None,
        }
    }

    fn number(&mut self, id: &str) -> String {
        let known = self.ids.iter().position(|it| it == id);
        let at = known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        });
        format!("ID-{}", at + 1)
    }
}

fn is_uuid(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

/// The length of an RFC 3339 time that begins here.
fn time(rest: &str) -> Option<usize> {
    let begin = rest.get(..TIME_LENGTH)?;
    let fits = begin.char_indices().all(|(at, c)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        _ => c.is_ascii_digit(),
    });
    let tail = rest[TIME_LENGTH..].find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let zone = rest[TIME_LENGTH + tail..].starts_with('Z');
    (fits && zone).then_some(TIME_LENGTH + tail + 1)
}

#[test]
fn fresh_ids_are_numbered_and_fixed_ones_stay() {
    let mut normaliser = Normaliser::new("11111111-1111-1111-1111-111111111111");
    let text = "11111111-1111-1111-1111-111111111111 22222222-2222-7222-2222-222222222222 \
                33333333-3333-7333-3333-333333333333 22222222-2222-7222-2222-222222222222";
    let expected = "11111111-1111-1111-1111-111111111111 ID-1 ID-2 ID-1";
    assert_eq!(normaliser.text(text).text, expected);
    let times = "{\"at\":\"2026-01-02T03:04:05.678Z\",\"ms\":1794847006341,\"day\":\"2026-01-02\"}";
    let found = normaliser.text(times);
    let expected = "{\"at\":\"TIME\",\"ms\":MILLISECONDS,\"day\":\"2026-01-02\"}";
    assert_eq!((found.text.as_str(), found.fixed_length), (expected, false));
}
