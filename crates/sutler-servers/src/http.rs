//! HTTP/1.1 for tests and tools: one request with its whole response, or many on a kept connection.
//!
//! [`HttpRequest::send`] opens a connection for each request and reads until the server closes it.
//! [`HttpConnection`] keeps its connection and allocates little, for tools that measure. Nothing is
//! encrypted and no response is bounded; not for production. Servers of this crate that speak HTTP
//! (`registry_proxy.rs`) use the same types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Maximum time between two reads of one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of the head of a response on a kept connection, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A request.
#[derive(Clone, Debug, Default)]
pub struct HttpRequest {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers in the order in which they are sent; `Host`, `Content-Length` and `Connection` are added.
    pub headers: Vec<(String, String)>,
    /// Body; empty if there is none.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds basic authentication by `name:password`.
    #[must_use]
    pub fn with_basic_auth(self, pair: &str) -> Self {
        self.with_header("Authorization", &format!("Basic {}", STANDARD.encode(pair)))
    }

    /// Sets the body and its media type.
    #[must_use]
    pub fn with_body(mut self, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.with_header("Content-Type", media_type)
    }

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Sends the request on a connection of its own and reads the response to its end.
    ///
    /// # Errors
    /// The server cannot be reached, or what it sends is not a response.
    pub fn send(&self, address: impl ToSocketAddrs) -> io::Result<HttpResponse> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if self.header("host").is_none() {
            head.push_str(&format!("Host: {}\r\n", stream.peer_addr()?));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = self.body.len();
        head.push_str(&format!(
            "Content-Length: {length}\r\nConnection: close\r\n\r\n"
        ));
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.body)?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let response = read_response(&bytes);
        response.ok_or_else(|| {
            let text = String::from_utf8_lossy(&bytes);
            io::Error::other(format!("not a response: {text}"))
        })
    }
}

/// Encodes as basic authentication and originating identities do.
#[must_use]
pub fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// A whole response.
#[derive(Clone, Debug, Default)]
pub struct HttpResponse {
    /// Status.
    pub status: u16,
    /// Headers in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Body without its transfer encoding.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Headers and body as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(&String::from_utf8_lossy(&self.body));
        text
    }
}

/// A connection that is kept for many requests, whose responses have a `Content-Length`.
#[derive(Debug)]
pub struct HttpConnection {
    stream: tokio::net::TcpStream,
    buffer: Vec<u8>,
}

/// A response in the buffer of its connection.
#[derive(Clone, Copy, Debug)]
pub struct BufferedResponse<'a> {
    /// Status.
    pub status: u16,
    /// Body.
    pub body: &'a [u8],
    head: &'a [u8],
}

impl<'a> BufferedResponse<'a> {
    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        header_in(std::str::from_utf8(self.head).ok()?, name)
    }
}

impl HttpConnection {
    /// Connects, without a delay for small writes.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(address: impl tokio::net::ToSocketAddrs) -> io::Result<Self> {
        Self::new(tokio::net::TcpStream::connect(address).await?)
    }

    /// Uses an open connection.
    ///
    /// # Errors
    /// The socket is closed.
    pub fn new(stream: tokio::net::TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let buffer = Vec::with_capacity(HEAD_BYTES_MAX);
        Ok(Self { stream, buffer })
    }

    /// Sends a request as it is written and reads the whole response.
    ///
    /// # Errors
    /// The connection breaks, or what comes is not a response.
    pub async fn send(&mut self, request: &[u8]) -> io::Result<BufferedResponse<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let start = loop {
            self.read_more().await?;
            if let Some(end) = position(&self.buffer, HEAD_END) {
                break end + HEAD_END.len();
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        };
        let (status, length) =
            status_and_length(&self.buffer[..start]).ok_or(io::ErrorKind::InvalidData)?;
        while self.buffer.len() < start + length {
            self.read_more().await?;
        }
        let (head, body) = self.buffer[..start + length].split_at(start);
        Ok(BufferedResponse { status, body, head })
    }

    /// Whether the server has neither closed the connection nor sent something unexpected.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Gives the socket back.
    #[must_use]
    pub fn into_stream(self) -> tokio::net::TcpStream {
        self.stream
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Status and length of the body, from a head.
fn status_and_length(head: &[u8]) -> Option<(u16, usize)> {
    let text = std::str::from_utf8(head).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let length = header_in(text, "content-length").and_then(|length| length.parse().ok());
    Some((status, length.unwrap_or(0)))
}

/// The first header of this name in a head.
fn header_in<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|it| it == part)
}

/// Reads a response whose connection was closed behind it.
fn read_response(bytes: &[u8]) -> Option<HttpResponse> {
    let end = position(bytes, HEAD_END)?;
    let (status, headers) = read_head(&bytes[..end])?;
    let body = &bytes[end + HEAD_END.len()..];
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
        let end = position(bytes, b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..end]).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}

/// First line and headers of a request or a response.
pub(crate) fn read_head(bytes: &[u8]) -> Option<(String, Vec<(String, String)>)> {
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
    fn responses_are_read_whole_and_in_chunks() {
        let plain = b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nhello";
        let chunks = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        let plain = read_response(plain).expect("a response");
        assert_eq!((plain.status, plain.header("x-a")), (200, Some("b")));
        let chunks = read_response(chunks).expect("a response");
        assert_eq!((chunks.status, chunks.body), (201, b"hello".to_vec()));
    }

    #[test]
    fn a_head_has_a_status_and_a_length() {
        let head = b"HTTP/1.1 429 Too Many\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(status_and_length(head), Some((429, 12)));
        assert_eq!(
            status_and_length(b"HTTP/1.1 304 Same\r\n\r\n"),
            Some((304, 0))
        );
        assert_eq!(status_and_length(b"rubbish"), None);
    }
}
