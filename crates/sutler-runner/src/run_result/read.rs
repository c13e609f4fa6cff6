//! Reads a result directory. A bundle wrote it, so it may hold anything, of any size, and links to anywhere.
//!
//! Only plain files are read, within limits. A file that cannot be used gives a sentence and does not affect the
//! others: cleanup after a failed run needs everything that can be read.

use super::{RunProgress, RunResult};
use crate::run_spec::Vars;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use sutler_bundle::check_json_text;

/// All result files.
pub(crate) const RESULT_FILES: [&str; 6] = [
    "credentials.json",
    "state.json",
    "binding_state.json",
    "progress",
    "dashboard_url",
    "error",
];
/// Maximum bytes of credentials, and of each state.
const OBJECT_BYTES_MAX: u64 = 256 << 10;
/// Maximum bytes of a URL.
const URL_BYTES_MAX: u64 = 2048;
/// Maximum bytes of an error that are shown; the rest is in the log.
const ERROR_BYTES_MAX: u64 = 4096;
/// Bytes from the end in which progress is searched.
const PROGRESS_BYTES: u64 = 16 << 10;
/// Maximum characters of a progress text.
const PROGRESS_CHARS_MAX: usize = 1000;

/// A result directory.
#[derive(Debug)]
pub(crate) struct ResultDir(OwnedFd);

impl ResultDir {
    /// Opens it, if it is a directory and not a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Reads all files, each independently.
    pub(crate) fn read(&self) -> RunResult {
        let mut refused = Vec::new();
        RunResult {
            credentials: good(self.object("credentials.json"), &mut refused),
            state: good(self.object("state.json"), &mut refused),
            binding_state: good(self.object("binding_state.json"), &mut refused),
            progress: self.progress(),
            dashboard_url: good(self.dashboard_url(), &mut refused),
            error: good(self.error(), &mut refused),
            refused,
        }
    }

    /// The last progress; `None` if it is invalid.
    pub(crate) fn progress(&self) -> Option<RunProgress> {
        let mut file = self.file("progress").ok()??;
        let length = file.metadata().ok()?.len();
        let from = length.saturating_sub(PROGRESS_BYTES);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(PROGRESS_BYTES).read_to_end(&mut bytes).ok()?;
        last_progress(&bytes)
    }

    /// Text of a file; `None` if it is invalid.
    #[cfg(feature = "containers")]
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = self.file(name).ok()??;
        file.take(ERROR_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let text = printable(&String::from_utf8_lossy(&bytes));
        (!text.is_empty()).then_some(text)
    }

    fn object(&self, name: &str) -> Result<Option<Vars>, String> {
        let Some(bytes) = self.bytes(name, OBJECT_BYTES_MAX)? else {
            return Ok(None);
        };
        // What cannot be read again after it is stored would make the instance unusable.
        check_json_text(&bytes)
            .map_err(|fault| broken(name, &fault.to_string(), "write a simpler object"))?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(object)) => Ok(Some(Vars(object))),
            Ok(_) => Err(broken(
                name,
                "holds JSON, but no object",
                "write {\"KEY\": VALUE}",
            )),
            // The parser's message might quote a secret.
            Err(fault) => Err(broken(
                name,
                &format!(
                    "is no JSON from line {}, column {} on",
                    fault.line(),
                    fault.column()
                ),
                "write it with a JSON library or `sutler bundle emit`",
            )),
        }
    }

    fn dashboard_url(&self) -> Result<Option<String>, String> {
        let Some(bytes) = self.bytes("dashboard_url", URL_BYTES_MAX)? else {
            return Ok(None);
        };
        let url = String::from_utf8_lossy(&bytes).trim().to_owned();
        let web = ["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme));
        let plain = url
            .chars()
            .all(|c| !c.is_control() && !c.is_whitespace() && c != '\u{fffd}');
        match (url.is_empty(), web && plain) {
            (true, _) => Ok(None),
            (false, true) => Ok(Some(url)),
            (false, false) => Err(broken(
                "dashboard_url",
                "is no web address",
                "write one that begins with https:// or http://, without spaces",
            )),
        }
    }

    /// An error is cut to its limit: a long one must not be refused.
    fn error(&self) -> Result<Option<String>, String> {
        let Some(file) = self.plain("error")? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file.take(ERROR_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|fault| unreadable("error", &fault))?;
        let text = printable(&String::from_utf8_lossy(&bytes));
        Ok((!text.is_empty()).then_some(text))
    }

    fn bytes(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let Some(file) = self.plain(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|fault| unreadable(name, &fault))?;
        if bytes.len() as u64 > most {
            return Err(broken(
                name,
                &format!("is longer than {most} bytes"),
                "keep large things in the service, and where they are here",
            ));
        }
        Ok(Some(bytes))
    }

    fn plain(&self, name: &str) -> Result<Option<File>, String> {
        match self.file(name) {
            Ok(file) => Ok(file),
            Err(fault) if fault.kind() == io::ErrorKind::InvalidInput => Err(broken(
                name,
                "is not a plain file of its own",
                "write it there, no link, pipe or folder",
            )),
            Err(fault) => Err(unreadable(name, &fault)),
        }
    }

    /// Opens a plain file. A hard link is refused, because it may be a file from elsewhere.
    fn file(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            Err(fault) => return Err(fault.into()),
        };
        let there = file.metadata()?;
        if !there.is_file() || there.nlink() != 1 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Some(file))
    }
}

