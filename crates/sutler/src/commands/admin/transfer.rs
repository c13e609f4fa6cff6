//! `export`, `import` and `backup`: whole realms and databases, from and to files.
//!
//! A file gets its name only when it is complete. A terminal shows a progress bar.

use super::client::{AdminClient, broken};
use super::error::AdminError;
use super::list::{say, shown};
use super::{AdminOutput, actions};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Body, Method, RequestBuilder};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Target of an export.
#[derive(Args)]
pub(super) struct ExportArgs {
    /// The file to write; must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Source of an import.
#[derive(Args)]
pub(super) struct ImportArgs {
    /// A file written by `export`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Import and run operations that had not ended; only if the broker of the export is stopped for good
    #[arg(long)]
    run_unfinished: bool,
}

/// Target of a backup.
#[derive(Args)]
pub(super) struct BackupArgs {
    /// The file to write; must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    why: actions::ReasonArgs,
}

pub(super) async fn export(client: &AdminClient, args: &ExportArgs) -> Result<(), AdminError> {
    let request = client.ask(Method::GET, "export", &[]);
    let bytes = save(client, request, &args.file).await?;
    let last = last_line(&args.file)?;
    if !last.contains("\"end\"") {
        return Err(AdminError::failed(format!(
            "{} has no last line: the export broke off; remove the file and repeat",
            args.file.display()
        )));
    }
    say(&format!("wrote {} ({bytes} bytes)", args.file.display()))
}

pub(super) async fn backup(client: &AdminClient, args: &BackupArgs) -> Result<(), AdminError> {
    let request = client.ask(Method::POST, "backup", &[]);
    let request = request.json(&json!({ "reason": args.why.reason() }));
    let bytes = save(client, request, &args.file).await?;
    say(&format!("wrote {} ({bytes} bytes)", args.file.display()))
}

pub(super) async fn import(
    client: &AdminClient,
    output: AdminOutput,
    args: &ImportArgs,
) -> Result<(), AdminError> {
    let path = &args.file;
    let file = tokio::fs::File::open(path)
        .await
        .map_err(|error| AdminError::file("read", path, error))?;
    let query: &[_] = match args.run_unfinished {
        true => &[("unfinished", "run".to_owned())],
        false => &[],
    };
    let request = client.ask(Method::POST, "import", query);
    let done = client.json(request.body(Body::from(file))).await?;
    shown(output, &done)
}

/// Writes a response to a new file; returns its length.
async fn save(
    client: &AdminClient,
    request: RequestBuilder,
    path: &Path,
) -> Result<u64, AdminError> {
    if path.exists() {
        return Err(AdminError::Usage(format!(
            "{} exists already; name another file, or remove it first",
            path.display()
        )));
    }
    let mut response = client.send(request).await?;
    let partial = path.with_extension("partial");
    let mut file = private(&partial)?;
    let bar = bar();
    let mut bytes = 0;
    let written = async {
        while let Some(piece) = response.chunk().await.map_err(broken)? {
            file.write_all(&piece)
                .map_err(|error| AdminError::file("write", &partial, error))?;
            bytes += piece.len() as u64;
            bar.set_position(bytes);
        }
        file.sync_all()
            .and_then(|()| std::fs::rename(&partial, path))
            .map_err(|error| AdminError::file("write", path, error))
    };
    let written = written.await;
    bar.finish_and_clear();
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| bytes)
}

/// Creates a file that only its owner can read. A file or a link that another user prepared is never written to.
fn private(path: &Path) -> Result<File, AdminError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Left by an interrupted command.
    let _ = std::fs::remove_file(path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| AdminError::file("write", path, error))
}

fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {bytes} {elapsed}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// Reads the last line of a file.
fn last_line(path: &Path) -> Result<String, AdminError> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(200)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let text = String::from_utf8_lossy(&end).into_owned();
        Ok(text.lines().last().unwrap_or_default().to_owned())
    };
    read().map_err(|error| AdminError::file("read", path, error))
}
