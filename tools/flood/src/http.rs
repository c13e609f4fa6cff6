//! Requests as bytes, and just enough of a client to send them and read the answers.

use crate::broker::{PASSWORD, PLAN, SERVICE};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// A request of a user, with a body if there is one.
pub(crate) fn request(user: &str, line: &str, body: &str) -> String {
    let basic = STANDARD.encode(format!("{user}:{PASSWORD}"));
    let body_headers = if body.is_empty() {
        String::new()
    } else {
        format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )
    };
    format!(
        "{line} HTTP/1.1\r\nHost: flood\r\nAuthorization: Basic {basic}\r\n\
         X-Broker-API-Version: 2.17\r\n{body_headers}\r\n{body}"
    )
}

/// A synchronous provision.
pub(crate) fn provision(user: &str, id: &str) -> String {
    let body = serde_json::json!({
        "service_id": SERVICE, "plan_id": PLAN, "organization_guid": "o", "space_guid": "s",
    });
    let line = format!("PUT /v2/service_instances/{id}");
    request(user, &line, &body.to_string())
}

/// A connection from an address of this machine.
pub(crate) async fn connect(to: SocketAddr, from: u8) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 0, 0, from), 0).into())?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request on an open connection and reads the whole answer: its status.
pub(crate) async fn exchange(stream: &mut TcpStream, request: &str) -> io::Result<u16> {
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::with_capacity(512);
    let end = loop {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let (status, length) = read_head(&head[..end]).ok_or(io::ErrorKind::InvalidData)?;
    let mut rest = vec![0; length.saturating_sub(head.len() - end)];
    stream.read_exact(&mut rest).await?;
    Ok(status)
}

/// The status of an answer, and the length of its body.
fn read_head(head: &[u8]) -> Option<(u16, usize)> {
    let text = std::str::from_utf8(head).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let ours = name.eq_ignore_ascii_case("content-length");
        ours.then(|| value.trim().parse().ok()).flatten()
    });
    Some((status, length.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::read_head;

    #[test]
    fn an_answer_says_its_status_and_its_length() {
        let head = b"HTTP/1.1 429 Too Many\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(read_head(head), Some((429, 12)));
        assert_eq!(read_head(b"HTTP/1.1 304 Same\r\n\r\n"), Some((304, 0)));
        assert_eq!(read_head(b"rubbish"), None);
    }
}
