//! Stands between a store and etcd: counts requests, and breaks or holds transactions on order.
//!
//! It understands just enough of HTTP to know where a request ends. Cuts happen under the next
//! transaction, at the point that was ordered; everything else goes through.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::conformance::Cut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A proxy in front of one server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    orders: Arc<Orders>,
    accepting: JoinHandle<()>,
}

/// What is to be done, and what was seen.
#[derive(Default)]
struct Orders {
    queue: Mutex<VecDeque<Order>>,
    halves: AtomicUsize,
    requests: AtomicUsize,
    last_txn: Mutex<Vec<u8>>,
    /// Everything is refused.
    shut: AtomicBool,
    cut_all: Notify,
}

enum Order {
    Cut(Cut),
    /// Tell when the transaction is here, and keep it until told.
    Hold(oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// A transaction that is kept.
pub(crate) struct Held {
    pub(crate) arrived: oneshot::Receiver<()>,
    pub(crate) go: oneshot::Sender<()>,
}

impl Proxy {
    /// A proxy in front of a server.
    pub(crate) async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let orders = Arc::new(Orders::default());
        let shared = Arc::clone(&orders);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, orders) = (server.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    if orders.shut.load(Ordering::SeqCst) {
                        return;
                    }
                    let upstream = TcpStream::connect(server).await;
                    if let Ok(upstream) = upstream {
                        tokio::select! {
                            () = connection(client, upstream, &orders) => {}
                            () = orders.cut_all.notified() => {}
                        }
                    }
                });
            }
        });
        Self {
            address,
            orders,
            accepting,
        }
    }

    /// Breaks the connection under the next transaction.
    pub(crate) fn cut(&self, cut: Cut) {
        self.orders.push(Order::Cut(cut));
    }

    /// Keeps the next transaction.
    pub(crate) fn hold(&self) -> Held {
        let ((tell, arrived), (go, wait)) = (oneshot::channel(), oneshot::channel());
        self.orders.push(Order::Hold(tell, wait));
        Held { arrived, go }
    }

    /// Cuts every connection and takes no new ones, or takes them again.
    pub(crate) fn shut(&self, shut: bool) {
        self.orders.shut.store(shut, Ordering::SeqCst);
        if shut {
            self.orders.cut_all.notify_waiters();
        }
    }

    /// How many requests went through so far, watches not counted.
    pub(crate) fn requests(&self) -> usize {
        self.orders.requests.load(Ordering::SeqCst)
    }

    /// The body of the last transaction.
    pub(crate) fn last_txn(&self) -> serde_json::Value {
        let last = self.orders.last_txn.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        serde_json::from_slice(&last).expect("a transaction")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Orders {
    fn push(&self, order: Order) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(order);
    }

    fn pop(&self) -> Option<Order> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    }
}

/// Serves one connection to its end.
async fn connection(client: TcpStream, upstream: TcpStream, orders: &Orders) {
    let (mut from_client, to_client) = client.into_split();
    let (from_upstream, mut to_upstream) = upstream.into_split();
    let mute = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(Notify::new());
    let back = back(
        from_upstream,
        to_client,
        Arc::clone(&mute),
        Arc::clone(&answered),
    );
    let forth = async {
        let mut read = Vec::new();
        while let Some((request, is_txn)) = request(&mut from_client, &mut read).await {
            if !is_watch(&request) {
                orders.requests.fetch_add(1, Ordering::SeqCst);
            }
            let order = if is_txn { orders.pop() } else { None };
            if is_txn {
                let body = request.windows(4).position(|it| it == b"\r\n\r\n");
                let body = request[body.expect("a head") + 4..].to_vec();
                *orders
                    .last_txn
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = body;
            }
            match order {
                None => {}
                Some(Order::Hold(tell, wait)) => {
                    let _ = tell.send(());
                    let _ = wait.await;
                }
                Some(Order::Cut(Cut::BeforeCommit)) => return,
                Some(Order::Cut(Cut::DuringCommit)) => {
                    let n = orders.halves.fetch_add(1, Ordering::SeqCst);
                    let part = if n.is_multiple_of(2) {
                        request.len() / 2
                    } else {
                        request.len()
                    };
                    let _ = to_upstream.write_all(&request[..part]).await;
                    return;
                }
                Some(Order::Cut(Cut::AfterCommit)) => {
                    mute.store(true, Ordering::SeqCst);
                    let _ = to_upstream.write_all(&request).await;
                    answered.notified().await;
                    return;
                }
            }
            if to_upstream.write_all(&request).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}

/// Passes answers back, unless they are not to arrive.
async fn back(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mute: Arc<AtomicBool>,
    answered: Arc<Notify>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if mute.load(Ordering::SeqCst) {
            answered.notify_one();
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// The next whole request, and whether it is a transaction.
async fn request(from: &mut OwnedReadHalf, read: &mut Vec<u8>) -> Option<(Vec<u8>, bool)> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(length) = length_of(read)
            && read.len() >= length
        {
            let rest = read.split_off(length);
            let request = std::mem::replace(read, rest);
            let is_txn = request.starts_with(b"POST /v3/kv/txn ");
            return Some((request, is_txn));
        }
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
}

fn is_watch(request: &[u8]) -> bool {
    request.starts_with(b"POST /v3/watch ")
}

/// How long the request is that begins here, if its head is all there.
fn length_of(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|it| it == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |it| it.trim().parse().expect("a length"));
    Some(head + 4 + length)
}
