//! HTTP/1.1 as the recording broker needs it: whole requests with a length, and answers that may not come.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Largest request, in bytes.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A whole request.
#[derive(Clone, Debug)]
pub(super) struct ParsedRequest {
    pub(super) method: String,
    pub(super) target: String,
    /// Names are in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl ParsedRequest {
    /// The first header of this name, which is in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// A parameter of the query, as it was sent.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, it)| it)
    }

    fn parse_head(head: &str) -> Option<Self> {
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self {
            method,
            target,
            headers,
            body: Vec::new(),
        })
    }
}

/// Reads a request. `None`: the connection ended, or this is no request.
pub(super) async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Option<ParsedRequest> {
    let start = loop {
        if let Some(end) = buffer.windows(HEAD_END.len()).position(|it| it == HEAD_END) {
            break end + HEAD_END.len();
        }
        read_more(stream, buffer).await?;
    };
    let head = std::str::from_utf8(&buffer[..start]).ok()?;
    let mut request = ParsedRequest::parse_head(head)?;
    let length = match request.header("content-length") {
        Some(length) => length.parse().ok()?,
        None => 0,
    };
    while buffer.len() < start + length {
        read_more(stream, buffer).await?;
    }
    request.body = buffer[start..start + length].to_vec();
    buffer.drain(..start + length);
    Some(request)
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    if buffer.len() > REQUEST_BYTES_MAX {
        return None;
    }
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

/// Writes an answer. `None`: nobody reads it.
pub(super) async fn write_answer(stream: &mut TcpStream, status: u16, body: &Value) -> Option<()> {
    let body = body.to_string();
    let text = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.ok()
}
