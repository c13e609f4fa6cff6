//! `sutler bundle docs`: prints a page about a bundle. `sutler-bundle` renders it from the manifest.

use crate::commands::CommandResult;
use std::io::Write as _;
use std::path::Path;

pub(super) fn run(folder: &Path) -> CommandResult {
    let manifest = sutler_bundle::read_manifest(folder)?;
    let page = sutler_bundle::docs_page(&manifest);
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}
