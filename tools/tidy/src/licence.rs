//! Licence expressions: whether one of the allowed licences of a package is accepted.
//!
//! SPDX as cargo packages write it, with the old slash for "or".

/// Licences a dependency may have. The same list is in `deny.toml`.
pub const ACCEPTED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an expression can be satisfied with accepted licences alone.
#[must_use]
pub fn is_accepted(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any(&mut rest) && rest.is_empty()
}

fn any(rest: &mut &[&str]) -> bool {
    let mut good = all(rest);
    while take(rest, "OR") {
        good |= all(rest);
    }
    good
}

fn all(rest: &mut &[&str]) -> bool {
    let mut good = one(rest);
    while take(rest, "AND") {
        good &= one(rest);
    }
    good
}

fn one(rest: &mut &[&str]) -> bool {
    if take(rest, "(") {
        let good = any(rest);
        return take(rest, ")") && good;
    }
    let Some((licence, after)) = rest.split_first() else {
        return false;
    };
    let mut name = (*licence).to_owned();
    *rest = after;
    if take(rest, "WITH")
        && let Some((exception, after)) = rest.split_first()
    {
        name = format!("{name} WITH {exception}");
        *rest = after;
    }
    ACCEPTED.contains(&name.as_str())
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn one_accepted_choice_is_enough_and_every_demand_counts() {
        let accepted = [
            "MIT",
            "Apache-2.0/MIT",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ];
        for expression in accepted {
            assert!(is_accepted(expression), "{expression}");
        }
        for expression in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "",
            "(MIT",
            "MIT Apache-2.0",
            "MPL-2.0",
        ] {
            assert!(!is_accepted(expression), "{expression}");
        }
    }
}