/// The last line with content: `{"percent": 40, "text": "…"}` or plain text.
fn last_progress(bytes: &[u8]) -> Option<RunProgress> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let parsed = serde_json::from_str::<Value>(line).ok();
    let Some(object) = parsed.as_ref().and_then(Value::as_object) else {
        return Some(RunProgress {
            text: shortened(line),
            percent: None,
        });
    };
    let percent = object.get("percent").and_then(Value::as_f64);
    Some(RunProgress {
        text: shortened(
            object
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        ),
        // In range after the clamp, so only the fraction is lost.
        percent: percent.map(|percent| percent.clamp(0.0, 100.0) as u8),
    })
}

fn shortened(text: &str) -> String {
    printable(text).chars().take(PROGRESS_CHARS_MAX).collect()
}

/// Removes control characters, which move cursors or hide text.
fn printable(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    text.trim().chars().map(plain).collect()
}

/// Returns the value, or notes why it cannot be used.
fn good<T>(read: Result<Option<T>, String>, refused: &mut Vec<String>) -> Option<T> {
    read.unwrap_or_else(|sentence| {
        refused.push(sentence);
        None
    })
}

fn broken(name: &str, what: &str, advice: &str) -> String {
    format!("What the bundle gave back cannot be used: {name} {what}; {advice}.")
}

fn unreadable(name: &str, fault: &io::Error) -> String {
    format!(
        "What the bundle gave back cannot be read: {name}: {fault}. See that it leaves its own files readable."
    )
}

#[cfg(test)]
mod tests {
    use super::{ERROR_BYTES_MAX, OBJECT_BYTES_MAX, ResultDir, last_progress};
    use crate::run_result::{RunProgress, RunResult};
    use serde_json::json;
    use std::fs;
    use std::path::Path;

    fn result(fill: impl FnOnce(&Path)) -> RunResult {
        let folder = tempfile::tempdir().expect("a folder");
        fill(folder.path());
        ResultDir::open(folder.path()).expect("opened").read()
    }

    fn refusal(name: &str, content: &[u8]) -> String {
        let result = result(|path| fs::write(path.join(name), content).expect("written"));
        result.refused.first().expect("a refusal").clone()
    }

    #[test]
    fn nothing_given_is_nothing_wrong() {
        assert_eq!(result(|_| {}), RunResult::default());
    }

