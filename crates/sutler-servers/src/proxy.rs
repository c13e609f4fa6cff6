//! A proxy to a server that records and cuts connections. It parses where a statement begins and where its
//! response ends.
//!
//! Cuts and holds apply to the next commit of a store; a stall applies to everything. Counts are round trips, i.e.
//! how often the client waits for the server. The messages of a protocol are parsed by a [`Dialect`] (`proxy/`).

mod etcd;
mod mongodb;
mod mysql;
mod postgres;

pub use etcd::EtcdDialect;
pub use mongodb::MongoDialect;
pub use mysql::MySqlDialect;
pub use postgres::PostgresDialect;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// Before the commit reaches the server.
    Before,
    /// In the middle of the commit. Every other one arrives.
    During,
    /// After the server has executed the commit: the response is lost.
    After,
}

/// A message of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Length in bytes.
    pub length: usize,
    /// Whether this message completes a commit.
    pub commits: bool,
    /// Short text of the statement, if the client waits for a response after this message.
    pub asks: Option<String>,
}

/// Parser of a protocol, one per connection.
pub trait Dialect: Send + 'static {
    /// State of a new connection.
    fn fresh() -> Self;
    /// Parses the first whole message of the client.
    fn client(&mut self, bytes: &[u8]) -> Option<Message>;
    /// Parses the first whole message of the server: its length, and whether a response ends with it.
    fn server(&mut self, bytes: &[u8]) -> Option<(usize, bool)>;
}

/// A commit that is held.
pub struct HeldCommit {
    /// Resolves when the commit has arrived.
    pub arrived: oneshot::Receiver<()>,
    /// Releases the commit.
    pub go: oneshot::Sender<()>,
}

enum ProxyCommand {
    Cut(CutPoint),
    /// Signals the arrival of the commit, and holds it until released.
    Hold(oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// State shared by all connections of a proxy.
#[derive(Default)]
struct ProxyState {
    commands: Mutex<VecDeque<ProxyCommand>>,
    halves: AtomicU64,
    statements: Mutex<Vec<String>>,
    last_commit: Mutex<Vec<u8>>,
    late_answers: AtomicU64,
    /// Connections are refused, and existing ones are cut.
    down: AtomicBool,
    falling: Notify,
    /// Connections stay open, and nothing is forwarded in either direction.
    stalled: watch::Sender<bool>,
    /// Beginning of the statement that starts a stall.
    stalls_at: Mutex<Option<&'static str>>,
}

/// A proxy.
pub struct Proxy {
    state: Arc<ProxyState>,
    port: u16,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy to this server.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn to<D: Dialect>(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = Arc::new(ProxyState::default());
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.down.load(Ordering::SeqCst) {
                    continue;
                }
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(server).await {
                        relay::<D>(client, server, &state).await;
                    }
                });
            }
        });
        Self { state, port, task }
    }

    /// Port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the next commit that has no command yet.
    pub fn cut(&self, cut: CutPoint) {
        lock(&self.state.commands).push_back(ProxyCommand::Cut(cut));
    }

    /// Holds the next commit that has no command yet.
    #[must_use]
    pub fn hold(&self) -> HeldCommit {
        let ((notify, arrived), (go, wait)) = (oneshot::channel(), oneshot::channel());
        lock(&self.state.commands).push_back(ProxyCommand::Hold(notify, wait));
        HeldCommit { arrived, go }
    }

    /// Number of round trips so far.
    #[must_use]
    pub fn round_trips(&self) -> usize {
        lock(&self.state.statements).len()
    }

    /// Texts of the round trips from the n-th on.
    #[must_use]
    pub fn messages_since(&self, n: usize) -> Vec<String> {
        lock(&self.state.statements).split_off(n)
    }

    /// Bytes of the message of the last commit.
    #[must_use]
    pub fn last_commit(&self) -> Vec<u8> {
        lock(&self.state.last_commit).clone()
    }

    /// Number of responses to commits that were held.
    #[must_use]
    pub fn late_answers(&self) -> u64 {
        self.state.late_answers.load(Ordering::SeqCst)
    }

    /// Forwards nothing in either direction while connections stay open, or forwards again, beginning with
    /// everything that was held back.
    pub fn set_stalled(&self, stalled: bool) {
        self.state.stalled.send_replace(stalled);
    }

    /// Stalls when a statement arrives that begins with this text.
    pub fn stall_at(&self, text: &'static str) {
        *lock(&self.state.stalls_at) = Some(text);
    }

    /// Whether nothing is forwarded.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        *self.state.stalled.borrow()
    }

    /// Cuts and refuses all connections, or accepts them again.
    pub fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
        if down {
            self.state.falling.notify_waiters();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        self.set_down(true);
    }
}

