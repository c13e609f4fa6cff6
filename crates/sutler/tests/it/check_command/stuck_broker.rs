//! A broker that accepts every request and whose operations never end. Plain HTTP, because our own brokers
//! cannot behave like this.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CATALOG: &str = r#"{"services":[{"id":"s","name":"s","description":"d","bindable":false,"plans":[{"id":"p","name":"p","description":"d"}]}]}"#;

/// A broker that serves until the process ends.
pub(super) struct StuckBroker {
    pub(super) url: String,
    made: Arc<AtomicBool>,
}

impl StuckBroker {
    /// Starts a broker with this response to creates and deletes.
    pub(super) fn start(put: u16, delete: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let made = Arc::new(AtomicBool::new(false));
        let seen = made.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = seen.clone();
                std::thread::spawn(move || answer(stream, put, delete, &seen));
            }
        });
        Self { url, made }
    }

    pub(super) fn was_asked_to_make_something(&self) -> bool {
        self.made.load(Ordering::SeqCst)
    }
}

/// Reads one request and responds.
fn answer(stream: TcpStream, put: u16, delete: u16, made: &AtomicBool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let (mut header, mut length) = (String::new(), 0);
    while reader.read_line(&mut header)? > 2 {
        let (name, value) = header.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
        header.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let (status, body) = match line.split_once(' ').unwrap_or_default() {
        ("GET", path) if path.starts_with("/v2/catalog") => (200, CATALOG),
        ("GET", path) if path.contains("/last_operation") => (200, r#"{"state":"in progress"}"#),
        ("PUT", _) => {
            made.store(true, Ordering::SeqCst);
            (put, r#"{"operation":"o"}"#)
        }
        ("DELETE", _) => (delete, r#"{"operation":"o"}"#),
        _ => (404, "{}"),
    };
    let length = body.len();
    write!(
        reader.get_mut(),
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
