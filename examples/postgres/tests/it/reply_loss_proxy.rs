//! A proxy between the broker and its server that can drop one reply.
//!
//! The server has then executed the statement, and the broker does not know it: the worst moment to die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

const CHUNK_BYTES: usize = 16 * 1024;
/// First bytes of messages with a statement: a query, or the first part of one.
const STATEMENT_TAGS: [u8; 2] = [b'Q', b'P'];

#[derive(Default)]
pub(crate) struct ReplyLossProxy {
    statements: AtomicUsize,
    /// Number of the statement whose reply is dropped; 0: none.
    drop_at: AtomicUsize,
    dropped: AtomicBool,
}

impl ReplyLossProxy {
    /// Starts a proxy of a server; returns it with its address.
    pub(crate) async fn to(server: String) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let proxy = Arc::new(Self::default());
        let shared = proxy.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&server).await else {
                    continue;
                };
                shared.clone().join(near, far);
            }
        });
        (proxy, address)
    }

    /// Drops the reply to the n-th statement from now on.
    pub(crate) fn drop_reply(&self, n: usize) {
        self.statements.store(0, Ordering::SeqCst);
        self.dropped.store(false, Ordering::SeqCst);
        self.drop_at.store(n, Ordering::SeqCst);
    }

    /// Whether a reply was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }

    fn join(self: Arc<Self>, near: TcpStream, far: TcpStream) {
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = far.into_split();
        let mute = Arc::new(AtomicBool::new(false));
        tokio::spawn(self.forward_requests(near_read, far_write, mute.clone()));
        tokio::spawn(forward_replies(far_read, near_write, mute));
    }

    async fn forward_requests(
        self: Arc<Self>,
        mut near: OwnedReadHalf,
        mut far: OwnedWriteHalf,
        mute: Arc<AtomicBool>,
    ) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length @ 1..) = near.read(&mut chunk).await {
            if STATEMENT_TAGS.contains(&chunk[0]) {
                let nth = self.statements.fetch_add(1, Ordering::SeqCst) + 1;
                if nth == self.drop_at.load(Ordering::SeqCst) {
                    mute.store(true, Ordering::SeqCst);
                }
            }
            if far.write_all(&chunk[..length]).await.is_err() {
                return;
            }
            if mute.load(Ordering::SeqCst) {
                self.dropped.store(true, Ordering::SeqCst);
            }
        }
    }
}

async fn forward_replies(mut far: OwnedReadHalf, mut near: OwnedWriteHalf, mute: Arc<AtomicBool>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(length @ 1..) = far.read(&mut chunk).await {
        let forwards = !mute.load(Ordering::SeqCst);
        if forwards && near.write_all(&chunk[..length]).await.is_err() {
            return;
        }
    }
}
