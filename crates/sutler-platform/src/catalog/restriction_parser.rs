//! The grammar of restrictions: the part of Kubernetes' label selectors that Service Catalog allowed.
//!
//! ```text
//! requirements = requirement { "," requirement }
//! requirement  = property ( "=" | "==" | "!=" ) value
//!              | property ( "in" | "notin" ) "(" value { "," value } ")"
//! value        = characters without space, control characters and = ! ( ) , < > " \
//!              | '"' characters, with \" and \\ for " and \ '"'
//! ```
//! Quoted values are an addition: names of plans may contain spaces. Texts come from operators and namespace owners, so
//! their length is bounded, and an error says where it is and what to write. The meaning is in `restrictions.rs`.

use super::restriction_property::RestrictionProperty;
use super::restrictions::{AllowedValues, PropertyRequirement};
use crate::quoted_text::quoted;
use std::collections::BTreeSet;

/// Longest text of requirements, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;
/// Most requirements in a list.
const REQUIREMENTS_MAX: usize = 100;

/// Lists of requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestrictionList {
    /// For offerings.
    ServiceClass,
    /// For plans.
    ServicePlan,
}

/// A text that is not a list of requirements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{list}[{nth}]`, character {column}: {reason}")]
pub struct RestrictionError {
    /// The list, `serviceClass` or `servicePlan`.
    pub list: &'static str,
    /// Position of the text in the list, from 0.
    pub nth: usize,
    /// Position of the fault in the text, in characters from 1.
    pub column: usize,
    /// What is wrong, and what to write.
    pub reason: String,
}

/// A fault at a byte of the text.
struct SyntaxError {
    at: usize,
    reason: String,
}

/// Reads the texts of a list.
pub(super) fn parse_list<P: RestrictionProperty>(
    list: RestrictionList,
    texts: &[String],
) -> Result<Vec<PropertyRequirement<P>>, RestrictionError> {
    let mut requirements = Vec::new();
    for (nth, text) in texts.iter().enumerate() {
        let read = read_text(text, REQUIREMENTS_MAX - requirements.len());
        requirements.extend(read.map_err(|error| {
            RestrictionError {
                list: list.name(),
                nth,
                column: 1 + text
                    .get(..error.at)
                    .map_or(0, |before| before.chars().count()),
                reason: error.reason,
            }
        })?);
    }
    Ok(requirements)
}

/// A value as it is written: in quotes if it must be.
pub(super) fn quoted_value(value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_bare) {
        return value.to_owned();
    }
    let escaped = value.replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{escaped}\"")
}

fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !r#"=!(),<>"\"#.contains(c)
}

