//! The part of HTTP that the proxy needs: the end of a request to the gateway of etcd, and whether it is a
//! transaction.
//! Watches have no response to wait for, so they are not counted.

use super::{Dialect, Message};

/// Stateless: every request is self-contained.
#[derive(Default)]
pub struct EtcdDialect;

impl Dialect for EtcdDialect {
    fn fresh() -> Self {
        Self
    }

    fn client(&mut self, bytes: &[u8]) -> Option<Message> {
        let head = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
        let length = head + 4 + content_length(&text);
        if bytes.len() < length {
            return None;
        }
        let path = text.split(' ').nth(1).unwrap_or_default();
        Some(Message {
            length,
            commits: path == "/v3/kv/txn",
            asks: (path != "/v3/watch").then(|| path.to_owned()),
        })
    }

    /// Any bytes begin a response; more is not needed.
    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        (!bytes.is_empty()).then_some((bytes.len(), true))
    }
}

fn content_length(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(0, |it| it.trim().parse().expect("a length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_after_its_content_length() {
        let request = b"POST /v3/kv/txn HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}POST";
        let message = EtcdDialect.client(request).expect("whole");
        assert_eq!(message.length, request.len() - 4);
        assert!(message.commits);
        assert_eq!(EtcdDialect.client(&request[..request.len() - 5]), None);
        let watch = EtcdDialect.client(b"POST /v3/watch HTTP/1.1\r\n\r\n");
        assert_eq!(watch.expect("whole").asks, None);
    }
}
