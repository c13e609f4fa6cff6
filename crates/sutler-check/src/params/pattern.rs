//! Generates texts for the usual patterns of schemas: literals, classes, groups, alternatives and repeats.
//!
//! Look-around, back-references and the like are not supported. The result is a guess; the validator decides.

use super::limits::TEXT_MAX;

/// Deepest nesting of groups.
const GROUPS_MAX: usize = 16;
/// Additional repeats tried, until a text is long enough.
const EXTRAS: [usize; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 256];
/// Maximum texts for one pattern.
const TEXTS_MAX: usize = 4;

/// Part of a pattern.
enum Part {
    /// One of these characters.
    One(Vec<char>),
    /// One of these alternatives, each a sequence.
    Group(Vec<Vec<Part>>),
    /// A part with its minimum and maximum number of repeats.
    Repeat(Box<Part>, usize, usize),
}

/// Texts with a length in this range; empty for an unsupported pattern.
pub(super) fn texts(pattern: &str, least: usize, most: usize) -> Vec<String> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut reader = PatternReader {
        letters: &letters,
        at: 0,
    };
    let Some(whole) = reader.alternatives(0) else {
        return Vec::new();
    };
    if reader.at != letters.len() {
        return Vec::new();
    }
    let whole = Part::Group(whole);
    let mut all: Vec<String> = Vec::new();
    for turn in 0..3 {
        for extra in EXTRAS {
            let mut text = String::new();
            write(&whole, extra, turn, &mut text);
            let length = text.chars().count();
            if length > most || length > TEXT_MAX || all.len() >= TEXTS_MAX {
                break;
            }
            if length >= least && !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}

/// Writes one text; `turn` selects characters and alternatives.
fn write(part: &Part, extra: usize, turn: usize, text: &mut String) {
    if text.len() > 4 * TEXT_MAX {
        return;
    }
    match part {
        Part::One(letters) => text.extend(letters.get(turn % letters.len().max(1))),
        Part::Group(ways) => {
            for part in ways.get(turn % ways.len().max(1)).into_iter().flatten() {
                write(part, extra, turn, text);
            }
        }
        Part::Repeat(part, least, most) => {
            for _ in 0..least.saturating_add(extra).min(*most).min(TEXT_MAX) {
                write(part, extra, turn, text);
            }
        }
    }
}

struct PatternReader<'a> {
    letters: &'a [char],
    at: usize,
}

impl PatternReader<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn skip(&mut self, letter: char) -> bool {
        let there = self.peek() == Some(letter);
        self.at += usize::from(there);
        there
    }

    fn alternatives(&mut self, depth: usize) -> Option<Vec<Vec<Part>>> {
        if depth > GROUPS_MAX {
            return None;
        }
        let mut ways = vec![self.sequence(depth)?];
        while self.skip('|') {
            ways.push(self.sequence(depth)?);
        }
        Some(ways)
    }

    fn sequence(&mut self, depth: usize) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        while let Some(letter) = self.peek().filter(|it| !matches!(it, '|' | ')')) {
            self.at += 1;
            let part = match letter {
                '^' | '$' => continue,
                '(' => {
                    if self.skip('?') && !self.skip(':') {
                        return None;
                    }
                    let ways = self.alternatives(depth + 1)?;
                    if !self.skip(')') {
                        return None;
                    }
                    Part::Group(ways)
                }
                '[' => Part::One(self.class()?),
                '\\' => Part::One(escaped(self.next()?)?),
                '.' => Part::One(vec!['a', 'b', 'c']),
                '*' | '+' | '?' | '{' => return None,
                letter => Part::One(vec![letter]),
            };
            parts.push(self.repeated(part)?);
        }
        Some(parts)
    }

    fn repeated(&mut self, part: Part) -> Option<Part> {
        let (least, most) = match self.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => {
                self.at += 1;
                let bounds = self.bounds()?;
                self.skip('?');
                return Some(Part::Repeat(Box::new(part), bounds.0, bounds.1));
            }
            _ => return Some(part),
        };
        self.at += 1;
        self.skip('?');
        Some(Part::Repeat(Box::new(part), least, most))
    }

    fn bounds(&mut self) -> Option<(usize, usize)> {
        let least = self.number()?;
        if self.skip('}') {
            return Some((least, least));
        }
        if !self.skip(',') {
            return None;
        }
        if self.skip('}') {
            return Some((least, usize::MAX));
        }
        let most = self.number()?;
        self.skip('}').then_some((least, most))
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|it| it.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.letters[start..self.at].iter().collect();
        digits.parse().ok()
    }

    /// A class after its `[`: some of its characters.
    fn class(&mut self) -> Option<Vec<char>> {
        let not = self.skip('^');
        let mut ranges: Vec<(char, char)> = Vec::new();
        loop {
            let letter = self.next()?;
            if letter == ']' && !ranges.is_empty() {
                break;
            }
            let from = match letter {
                '[' => return None,
                '\\' => {
                    let all = escaped(self.next()?)?;
                    if all.len() != 1 {
                        ranges.extend(all.iter().map(|it| (*it, *it)));
                        continue;
                    }
                    all[0]
                }
                letter => letter,
            };
            let is_range = self.peek() == Some('-')
                && self.letters.get(self.at + 1).is_some_and(|it| *it != ']');
            if is_range {
                self.at += 1;
                let to = match self.next()? {
                    '\\' => *escaped(self.next()?)?.first()?,
                    letter => letter,
                };
                ranges.push((from, to));
            } else {
                ranges.push((from, from));
            }
        }
        let within = |it: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&it));
        if not {
            let others = "abcxyzABC0123456789-_ .".chars().filter(|it| !within(*it));
            return Some(others.collect()).filter(|it: &Vec<char>| !it.is_empty());
        }
        let few = ranges.iter().flat_map(|(from, to)| (*from..=*to).take(3));
        Some(few.collect()).filter(|it: &Vec<char>| !it.is_empty())
    }
}

/// Some characters of the class after a backslash.
fn escaped(letter: char) -> Option<Vec<char>> {
    Some(match letter {
        'd' => vec!['1', '2', '3'],
        'w' => vec!['a', 'b', '1'],
        's' => vec![' '],
        'D' | 'S' => vec!['a', 'b'],
        'W' => vec!['-', ' '],
        't' => vec!['\t'],
        'n' => vec!['\n'],
        letter if letter.is_alphanumeric() => return None,
        letter => vec![letter],
    })
}
