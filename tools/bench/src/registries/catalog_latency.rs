//! A user of the catalog: fetches it at a constant rate, and records the latency.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two requests.
const EVERY: Duration = Duration::from_millis(50);

/// Times of requests in milliseconds, by concurrent activity.
#[derive(Default)]
pub(super) struct CatalogTimes {
    /// No activity.
    pub(super) idle: Vec<f64>,
    /// While another client scans the registry.
    pub(super) beside: Vec<f64>,
    /// During a refresh of the broker.
    pub(super) refreshing: Vec<f64>,
}

/// A running user.
pub(super) struct CatalogWatch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl CatalogWatch {
    pub(super) fn begin(port: u16) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop_flag = over.clone();
        let thread =
            std::thread::spawn(move || fetch_until_over(port, &stop_flag).unwrap_or_default());
        Self { over, thread }
    }

    /// Duration of each request.
    pub(super) fn end(self) -> Vec<f64> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn fetch_until_over(port: u16, over: &AtomicBool) -> std::io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 256 * 1024];
    let mut times = Vec::new();
    let mut next = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        fetch(&mut stream, &mut buffer)?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        next = (next + EVERY).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    // The first one opens the connection.
    Ok(times.into_iter().skip(1).collect())
}

fn fetch(stream: &mut TcpStream, buffer: &mut [u8]) -> std::io::Result<()> {
    let request = "GET /v2/catalog HTTP/1.1\r\nHost: bench\r\nX-Broker-API-Version: 2.17\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    let mut read = stream.read(buffer)?;
    let text = String::from_utf8_lossy(&buffer[..read]).to_ascii_lowercase();
    let garbled = || std::io::Error::other("no answer");
    let end = text.find("\r\n\r\n").ok_or_else(garbled)? + 4;
    let length = text.split_once("content-length: ").ok_or_else(garbled)?.1;
    let length = length.split("\r\n").next().unwrap_or_default();
    let length: usize = length.parse().map_err(|_| garbled())?;
    while read < end + length {
        let more = stream.read(buffer)?;
        if more == 0 {
            return Err(garbled());
        }
        read += more;
    }
    Ok(())
}

/// The given percentile of times.
pub(super) fn share(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
