//! The way to a broker: who asks, what is trusted, how long is waited. Secrets come from files and
//! the environment, never from flags, which others could see in the list of processes.

use super::end::NotDone;
use clap::Args;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::{Path, PathBuf};
use sutler::Span;
use sutler_client::wire::{Connection, InvalidConnectionError};

/// Longest file with a secret or certificates that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// How the broker is reached.
#[derive(Args)]
pub(super) struct WayArgs {
    /// The platform's name, for basic authentication
    #[arg(
        long,
        value_name = "NAME",
        env = "SUTLER_CHECK_USER",
        hide_env_values = true,
        conflicts_with = "token_file"
    )]
    user: Option<String>,
    /// Reads the password from a file; otherwise SUTLER_CHECK_PASSWORD is used
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Reads a bearer token from a file; otherwise SUTLER_CHECK_TOKEN is used if there is no --user
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trusts the authorities in this PEM file, besides those of the system
    #[arg(
        long,
        value_name = "FILE",
        env = "SUTLER_CHECK_CA",
        hide_env_values = true
    )]
    ca: Option<PathBuf>,
    /// Shows this certificate, in PEM form, to the broker
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// How long one answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::span)]
    timeout: Span,
}

impl WayArgs {
    pub(super) fn connect(&self, url: &str) -> Result<Connection, NotDone> {
        let Span(within) = self.timeout;
        let mut builder = Connection::to(url)
            .answer_within(within)
            .connect_within(within);
        match (&self.user, self.token()?) {
            (Some(user), _) => builder = builder.basic(user, self.password()?),
            (None, Some(token)) => builder = builder.bearer(token),
            (None, None) => {}
        }
        if let Some(path) = &self.ca {
            let pem = read(path)?;
            let trusting = builder.trust(pem.expose_secret().as_bytes());
            builder = trusting.map_err(|error| usage(path, &error))?;
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            let both = Zeroizing::new(format!(
                "{}\n{}",
                read(cert)?.expose_secret(),
                read(key)?.expose_secret()
            ));
            let known = builder.identity(&SecretString::from(both.as_str()));
            builder = known.map_err(|error| usage(cert, &error))?;
        }
        builder
            .build()
            .map_err(|error| NotDone::Usage(error.to_string()))
    }

    fn password(&self) -> Result<SecretString, NotDone> {
        if let Some(path) = &self.password_file {
            return line(path);
        }
        variable("SUTLER_CHECK_PASSWORD").ok_or_else(|| {
            NotDone::Usage(
                "set SUTLER_CHECK_PASSWORD or --password-file to the platform's password"
                    .to_owned(),
            )
        })
    }

    fn token(&self) -> Result<Option<SecretString>, NotDone> {
        match &self.token_file {
            Some(path) => line(path).map(Some),
            None => Ok(variable("SUTLER_CHECK_TOKEN")),
        }
    }
}

fn usage(path: &Path, error: &InvalidConnectionError) -> NotDone {
    NotDone::Usage(format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> Option<SecretString> {
    let text = std::env::var(name).ok().filter(|it| !it.is_empty())?;
    Some(SecretString::from(text))
}

/// A secret that is the one line of a file.
fn line(path: &Path) -> Result<SecretString, NotDone> {
    let text = read(path)?;
    let line = text.expose_secret().trim_end_matches(['\r', '\n']);
    Ok(SecretString::from(line))
}

fn read(path: &Path) -> Result<SecretString, NotDone> {
    use std::io::Read as _;
    let failed = |error| NotDone::file("read", path, error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = Zeroizing::new(String::new());
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        let sentence = format!(
            "{} is longer than {FILE_BYTES_MAX} bytes; give the file that is meant",
            path.display()
        );
        return Err(NotDone::Usage(sentence));
    }
    Ok(SecretString::from(text.as_str()))
}
