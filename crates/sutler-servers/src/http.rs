//! One request of HTTP/1.1 on a connection of its own, and its whole answer. For tests: nothing is bounded
//! but the time, and nothing is encrypted.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long one answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// A request.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// Sends a request and reads to the end; nothing if the server does not do its part.
pub(crate) fn exchange(at: SocketAddr, request: &HttpRequest) -> Option<HttpResponse> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    if request.header("host").is_none() {
        head.push_str(&format!("Host: {at}\r\n"));
    }
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = request.body.len();
    head.push_str(&format!(
        "Content-Length: {length}\r\nConnection: close\r\n\r\n"
    ));
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&request.body).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    read_answer(&bytes)
}

/// Takes an answer apart whose connection was closed behind it.
fn read_answer(bytes: &[u8]) -> Option<HttpResponse> {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
    let (status, headers) = head(&bytes[..end])?;
    let body = &bytes[end + 4..];
    let chunked = header(&headers, "transfer-encoding").is_some_and(|it| it.contains("chunked"));
    Some(HttpResponse {
        status: status.split(' ').nth(1)?.parse().ok()?,
        body: match chunked {
            true => unchunked(body)?,
            false => body.to_vec(),
        },
        headers,
    })
}

fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|it| it == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}

/// The first line and the headers.
pub(crate) fn head(bytes: &[u8]) -> Option<(String, Vec<(String, String)>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.split("\r\n");
    let first = lines.next()?.to_owned();
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    Some((first, lines.filter_map(pair).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_and_in_pieces() {
        let plain = b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nhello";
        let pieces = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        let plain = read_answer(plain).expect("an answer");
        assert_eq!((plain.status, plain.header("x-a")), (200, Some("b")));
        let pieces = read_answer(pieces).expect("an answer");
        assert_eq!((pieces.status, pieces.body), (201, b"hello".to_vec()));
    }
}
