//! One request over a connection of its own, and its whole answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Headers and body, as they were sent.
    pub(crate) text: String,
}

impl Ask {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            line: format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"),
            headers: vec![("X-Broker-API-Version".to_owned(), "2.17".to_owned())],
            body: String::new(),
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// Without `X-Broker-API-Version`.
    pub(crate) fn without_version(mut self) -> Self {
        self.headers
            .retain(|(name, _)| name != "X-Broker-API-Version");
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With basic authentication, by `name:password`.
    pub(crate) fn user(self, pair: &str) -> Self {
        self.header("Authorization", &format!("Basic {}", base64(pair)))
    }

    pub(crate) fn json(self, body: &serde_json::Value) -> Self {
        self.text(&body.to_string())
    }

    /// A body that says it is JSON.
    pub(crate) fn text(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self.header("Content-Type", "application/json")
    }

    /// A body that says it is a form.
    pub(crate) fn form(mut self, body: &str) -> Self {
        body.clone_into(&mut self.body);
        self.header("Content-Type", "application/x-www-form-urlencoded")
    }

    /// Sends it and reads to the end.
    pub(crate) fn send(&self, address: &str) -> Answer {
        self.try_send(address).expect("it answers")
    }

    pub(crate) fn try_send(&self, address: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = self.line.clone();
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        text.push_str(&self.body);
        stream.write_all(text.as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no answer: {text}")))?;
        Ok(Answer { status, text })
    }
}

/// As basic authentication and originating identities are written.
pub(crate) fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = three
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        for nth in 0..4 {
            let letter = LETTERS[bits >> (18 - 6 * nth) & 63];
            encoded.push(if nth <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    encoded
}

#[test]
fn texts_are_encoded_with_their_padding() {
    assert_eq!(base64("a"), "YQ==");
    assert_eq!(base64("ab"), "YWI=");
    assert_eq!(base64("abc"), "YWJj");
}
