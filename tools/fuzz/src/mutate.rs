//! Mutates a known input into a new one that is nearly valid.
//!
//! Steps on bytes and on lines are here; steps on JSON, which keep everything else valid, are in
//! `mutate/json.rs`. Several steps may follow each other.

mod json;

use sutler_servers::SeededRng;

/// Longest input, in bytes. Longer ones only take time; `hostile.rs` of the broker has those.
const INPUT_BYTES_MAX: usize = 16 * 1024;

/// Syntax of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// A JSON text.
    Json,
    /// Lines: YAML, HTTP, a key file.
    Lines,
    /// A short text.
    Text,
    /// Anything.
    Bytes,
}

/// Difficult texts: invalid UTF-8, odd characters, extremes.
const ODDITIES: [&[u8]; 34] = [
    b"\0",
    b"\xff",
    b"\xc3",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xcc\x88",
    b"\xf0\x9f\x92\xa3",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\\u0000",
    b"\\ud800",
    b"%00",
    b"%",
    b"%2F",
    b"%zz",
    b"%ff",
    b"..",
    b"//",
    b"\r\n",
    b"\n",
    b"\"",
    b"\\",
    b"'",
    b"`",
    b"{",
    b"[",
    b"&",
    b"=",
    b"+",
    b"\x7f",
    b"$",
];

const NUMBERS: [&str; 20] = [
    "0",
    "-0",
    "-1",
    "1",
    "00",
    "7",
    "31",
    "60",
    "127",
    "255",
    "256",
    "65535",
    "65536",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "1e-400",
];

/// Makes a new input from a known one; `other` is one to take pieces from.
pub(crate) fn mutated(
    input: &[u8],
    other: &[u8],
    syntax: Syntax,
    words: &[&str],
    rng: &mut SeededRng,
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut steps = 1;
    while steps < 8 && rng.one_in(2) {
        steps += 1;
    }
    for _ in 0..steps {
        let structural = syntax == Syntax::Json && !rng.one_in(4);
        let changed = if structural {
            json::mutated(&bytes, other, words, rng)
        } else {
            None
        };
        match changed {
            Some(changed) if changed.len() <= INPUT_BYTES_MAX => bytes = changed,
            // Steps would multiply: a large input stays as it is.
            Some(_) => (),
            None if syntax == Syntax::Lines && rng.one_in(2) => {
                bytes = on_lines(&bytes, other, rng);
            }
            None => on_bytes(&mut bytes, other, words, rng),
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn on_bytes(bytes: &mut Vec<u8>, other: &[u8], words: &[&str], rng: &mut SeededRng) {
    let length = bytes.len();
    let at = rng.range(length);
    match rng.index(12) {
        0 if length > 0 => bytes[at.start.min(length - 1)] ^= 1 << rng.index(8),
        1 if length > 0 => {
            bytes[at.start.min(length - 1)] = u8::try_from(rng.index(256)).unwrap_or(0);
        }
        2 => replace(bytes, at.start..at.start, rng.pick::<&[u8]>(&ODDITIES)),
        3 => replace(bytes, at, rng.pick::<&[u8]>(&ODDITIES)),
        4 => replace(bytes, at, b""),
        5 => {
            let piece = bytes[at.clone()].repeat(1 + rng.index(3));
            replace(bytes, at.end..at.end, &piece);
        }
        6 => {
            let most = INPUT_BYTES_MAX / at.len().max(1);
            let piece = bytes[at.clone()].repeat((*rng.pick(&[16, 130, 600, 3000])).min(most));
            replace(bytes, at, &piece);
        }
        7 if rng.one_in(2) => bytes.truncate(at.start),
        7 => replace(bytes, 0..at.start, b""),
        8 => {
            let piece = other[rng.range(other.len())].to_vec();
            replace(bytes, at, &piece);
        }
        9 => on_number(bytes, rng),
        10 | 11 if !words.is_empty() => {
            let at = if rng.one_in(2) {
                at.start..at.start
            } else {
                at
            };
            replace(bytes, at, rng.pick(words).as_bytes());
        }
        _ => replace(bytes, at, rng.pick(&NUMBERS).as_bytes()),
    }
}

/// Replaces a run of digits by another number.
fn on_number(bytes: &mut Vec<u8>, rng: &mut SeededRng) {
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit()))
        .collect();
    if starts.is_empty() {
        return;
    }
    let start = *rng.pick(&starts);
    let digits = bytes[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = match rng.index(3) {
        0 => rng.index(100).to_string(),
        _ => (*rng.pick(&NUMBERS)).to_owned(),
    };
    replace(bytes, start..start + digits, number.as_bytes());
}

/// Drops, doubles, moves, indents or borrows a line.
fn on_lines(bytes: &[u8], other: &[u8], rng: &mut SeededRng) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let at = rng.index(lines.len());
    match rng.index(6) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let to = rng.index(lines.len());
            lines.swap(at, to);
        }
        3 => lines[at].splice(0..0, *b"  ").for_each(drop),
        4 if lines[at].starts_with(b"  ") => lines[at].drain(..2).for_each(drop),
        _ => {
            let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
            lines.insert(at, rng.pick(&others).to_vec());
        }
    }
    lines.join(&b'\n')
}

fn replace(bytes: &mut Vec<u8>, at: std::ops::Range<usize>, by: &[u8]) {
    if bytes.len() - at.len() + by.len() <= INPUT_BYTES_MAX {
        bytes.splice(at, by.iter().copied()).for_each(drop);
    }
}
