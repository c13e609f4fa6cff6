//! `sutler hash-password`: reads a password and prints its Argon2id hash.
//!
//! The password is read from standard input, never from an argument: arguments are visible in process lists
//! and in the history of shells.

use super::CommandResult;
use secrecy::zeroize::Zeroizing;
use std::io::{BufRead, BufReader, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use sutler_broker::hash_password;

/// Maximum input, in bytes; longer than any accepted password.
const INPUT_BYTES_MAX: u64 = 4096;

pub(crate) fn run() -> CommandResult {
    let stdin = std::io::stdin();
    let line = if stdin.is_terminal() {
        let mut stderr = std::io::stderr();
        write!(stderr, "Password: ")?;
        stderr.flush()?;
        let _silence = EchoOff::begin();
        let line = read(stdin.lock())?;
        writeln!(stderr)?;
        line
    } else {
        read(stdin.lock())?
    };
    let hash = hash_password(&password(&line).into())?;
    writeln!(std::io::stdout(), "{hash}")?;
    Ok(())
}

fn read(input: impl BufRead) -> std::io::Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    BufReader::new(input.take(INPUT_BYTES_MAX)).read_line(&mut line)?;
    Ok(line)
}

/// The line without its end.
fn password(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Switches off the echo of the terminal until dropped. Without `stty` the echo stays on.
struct EchoOff;

impl EchoOff {
    fn begin() -> Self {
        echo("-echo");
        Self
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        echo("echo");
    }
}

fn echo(setting: &str) {
    let mut stty = Command::new("stty");
    let _ = stty.arg(setting).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::{INPUT_BYTES_MAX, password, read};

    #[test]
    fn only_the_end_of_the_line_is_cut_off() {
        for (line, expected) in [
            ("secret\n", "secret"),
            ("secret\r\n", "secret"),
            (" with spaces \n", " with spaces "),
            ("no end", "no end"),
            ("\n", ""),
        ] {
            assert_eq!(password(line), expected, "{line:?}");
        }
    }

    #[test]
    fn no_more_is_read_than_a_line_and_a_bound() {
        let line = read(&b"one\ntwo\n"[..]).expect("a line");
        assert_eq!(line.as_str(), "one\n");
        let long = vec![b'x'; 100_000];
        let line = read(&long[..]).expect("a line");
        assert_eq!(line.len() as u64, INPUT_BYTES_MAX);
    }
}
