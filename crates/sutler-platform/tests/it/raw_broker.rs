//! A broker on a real socket that sends exactly the bytes of a test, HTTP or not, except that its catalog is in order unless
//! a test says otherwise.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Time between two bytes of an answer that comes in drips: far less than any client waits for.
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// What is sent in answer to a request.
#[derive(Clone)]
pub(crate) enum RawAnswer {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The first bytes, and then the others again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// The first bytes, and then one space after the other.
    Drip(Vec<u8>),
}

impl RawAnswer {
    /// A whole answer with a body.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        Self::Bytes(text.into_bytes())
    }

    /// A body without an end.
    pub(crate) fn endless() -> Self {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
        Self::Endless(head, chunk.into_bytes())
    }

    /// A body that never comes to its end, though something of it always comes.
    pub(crate) fn drip() -> Self {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{";
        Self::Drip(head.as_bytes().to_vec())
    }

    /// What is no HTTP.
    pub(crate) fn garbage() -> Self {
        Self::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n\x00\xff\x1b[2J".to_vec())
    }
}

/// The answer to a request by its method and path.
type Script = dyn Fn(&str) -> RawAnswer + Send + Sync;

/// The broker, and the first line of every request that it got.
pub(crate) struct RawBroker {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl RawBroker {
    /// Answers reads of the catalog with this one, and other requests as `answer` returns for `PUT /v2/…`.
    pub(crate) async fn start(
        catalog: RawAnswer,
        answer: impl Fn(&str) -> RawAnswer + Send + Sync + 'static,
    ) -> Self {
        let answer: Arc<Script> = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = requests.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, recorded, catalog) =
                    (answer.clone(), recorded.clone(), catalog.clone());
                tokio::spawn(serve(stream, move |line| {
                    recorded
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(line.to_owned());
                    match line.starts_with("GET /v2/catalog") {
                        true => catalog,
                        false => answer(line),
                    }
                }));
            }
        });
        Self {
            address,
            requests,
            serving,
        }
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of requests of a method, besides those for the catalog.
    pub(crate) fn count(&self, method: &str) -> usize {
        let requests = self.requests.lock();
        let requests = requests.unwrap_or_else(PoisonError::into_inner);
        let lines = requests.iter().filter(|it| !it.contains("/catalog"));
        lines.filter(|it| it.starts_with(method)).count()
    }
}

impl Drop for RawBroker {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, answer: impl FnOnce(&str) -> RawAnswer) {
    let Some(line) = read_request(&mut stream).await else {
        return;
    };
    match answer(&line) {
        RawAnswer::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        RawAnswer::Endless(first, again) => {
            let mut going = stream.write_all(&first).await;
            while going.is_ok() {
                going = stream.write_all(&again).await;
            }
        }
        RawAnswer::Drip(first) => {
            let mut ticks = tokio::time::interval(DRIP_EVERY);
            let mut going = stream.write_all(&first).await;
            while going.is_ok() {
                ticks.tick().await;
                going = stream.write_all(b" ").await;
            }
        }
    }
}

/// Reads one request with its body, and returns its first line.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            if bytes.len() >= end + 4 + announced_length(&head) {
                return Some(head.lines().next()?.to_owned());
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

fn announced_length(head: &str) -> usize {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.map_or(0, |(_, value)| value.trim().parse().unwrap_or(0))
}
