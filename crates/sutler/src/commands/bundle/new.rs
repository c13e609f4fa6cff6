//! `sutler bundle new`: writes the files of a new bundle. The templates are in `sutler-bundle`.

use crate::commands::CommandResult;
use clap::{Args, ValueEnum};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use sutler_bundle::{Template, scaffold};

#[derive(Args)]
pub(super) struct NewArgs {
    /// The bundle's name; its folder is created here, unless --dir names another
    #[arg(value_name = "NAME")]
    name: String,
    /// The template
    #[arg(long, value_enum, value_name = "TEMPLATE", default_value_t = TemplateName::Shell)]
    template: TemplateName,
    /// The folder to create
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TemplateName {
    /// A shell script for each action
    Shell,
    /// One program in Python
    Python,
    /// A playbook for each action
    Ansible,
}

pub(super) fn run(args: &NewArgs) -> CommandResult {
    let template = match args.template {
        TemplateName::Shell => Template::Shell,
        TemplateName::Python => Template::Python,
        TemplateName::Ansible => Template::Ansible,
    };
    let files = scaffold(&args.name, template)?;
    let folder = args.dir.clone().unwrap_or_else(|| args.name.clone().into());
    let shown = folder.display();
    let taken = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{shown} is there already: choose another name, or another --dir")
        }
        _ => format!("{shown} cannot be made: {error}"),
    };
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above).map_err(taken)?;
    }
    // An existing folder is never overwritten.
    fs::create_dir(&folder).map_err(taken)?;
    for file in files {
        let path = folder.join(file.path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        let mut options = OpenOptions::new();
        let mut opened = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)?;
        opened.write_all(file.content.as_bytes())?;
    }
    let text = format!(
        "{shown} is a working bundle. Look it over with\n\n    sutler bundle check {shown}\n"
    );
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