    /// It is stored inside other objects, and must be readable from there.
    #[test]
    fn an_object_that_could_not_be_read_again_is_refused() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(110), "]".repeat(110));
        let refused = refusal("state.json", deep.as_bytes());
        assert!(refused.contains("state.json is nested deeper"), "{refused}");
        let reserved = br#"{"a":1,"$serde_json::private::RawValue":"x"}"#;
        let refused = refusal("credentials.json", reserved);
        assert!(refused.contains("credentials.json has a key"), "{refused}");
    }

    #[test]
    fn all_that_is_given_is_read() {
        let read = result(|path| {
            fs::write(path.join("credentials.json"), r#"{"user":"u"}"#).expect("written");
            fs::write(path.join("state.json"), r#"{"a":1,"b":null}"#).expect("written");
            fs::write(path.join("binding_state.json"), "{}").expect("written");
            fs::write(path.join("progress"), "one\ntwo\n").expect("written");
            fs::write(path.join("dashboard_url"), "https://example.org/x\n").expect("written");
            fs::write(path.join("error"), "no room \u{1b}[2J left\n").expect("written");
        });
        assert_eq!(read.refused, Vec::<String>::new());
        assert_eq!(read.credentials.expect("credentials").0["user"], json!("u"));
        assert_eq!(read.state.expect("state").0["b"], json!(null));
        assert!(read.binding_state.expect("state").0.is_empty());
        assert_eq!(read.progress.expect("progress").text, "two");
        assert_eq!(read.dashboard_url.as_deref(), Some("https://example.org/x"));
        assert_eq!(read.error.as_deref(), Some("no room  [2J left"));
    }

    #[test]
    fn invalid_files_are_reported_without_quoting_them() {
        let sentence = refusal("credentials.json", b"{\"password\": hunter2}");
        assert!(
            sentence.contains("line 1") && !sentence.contains("hunter2"),
            "{sentence}"
        );
        assert!(refusal("state.json", b"[]").contains("no object"));
        let long = vec![b' '; usize::try_from(OBJECT_BYTES_MAX).expect("small") + 1];
        assert!(refusal("credentials.json", &long).contains("longer than"));
        assert!(refusal("dashboard_url", b"javascript:alert(1)").contains("no web address"));
    }

    #[test]
    fn an_invalid_file_does_not_affect_the_others() {
        let read = result(|path| {
            fs::write(path.join("credentials.json"), "{").expect("written");
            fs::write(path.join("state.json"), r#"{"made":"db-7"}"#).expect("written");
            fs::write(path.join("dashboard_url"), "nowhere").expect("written");
            fs::write(path.join("error"), "no room").expect("written");
        });
        assert_eq!(read.credentials, None);
        assert_eq!(read.state.expect("state").0["made"], json!("db-7"));
        assert_eq!(read.error.as_deref(), Some("no room"));
        let [first, second] = read.refused.as_slice() else {
            panic!("{:?}", read.refused);
        };
        assert!(first.contains("credentials.json"), "{first}");
        assert!(second.contains("dashboard_url"), "{second}");
    }

    #[test]
    fn only_plain_files_of_their_own_are_read() {
        type Fill = fn(&Path);
        let hostile: [(&str, Fill); 4] = [
            ("a link", |path| {
                std::os::unix::fs::symlink("/etc/hostname", path.join("error")).expect("linked");
            }),
            ("a second name", |path| {
                fs::write(path.join("other"), "secret").expect("written");
                fs::hard_link(path.join("other"), path.join("error")).expect("linked");
            }),
            ("a folder", |path| {
                fs::create_dir(path.join("error")).expect("made")
            }),
            ("a pipe", |path| {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, path.join("error"), kind, mode, 0)
                    .expect("made");
            }),
        ];
        for (what, fill) in hostile {
            let refused = result(fill).refused;
            assert!(
                refused.len() == 1 && refused[0].contains("plain file"),
                "{what}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_long_error_is_cut_and_no_fault() {
        let long = vec![b'x'; usize::try_from(ERROR_BYTES_MAX).expect("small") * 2];
        let read = result(|path| fs::write(path.join("error"), &long).expect("written"));
        assert_eq!(read.error.expect("error").len() as u64, ERROR_BYTES_MAX);
    }

    #[test]
    fn progress_is_its_last_line_as_text_or_with_a_percentage() {
        let progress = |text: &str, percent| {
            Some(RunProgress {
                text: text.to_owned(),
                percent,
            })
        };
        assert_eq!(last_progress(b"one\ntwo\n\n"), progress("two", None));
        assert_eq!(
            last_progress(b"{\"percent\":40,\"text\":\"x\"}\n"),
            progress("x", Some(40))
        );
        assert_eq!(last_progress(b"{\"percent\":400}"), progress("", Some(100)));
        assert_eq!(
            last_progress(b"{\"percent\":"),
            progress("{\"percent\":", None)
        );
        assert_eq!(last_progress(b"\n \n"), None);
    }
}
