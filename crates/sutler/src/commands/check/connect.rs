//! Connection to the broker under test: credentials, trusted authorities, timeouts. Secrets are read from files
//! and the environment, never from flags, which are visible in the list of processes.

use super::exit::CheckCommandError;
use clap::Args;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::{Path, PathBuf};
use sutler::DurationText;
use sutler_client::wire::{Connection, InvalidConnectionError};

/// Maximum length of a file with a secret or certificates, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Connection flags.
#[derive(Args)]
pub(super) struct ConnectArgs {
    /// The platform's name, for basic authentication
    #[arg(
        long,
        value_name = "NAME",
        env = "SUTLER_CHECK_USER",
        hide_env_values = true,
        conflicts_with = "token_file"
    )]
    user: Option<String>,
    /// Read the password from a file; otherwise SUTLER_CHECK_PASSWORD is used
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Read a bearer token from a file; otherwise SUTLER_CHECK_TOKEN is used if there is no --user
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the authorities in this PEM file, besides those of the system
    #[arg(
        long,
        value_name = "FILE",
        env = "SUTLER_CHECK_CA",
        hide_env_values = true
    )]
    ca: Option<PathBuf>,
    /// Present this certificate, in PEM form, to the broker
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Timeout of one response
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::duration)]
    timeout: DurationText,
}

impl ConnectArgs {
    pub(super) fn connect(&self, url: &str) -> Result<Connection, CheckCommandError> {
        let DurationText(within) = self.timeout;
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
            .map_err(|error| CheckCommandError::Usage(error.to_string()))
    }

    fn password(&self) -> Result<SecretString, CheckCommandError> {
        if let Some(path) = &self.password_file {
            return line(path);
        }
        variable("SUTLER_CHECK_PASSWORD").ok_or_else(|| {
            CheckCommandError::Usage(
                "set SUTLER_CHECK_PASSWORD or --password-file to the platform's password"
                    .to_owned(),
            )
        })
    }

    fn token(&self) -> Result<Option<SecretString>, CheckCommandError> {
        match &self.token_file {
            Some(path) => line(path).map(Some),
            None => Ok(variable("SUTLER_CHECK_TOKEN")),
        }
    }
}

fn usage(path: &Path, error: &InvalidConnectionError) -> CheckCommandError {
    CheckCommandError::Usage(format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> Option<SecretString> {
    let text = std::env::var(name).ok().filter(|it| !it.is_empty())?;
    Some(SecretString::from(text))
}

/// Reads a secret from the only line of a file.
fn line(path: &Path) -> Result<SecretString, CheckCommandError> {
    let text = read(path)?;
    let line = text.expose_secret().trim_end_matches(['\r', '\n']);
    Ok(SecretString::from(line))
}

fn read(path: &Path) -> Result<SecretString, CheckCommandError> {
    use std::io::Read as _;
    let failed = |error| CheckCommandError::file("read", path, error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = Zeroizing::new(String::new());
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(failed)? as u64 > FILE_BYTES_MAX {
        let sentence = format!(
            "{} is longer than {FILE_BYTES_MAX} bytes; give the file that is meant",
            path.display()
        );
        return Err(CheckCommandError::Usage(sentence));
    }
    Ok(SecretString::from(text.as_str()))
}
