//! A server of raw connections with a behaviour per test; stops when dropped.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longest head of a request read, in bytes.
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// A running server.
pub(crate) struct Hostile {
    url: String,
    _stop: DropGuard,
}

impl Hostile {
    /// Starts a server that runs this for each connection.
    pub(crate) async fn start<Handler, Done>(handler: Handler) -> Self
    where
        Handler: Fn(TcpStream) -> Done + Send + 'static,
        Done: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            let mut handlers = JoinSet::new();
            loop {
                tokio::select! {
                    () = stopped.cancelled() => return,
                    accepted = listener.accept() => {
                        if let Ok((stream, _)) = accepted {
                            handlers.spawn(handler(stream));
                        }
                    }
                    _ = handlers.join_next(), if !handlers.is_empty() => {}
                }
            }
        });
        Self {
            url,
            _stop: stop.drop_guard(),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Reads the head of a request, and its body if it has a length; empty if there is none.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while read.len() < HEAD_BYTES_MAX {
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => read.extend_from_slice(&buffer[..count]),
            _ => break,
        }
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_it = name.eq_ignore_ascii_case("content-length");
                is_it.then(|| value.trim().parse::<usize>().ok()).flatten()
            });
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
    }
    String::from_utf8_lossy(&read).into_owned()
}

/// Answers with JSON and closes.
pub(crate) async fn answered(stream: &mut TcpStream, status: u16, body: &Value) {
    raw(stream, status, body.to_string().as_bytes()).await;
}

/// Answers with bytes and closes.
pub(crate) async fn raw(stream: &mut TcpStream, status: u16, body: &[u8]) {
    with_header(stream, status, "", body).await;
}

/// Answers with more headers; each includes its line end.
pub(crate) async fn with_header(stream: &mut TcpStream, status: u16, more: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n{more}\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body).await;
    let _ = stream.shutdown().await;
}
