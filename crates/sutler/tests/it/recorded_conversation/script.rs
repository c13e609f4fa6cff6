//! The script of the recorded conversation: sections, steps, and one exchange as text.
//!
//! A section (`=== broker`) has steps (`--- title`). The first line of a step is a method and a path,
//! after `@platform` or `@operator` for their headers; then headers, then a body that begins with `{`,
//! `[` or `|` (the bar is left out). `@raw` sends its lines with CR LF and nothing else. Directives:
//! `?while TEXT` repeats while the reply has the text, `?save NAME FIELD` keeps a field of a JSON body
//! as `$NAME`, `?names` keeps only the names of metrics, `?half-close` ends the request early.

use super::normalise::Normaliser;

/// `platform:s3cret` in base64.
const PLATFORM_CREDENTIALS: &str = "cGxhdGZvcm06czNjcmV0";
/// `root:t0ps3cret` in base64.
const OPERATOR_CREDENTIALS: &str = "cm9vdDp0MHBzM2NyZXQ=";

/// One request, and how its reply is treated.
#[derive(Default)]
pub(super) struct Step {
    pub(super) title: String,
    lines: Vec<String>,
    pub(super) while_has: Option<String>,
    pub(super) save: Option<(String, String)>,
    pub(super) names_only: bool,
    pub(super) half_close: bool,
}

/// The sections of a script, each with its steps.
pub(super) fn parse(text: &str) -> Vec<(String, Vec<Step>)> {
    let mut sections: Vec<(String, Vec<Step>)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("=== ") {
            sections.push((name.to_owned(), Vec::new()));
            continue;
        }
        let Some((_, steps)) = sections.last_mut() else {
            continue;
        };
        if let Some(title) = line.strip_prefix("--- ") {
            steps.push(Step {
                title: title.to_owned(),
                ..Step::default()
            });
        } else if let Some(step) = steps.last_mut().filter(|_| !line.is_empty()) {
            step.add(line);
        }
    }
    sections
}

impl Step {
    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["?while", ..] => self.while_has = Some(line["?while ".len()..].to_owned()),
            ["?save", name, field] => self.save = Some((format!("${name}"), field.to_owned())),
            ["?names"] => self.names_only = true,
            ["?half-close"] => self.half_close = true,
            _ => self.lines.push(line.to_owned()),
        }
    }

    /// The bytes to send, with the values saved by earlier steps.
    pub(super) fn request(&self, saved: &[(String, String)]) -> Vec<u8> {
        let fill = |line: &String| {
            let filled = saved
                .iter()
                .rev()
                .fold(line.clone(), |line, (name, value)| {
                    line.replace(name, value)
                });
            many(&filled)
        };
        let lines: Vec<String> = self.lines.iter().map(fill).collect();
        if lines.first().is_some_and(|line| line == "@raw") {
            let text = lines[1..].join("\r\n").replace("\\r\\n", "\r\n");
            return text.into_bytes();
        }
        let (head, body) = parted(&lines);
        let mut text = String::new();
        for (number, line) in head.iter().enumerate() {
            match number {
                0 => text.push_str(&request_line(line)),
                _ => text.push_str(&format!("{line}\r\n")),
            }
        }
        let body = body.join("\n");
        let says_length = head.iter().any(|line| {
            let line = line.to_ascii_lowercase();
            line.starts_with("content-length:") || line.starts_with("transfer-encoding:")
        });
        if !body.is_empty() && !says_length {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        format!("{text}\r\n{body}").into_bytes()
    }
}

/// `«a*2000»` is this letter 2000 times.
fn many(line: &str) -> String {
    let Some((before, rest)) = line.split_once('«') else {
        return line.to_owned();
    };
    let (inner, after) = rest.split_once('»').expect("« is closed");
    let (letter, count) = inner.split_once('*').expect("a letter and a count");
    let repeated = letter.repeat(count.parse().expect("a count"));
    format!("{before}{repeated}{}", many(after))
}

/// Head and body.
fn parted(lines: &[String]) -> (&[String], Vec<&str>) {
    let begins = |line: &String| line.starts_with(['{', '[', '|']);
    let at = lines.iter().position(begins).unwrap_or(lines.len());
    let body = lines[at..].iter();
    let body = body.map(|line| line.strip_prefix('|').unwrap_or(line));
    (&lines[..at], body.collect())
}

/// The first line and the headers of the caller.
fn request_line(line: &str) -> String {
    let (who, line) = match line.split_once(' ') {
        Some((who, rest)) if who.starts_with('@') => (who, rest),
        _ => ("", line),
    };
    let credentials = match who {
        "@platform" => PLATFORM_CREDENTIALS,
        "@operator" => OPERATOR_CREDENTIALS,
        _ => "",
    };
    let mut text = format!("{line} HTTP/1.1\r\nHost: broker.example\r\nConnection: close\r\n");
    if !credentials.is_empty() {
        text.push_str(&format!("Authorization: Basic {credentials}\r\n"));
    }
    if who == "@platform" {
        text.push_str("X-Broker-API-Version: 2.17\r\n");
    }
    text
}

/// A reply, split into head and body.
pub(super) struct Exchange {
    head: Vec<String>,
    body: String,
    /// Whether the whole body is kept.
    whole: bool,
}

impl Exchange {
    pub(super) fn new(bytes: &[u8], names_only: bool) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let body = match names_only {
            true => names(body),
            false => body.to_owned(),
        };
        Self {
            head: head.split("\r\n").map(str::to_owned).collect(),
            body,
            whole: !names_only,
        }
    }

    /// A field of the body by its JSON pointer.
    pub(super) fn text_field(&self, pointer: &str) -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        value.pointer(pointer)?.as_str().map(str::to_owned)
    }

    /// The reply as it is stored in the file.
    pub(super) fn written(&self, normaliser: &mut Normaliser) -> String {
        let body = normaliser.text(&self.body);
        let fixed_length = body.fixed_length && self.whole;
        let mut lines = Vec::new();
        for line in &self.head {
            lines.push(normaliser.header(line, fixed_length));
        }
        if !self.body.is_empty() {
            lines.push(String::new());
            lines.extend(body.text.split('\n').map(str::to_owned));
        }
        let prefixed = lines.iter().map(|line| {
            let line = line.replace('\r', "\\r");
            match line.is_empty() {
                true => "<\n".to_owned(),
                false => format!("< {line}\n"),
            }
        });
        prefixed.collect()
    }
}

/// The names of metrics with their types, sorted; values and labels change from run to run.
fn names(body: &str) -> String {
    let kept = body.lines().filter(|line| line.starts_with("# TYPE "));
    let mut kept: Vec<&str> = kept.collect();
    kept.sort_unstable();
    kept.join("\n")
}