impl ProxyState {
    /// Command for this commit.
    fn next_command(&self) -> Option<ProxyCommand> {
        let command = lock(&self.commands).pop_front()?;
        let ProxyCommand::Cut(CutPoint::During) = command else {
            return Some(command);
        };
        let even = self.halves.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        Some(ProxyCommand::Cut(if even {
            CutPoint::During
        } else {
            CutPoint::After
        }))
    }

    /// Starts a stall if this statement is the one that does.
    fn check_stall(&self, statement: &str) {
        let mut at = lock(&self.stalls_at);
        if at.is_some_and(|text| statement.starts_with(text)) {
            *at = None;
            self.stalled.send_replace(true);
        }
    }

    /// Waits until messages are forwarded.
    async fn until_flowing(&self) {
        // The sender is in this state, so it is there.
        let _ = self.stalled.subscribe().wait_for(|stalled| !stalled).await;
    }
}

/// State shared by both directions of one connection.
#[derive(Default)]
struct ConnectionEnds {
    /// Nothing is forwarded to the client any more; the connection ends with the response.
    swallow: AtomicBool,
    /// The next response belongs to a commit that was held.
    late: AtomicBool,
    over: Notify,
    answered: Notify,
}

async fn relay<D: Dialect>(client: TcpStream, server: TcpStream, state: &ProxyState) {
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let dialect = Mutex::new(D::fresh());
    let ends = ConnectionEnds::default();
    let falling = state.falling.notified();
    tokio::select! {
        _ = relay_client(client_reads, server_writes, &dialect, state, &ends) => {}
        _ = relay_server(server_reads, client_writes, &dialect, state, &ends) => {}
        () = ends.over.notified() => {}
        () = falling => {}
    }
}

async fn relay_client<D: Dialect>(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    dialect: &Mutex<D>,
    state: &ProxyState,
    ends: &ConnectionEnds,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        loop {
            let next = lock(dialect).client(&bytes);
            let Some(message) = next else {
                break;
            };
            let content: Vec<u8> = bytes.drain(..message.length).collect();
            if let Some(statement) = message.asks {
                state.check_stall(&statement);
                lock(&state.statements).push(statement);
            }
            state.until_flowing().await;
            let mut command = None;
            if message.commits {
                lock(&state.last_commit).clone_from(&content);
                command = state.next_command();
            }
            if !forward(&content, command, &mut to, ends).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Forwards a message according to its command; returns whether the connection is intact.
async fn forward(
    message: &[u8],
    command: Option<ProxyCommand>,
    to: &mut OwnedWriteHalf,
    ends: &ConnectionEnds,
) -> io::Result<bool> {
    match command {
        None => to.write_all(message).await?,
        Some(ProxyCommand::Hold(notify, wait)) => {
            let _ = notify.send(());
            let _ = wait.await;
            ends.late.store(true, Ordering::SeqCst);
            to.write_all(message).await?;
            // A client that has given up meanwhile must not end the commit.
            ends.answered.notified().await;
        }
        Some(ProxyCommand::Cut(CutPoint::Before)) => return Ok(false),
        Some(ProxyCommand::Cut(CutPoint::During)) => {
            to.write_all(&message[..message.len() / 2]).await?;
            return Ok(false);
        }
        Some(ProxyCommand::Cut(CutPoint::After)) => {
            ends.swallow.store(true, Ordering::SeqCst);
            to.write_all(message).await?;
        }
    }
    Ok(true)
}

async fn relay_server<D: Dialect>(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    dialect: &Mutex<D>,
    state: &ProxyState,
    ends: &ConnectionEnds,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while from.read_buf(&mut bytes).await? > 0 {
        loop {
            let next = lock(dialect).server(&bytes);
            let Some((length, ends_answer)) = next else {
                break;
            };
            let message: Vec<u8> = bytes.drain(..length).collect();
            state.until_flowing().await;
            if ends.late.swap(false, Ordering::SeqCst) {
                state.late_answers.fetch_add(1, Ordering::SeqCst);
                ends.answered.notify_one();
            }
            if !ends.swallow.load(Ordering::SeqCst) {
                to.write_all(&message).await?;
            } else if ends_answer {
                ends.over.notify_one();
            }
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