fn read_text<P: RestrictionProperty>(
    text: &str,
    requirements_max: usize,
) -> Result<Vec<PropertyRequirement<P>>, SyntaxError> {
    let too_long = || SyntaxError {
        at: 0,
        reason: format!("is too long: at most {TEXT_BYTES_MAX} bytes are read"),
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    let mut reader = TextReader { text, at: 0 };
    let mut requirements = Vec::new();
    loop {
        if requirements.len() == requirements_max {
            let reason = format!("at most {REQUIREMENTS_MAX} requirements are allowed in a list");
            return Err(reader.error(reason));
        }
        let requirement: PropertyRequirement<P> = reader.requirement()?;
        // It is kept in its printed form, which must be readable again.
        if requirement.to_string().len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        requirements.push(requirement);
        reader.skip_space();
        if reader.rest().is_empty() {
            return Ok(requirements);
        }
        reader.expect(",", "`,` and another requirement, or the end")?;
    }
}

struct TextReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TextReader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, reason: String) -> SyntaxError {
        SyntaxError {
            at: self.at,
            reason,
        }
    }

    /// An error that says what is expected instead of what is there.
    fn expected(&self, what: &str) -> SyntaxError {
        let here = self.rest().chars().next();
        let here = here.map_or("the end".to_owned(), |c| quoted(&c.to_string()));
        self.error(format!("expected {what}, but found {here}"))
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips a token, if it comes next.
    fn skip(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, what: &str) -> Result<(), SyntaxError> {
        self.skip_space();
        if self.skip(token) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    /// The bare characters that come next.
    fn word(&mut self) -> &'a str {
        self.skip_space();
        let rest = self.rest();
        let word = rest.find(|c| !is_bare(c)).map_or(rest, |end| &rest[..end]);
        self.at += word.len();
        word
    }

    fn requirement<P: RestrictionProperty>(
        &mut self,
    ) -> Result<PropertyRequirement<P>, SyntaxError> {
        let property: P = self.property()?;
        self.skip_space();
        let at = self.at;
        // `==` before its beginning `=`.
        let allowed = if self.skip("==") || self.skip("=") {
            AllowedValues::OneOf(BTreeSet::from([self.value(property)?]))
        } else if self.skip("!=") {
            AllowedValues::NoneOf(BTreeSet::from([self.value(property)?]))
        } else {
            match self.word() {
                "in" => AllowedValues::OneOf(self.values(property)?),
                "notin" => AllowedValues::NoneOf(self.values(property)?),
                _ => {
                    self.at = at;
                    return Err(self.expected("`=`, `==`, `!=`, `in` or `notin`"));
                }
            }
        };
        Ok(PropertyRequirement { property, allowed })
    }

    fn property<P: RestrictionProperty>(&mut self) -> Result<P, SyntaxError> {
        self.skip_space();
        let at = self.at;
        let word = self.word();
        if word.is_empty() {
            return Err(self.expected(&one_of::<P>()));
        }
        let known = P::SPELLINGS.iter().find(|(spelling, _)| *spelling == word);
        known
            .map(|(_, property)| *property)
            .ok_or_else(|| SyntaxError {
                at,
                reason: format!(
                    "{} is not a property; write {}",
                    quoted(word),
                    one_of::<P>()
                ),
            })
    }

    fn values<P: RestrictionProperty>(
        &mut self,
        property: P,
    ) -> Result<BTreeSet<String>, SyntaxError> {
        self.expect("(", "`(` and values")?;
        let mut values = BTreeSet::new();
        loop {
            values.insert(self.value(property)?);
            self.skip_space();
            if self.skip(")") {
                return Ok(values);
            }
            self.expect(",", "`,` and another value, or `)`")?;
        }
    }

    fn value<P: RestrictionProperty>(&mut self, property: P) -> Result<String, SyntaxError> {
        self.skip_space();
        let at = self.at;
        let value = if self.skip("\"") {
            self.quoted_rest()?
        } else {
            self.word().to_owned()
        };
        if value.is_empty() {
            self.at = at;
            return Err(self.expected("a value, in double quotes if it has spaces"));
        }
        match property.possible_values() {
            Some(possible) if !possible.contains(&value.as_str()) => {
                let [one, other] = possible;
                let reason = format!("must be `{one}` or `{other}`");
                Err(SyntaxError { at, reason })
            }
            Some(_) | None => Ok(value),
        }
    }

    /// The characters of a value up to the quote that ends it.
    fn quoted_rest(&mut self) -> Result<String, SyntaxError> {
        let mut value = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(value);
                }
                '\\' => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                    Some(_) | None => {
                        self.at += at;
                        return Err(self.error(r#"write `\\` for a backslash"#.to_owned()));
                    }
                },
                c => value.push(c),
            }
        }
        self.at = self.text.len();
        Err(self.expected("`\"` at the end of the value"))
    }
}

fn one_of<P: RestrictionProperty>() -> String {
    let names = P::SPELLINGS.iter().map(|(name, _)| format!("`{name}`"));
    let names: Vec<String> = names.collect();
    format!("one of {}", names.join(", "))
}

impl RestrictionList {
    fn name(self) -> &'static str {
        match self {
            Self::ServiceClass => "serviceClass",
            Self::ServicePlan => "servicePlan",
        }
    }
}
