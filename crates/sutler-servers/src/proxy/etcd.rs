//! As much of HTTP as the wire of the tests needs: where a request of etcd's gateway ends, and whether
//! it is a transaction. Watches are not waited for, so they are not counted.

use super::{Dialect, Message};

/// Requests carry all there is to know.
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

    /// Whatever comes is the beginning of an answer, and nobody needs to know more.
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
    fn a_request_ends_where_it_says() {
        let request = b"POST /v3/kv/txn HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}POST";
        let message = EtcdDialect.client(request).expect("whole");
        assert_eq!(message.length, request.len() - 4);
        assert!(message.commits);
        assert_eq!(EtcdDialect.client(&request[..request.len() - 5]), None);
        let watch = EtcdDialect.client(b"POST /v3/watch HTTP/1.1\r\n\r\n");
        assert_eq!(watch.expect("whole").asks, None);
    }
}
