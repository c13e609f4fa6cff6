//! A wire to a server that can be watched and cut: it understands where a statement begins and where
//! its answer ends.
//!
//! What is cut is the next statement that is a commit. What is counted is how often the client waits
//! for the server. Not here: what messages of a protocol mean, which a [`Dialect`] knows.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::conformance::Cut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What a message of the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Part of a commit: the one message without which nothing happens.
    Commit,
    /// The client waits for an answer after this.
    Waits,
    /// Both.
    CommitAndWaits,
    /// Neither.
    Other,
}

/// A protocol, for one connection.
pub(crate) trait Dialect: Send + 'static {
    /// A connection's own.
    fn fresh() -> Self;
    /// Takes the first whole message of the client from these bytes: its length and what it is.
    fn client(&mut self, bytes: &[u8]) -> Option<(usize, Said)>;
    /// Takes the first whole message of the server: its length, and whether an answer ends with it.
    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)>;
}

/// What all connections of a wire share.
#[derive(Default)]
struct Wires {
    cuts: Mutex<(VecDeque<Cut>, usize)>,
    waits: AtomicU64,
    /// Connections are refused, and those there are were cut.
    down: AtomicBool,
    falling: Notify,
}

/// A wire.
pub(crate) struct Proxy {
    wires: Arc<Wires>,
    port: u16,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to<D: Dialect>(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let wires = Arc::new(Wires::default());
        let shared = Arc::clone(&wires);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.down.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(server).await {
                    tokio::spawn(carry::<D>(client, server, Arc::clone(&shared)));
                }
            }
        });
        Self { wires, port, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next commit that is not yet to be cut. Of those cut in the middle, every other one
    /// arrives.
    pub(crate) fn cut(&self, cut: Cut) {
        let mut cuts = self.wires.lock();
        cuts.0.push_back(cut);
    }

    /// How often the client waited for the server so far.
    pub(crate) fn waits(&self) -> u64 {
        self.wires.waits.load(Ordering::SeqCst)
    }

    /// Cuts everything and lets nobody through, or does so again.
    pub(crate) fn set_down(&self, down: bool) {
        self.wires.down.store(down, Ordering::SeqCst);
        self.wires.falling.notify_waiters();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.set_down(true);
    }
}

impl Wires {
    fn lock(&self) -> std::sync::MutexGuard<'_, (VecDeque<Cut>, usize)> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to become of this commit.
    fn next_cut(&self) -> Option<Cut> {
        let mut cuts = self.lock();
        let cut = cuts.0.pop_front()?;
        cuts.1 += usize::from(cut == Cut::DuringCommit);
        match cut {
            Cut::DuringCommit if cuts.1.is_multiple_of(2) => Some(Cut::AfterCommit),
            cut => Some(cut),
        }
    }
}

/// One connection: what its two directions share.
struct Ends {
    /// Nothing of the server's goes to the client any more; when the answer ends, so does everything.
    swallow: AtomicBool,
    over: Notify,
}

async fn carry<D: Dialect>(client: TcpStream, server: TcpStream, wires: Arc<Wires>) {
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let dialect = Arc::new(Mutex::new(D::fresh()));
    let ends = Ends {
        swallow: AtomicBool::new(false),
        over: Notify::new(),
    };
    let falling = wires.falling.notified();
    tokio::select! {
        _ = forth(client_reads, server_writes, &dialect, &wires, &ends) => {}
        _ = back(server_reads, client_writes, &dialect, &ends) => {}
        () = ends.over.notified() => {}
        () = falling => {}
    }
}

async fn forth<D: Dialect>(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    dialect: &Mutex<D>,
    wires: &Wires,
    ends: &Ends,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        loop {
            let message = lock(dialect).client(&bytes);
            let Some((length, said)) = message else {
                break;
            };
            let message: Vec<u8> = bytes.drain(..length).collect();
            if matches!(said, Said::Waits | Said::CommitAndWaits) {
                wires.waits.fetch_add(1, Ordering::SeqCst);
            }
            if matches!(said, Said::Commit | Said::CommitAndWaits) {
                match wires.next_cut() {
                    None => {}
                    Some(Cut::BeforeCommit) => return Ok(()),
                    Some(Cut::DuringCommit) => {
                        to.write_all(&message[..message.len() / 2]).await?;
                        return Ok(());
                    }
                    Some(Cut::AfterCommit) => ends.swallow.store(true, Ordering::SeqCst),
                }
            }
            to.write_all(&message).await?;
        }
    }
    Ok(())
}

async fn back<D: Dialect>(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    dialect: &Mutex<D>,
    ends: &Ends,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        loop {
            let message = lock(dialect).server(&bytes);
            let Some((length, ends_answer)) = message else {
                break;
            };
            let message: Vec<u8> = bytes.drain(..length).collect();
            if !ends.swallow.load(Ordering::SeqCst) {
                to.write_all(&message).await?;
            } else if ends_answer {
                ends.over.notify_one();
            }
        }
    }
    Ok(())
}

fn lock<D>(dialect: &Mutex<D>) -> std::sync::MutexGuard<'_, D> {
    dialect.lock().unwrap_or_else(PoisonError::into_inner)
}
