//! Figures about the product, and the picture of its crates.
//!
//! `names` prints the figures of `figures.rs`; `picture` writes the picture of `picture.rs` into
//! `docs/crates.md`, and with `--check` only compares. The rules are tests, not here.

use std::io::Write as _;
use std::process::ExitCode;
use sutler_tidy::figures::Figures;
use sutler_tidy::{Repository, Workspace, picture};

const USAGE: &str = "\
cargo run -p sutler-tidy -- names              prints figures: names of types, cycles of modules, lines
cargo run -p sutler-tidy -- picture            draws the crates into docs/crates.md
cargo run -p sutler-tidy -- picture --check    fails if that picture is not up to date";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["names"] => {
            let figures = Figures::of(&Repository::here());
            write!(std::io::stdout(), "{figures}").map_err(|error| error.to_string())
        }
        ["picture"] => draw(false),
        ["picture", "--check"] => draw(true),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn draw(check: bool) -> Result<(), String> {
    let repository = Repository::here();
    let page = picture::PAGE;
    let text = repository
        .read(page)
        .ok_or_else(|| format!("{page} is missing"))?;
    let drawn = picture::draw(&repository, &Workspace::of(&repository));
    let fresh = picture::with_picture(&text, &drawn)?;
    match (check, fresh == text) {
        (_, true) => Ok(()),
        (true, false) => Err(format!("{page} is not up to date: {}", picture::COMMAND)),
        (false, false) => std::fs::write(repository.root().join(page), fresh)
            .map_err(|error| format!("{page}: {error}")),
    }
}
