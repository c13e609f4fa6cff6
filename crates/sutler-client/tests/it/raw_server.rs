//! A server that sends exactly the bytes of a test, HTTP or not, on a free port of this machine, with TLS or without.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Longest request that is read.
const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// Reaction to a request.
#[derive(Clone)]
pub(crate) enum ServerAct {
    /// These bytes are sent, and the connection is closed.
    Say(Vec<u8>),
    /// These bytes are sent, and then nothing more happens.
    SayAndHang(Vec<u8>),
    /// The first bytes are sent, and then the others again and again.
    Repeat(Vec<u8>, Vec<u8>),
}

impl ServerAct {
    /// A whole answer with a JSON body.
    pub(crate) fn answer(status: u16, body: &str) -> Self {
        Self::answer_with(status, "", body)
    }

    /// The same with more headers, each ended by a line break.
    pub(crate) fn answer_with(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{headers}\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        Self::Say(text.into_bytes())
    }
}

/// The reaction to the n-th request, counted from 0, and to its bytes.
type Script = dyn Fn(usize, &[u8]) -> ServerAct + Send + Sync;

/// A connection, with TLS or without.
trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for S {}

/// The server, and every request that it received.
pub(crate) struct RawServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
    serving: JoinHandle<()>,
}

impl RawServer {
    /// Reacts in the same way to every request.
    pub(crate) async fn always(act: ServerAct) -> Self {
        Self::scripted(move |_| act.clone()).await
    }

    /// Reacts to the n-th request, counted from 0, as `act` returns.
    pub(crate) async fn scripted(act: impl Fn(usize) -> ServerAct + Send + Sync + 'static) -> Self {
        Self::start(None, Box::new(move |nth, _| act(nth))).await
    }

    /// Reacts to the n-th request and its bytes.
    pub(crate) async fn reading(
        act: impl Fn(usize, &[u8]) -> ServerAct + Send + Sync + 'static,
    ) -> Self {
        Self::start(None, Box::new(act)).await
    }

    /// The same as [`RawServer::always`] with TLS. Failed handshakes are no requests.
    pub(crate) async fn always_with_tls(tls: TlsAcceptor, act: ServerAct) -> Self {
        Self::start(Some(tls), Box::new(move |_, _| act.clone())).await
    }

    async fn start(tls: Option<TlsAcceptor>, act: Box<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let recorded = requests.clone();
        let serving = tokio::spawn(async move {
            let mut count = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let Some(mut stream) = with_tls(tls.as_ref(), stream).await else {
                    continue;
                };
                let request = read_request(&mut stream).await;
                let act = act(count, &request);
                recorded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(request);
                tokio::spawn(react(stream, act));
                count += 1;
            }
        });
        Self {
            address,
            requests,
            serving,
        }
    }

    /// URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.request_bytes();
        let text = |it: &Vec<u8>| String::from_utf8_lossy(it).into_owned();
        requests.iter().map(text).collect()
    }

    /// The bytes of all requests so far.
    pub(crate) fn request_bytes(&self) -> Vec<Vec<u8>> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn with_tls(tls: Option<&TlsAcceptor>, stream: TcpStream) -> Option<Box<dyn ByteStream>> {
    match tls {
        None => Some(Box::new(stream)),
        Some(tls) => Some(Box::new(tls.accept(stream).await.ok()?)),
    }
}

async fn react(mut stream: Box<dyn ByteStream>, act: ServerAct) {
    match act {
        ServerAct::Say(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        ServerAct::SayAndHang(bytes) => {
            let _ = stream.write_all(&bytes).await;
            // Holds the connection until the client closes it.
            let mut rest = [0; 64];
            while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
        }
        ServerAct::Repeat(first, again) => {
            let mut going = stream.write_all(&first).await;
            while going.is_ok() {
                going = stream.write_all(&again).await;
            }
        }
    }
}

/// Reads one request: the head, and the body of the announced length.
async fn read_request(stream: &mut Box<dyn ByteStream>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.len() < REQUEST_BYTES_MAX && !is_whole(&bytes) {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
    bytes
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let announced = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    bytes.len() - end - 4 >= announced.unwrap_or(0)
}
