//! An index of thousands of bundles, served with its `ETag`; counts requests.

use super::{BoxError, manifest};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The server.
pub(super) struct IndexServer {
    at: SocketAddr,
    shared: Arc<IndexState>,
}

#[derive(Default)]
struct IndexState {
    manifests: RwLock<Vec<String>>,
    list: RwLock<String>,
    lists: AtomicUsize,
    read: AtomicUsize,
}

impl IndexServer {
    pub(super) fn open(bundles: usize) -> Result<Self, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let at = listener.local_addr()?;
        let shared = Arc::new(IndexState::default());
        let index = Self {
            at,
            shared: shared.clone(),
        };
        let all = (0..bundles).map(|number| manifest(number, "first"));
        *write(&shared.manifests) = all.collect();
        index.list();
        // It ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        Ok(index)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/index.yml", self.at)
    }

    pub(super) fn change(&self, numbers: Range<usize>) {
        for number in numbers {
            write(&self.shared.manifests)[number] = manifest(number, "second");
        }
        self.list();
    }

    /// Number of requests for lists and manifests since the last call.
    pub(super) fn take_counts(&self) -> (usize, usize) {
        let taken = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        (taken(&self.shared.lists), taken(&self.shared.read))
    }

    fn list(&self) {
        let mut list = "bundles:\n".to_owned();
        for (number, manifest) in read(&self.shared.manifests).iter().enumerate() {
            let digest = digest(manifest);
            let _ = writeln!(
                list,
                "- {{name: org/bundle-{number:05}, file: apb.yml, image: 'r.example/b/{number:05}@{digest}', \
                 manifest_url: m/{number}, manifest_digest: '{digest}'}}"
            );
        }
        *write(&self.shared.list) = list;
    }
}

fn serve(client: TcpStream, shared: &IndexState) -> Option<()> {
    let _ = client.set_nodelay(true);
    let mut answers = client.try_clone().ok()?;
    let mut lines = BufReader::new(client).lines();
    loop {
        let first = lines.next()?.ok()?;
        let mut known = String::new();
        loop {
            let line = lines.next()?.ok()?;
            if let Some(tag) = line.to_ascii_lowercase().strip_prefix("if-none-match: ") {
                tag.clone_into(&mut known);
            }
            if line.is_empty() {
                break;
            }
        }
        let path = first.split(' ').nth(1)?;
        let body = match path.strip_prefix("/m/") {
            Some(number) => {
                shared.read.fetch_add(1, Ordering::Relaxed);
                read(&shared.manifests)[number.parse::<usize>().ok()?].clone()
            }
            None => {
                shared.lists.fetch_add(1, Ordering::Relaxed);
                read(&shared.list).clone()
            }
        };
        let tag = format!("\"{}\"", digest(&body));
        let (status, body) = match known == tag {
            true => ("304 Not Modified", String::new()),
            false => ("200 OK", body),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nETag: {tag}\r\nContent-Length: {length}\r\n\r\n");
        answers.write_all(head.as_bytes()).ok()?;
        answers.write_all(body.as_bytes()).ok()?;
    }
}

fn digest(text: &str) -> String {
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
