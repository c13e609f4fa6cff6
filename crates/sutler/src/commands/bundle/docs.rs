//! `sutler bundle docs`: a page from the manifest. What stands in it is made by `sutler-bundle`.

use crate::commands::CommandResult;
use std::io::Write as _;
use std::path::Path;

pub(super) fn run(folder: &Path) -> CommandResult {
    let manifest = sutler_bundle::read_manifest(folder)?;
    let page = sutler_bundle::docs_page(&manifest);
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}
