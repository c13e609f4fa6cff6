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
    /// Answers to transactions that were kept.
    late_answers: AtomicUsize,
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

    /// How many answers there were to transactions that had been kept.
    pub(crate) fn late_answers(&self) -> usize {
        self.orders.late_answers.load(Ordering::SeqCst)
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

    /// Remembers the body of a transaction.
    fn note(&self, request: &[u8]) {
        let head = request.windows(4).position(|it| it == b"\r\n\r\n");
        let body = request[head.expect("a head") + 4..].to_vec();
        *self.last_txn.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }

    fn pop(&self) -> Option<Order> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    }
}

/// What both directions of a connection know.
#[derive(Default)]
struct Line {
    /// The next answer is not to arrive.
    mute: AtomicBool,
    /// The next answer is one to a transaction that was kept.
    late: AtomicBool,
    answered: Notify,
}

/// Serves one connection to its end.
async fn connection(client: TcpStream, upstream: TcpStream, orders: &Orders) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_upstream, mut to_upstream) = upstream.into_split();
    let line = Line::default();
    let back = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_upstream.read(&mut buffer).await {
            if line.late.swap(false, Ordering::SeqCst) {
                orders.late_answers.fetch_add(1, Ordering::SeqCst);
                line.answered.notify_one();
            }
            if line.mute.load(Ordering::SeqCst) {
                line.answered.notify_one();
                std::future::pending::<()>().await;
            }
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let forth = async {
        let mut read = Vec::new();
        while let Some(request) = request(&mut from_client, &mut read).await {
            if !request.starts_with(b"POST /v3/watch ") {
                orders.requests.fetch_add(1, Ordering::SeqCst);
            }
            let mut order = None;
            if request.starts_with(b"POST /v3/kv/txn ") {
                orders.note(&request);
                order = orders.pop();
            }
            if !pass_on(&request, order, &mut to_upstream, (orders, &line)).await {
                return;
            }
        }
    };
    tokio::select! {
        () = forth => {}
        () = back => {}
    }
}

/// Passes a request on as ordered; whether the connection is still whole.
async fn pass_on(
    request: &[u8],
    order: Option<Order>,
    upstream: &mut OwnedWriteHalf,
    (orders, line): (&Orders, &Line),
) -> bool {
    match order {
        None => upstream.write_all(request).await.is_ok(),
        Some(Order::Hold(tell, wait)) => {
            let _ = tell.send(());
            let _ = wait.await;
            line.late.store(true, Ordering::SeqCst);
            let sent = upstream.write_all(request).await.is_ok();
            line.answered.notified().await;
            sent
        }
        Some(Order::Cut(Cut::BeforeCommit)) => false,
        Some(Order::Cut(Cut::DuringCommit)) => {
            // Of those cut in the middle, every other one arrives.
            let half = orders
                .halves
                .fetch_add(1, Ordering::SeqCst)
                .is_multiple_of(2);
            let part = if half {
                request.len() / 2
            } else {
                request.len()
            };
            let _ = upstream.write_all(&request[..part]).await;
            false
        }
        Some(Order::Cut(Cut::AfterCommit)) => {
            line.mute.store(true, Ordering::SeqCst);
            let _ = upstream.write_all(request).await;
            line.answered.notified().await;
            false
        }
    }
}

/// The next whole request.
async fn request(from: &mut OwnedReadHalf, read: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(length) = length_of(read)
            && read.len() >= length
        {
            let rest = read.split_off(length);
            return Some(std::mem::replace(read, rest));
        }
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
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
