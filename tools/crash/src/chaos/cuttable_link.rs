//! The connection of one replica to its database, which can be cut. Knows bytes and no protocol, so it serves
//! every store; controlled from outside.

use super::fault_plan::LinkCut;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Maximum bytes forwarded at a time.
const CHUNK: usize = 16 * 1024;

/// A link. Closed when dropped.
#[derive(Debug)]
pub(super) struct CuttableLink {
    port: u16,
    cut: watch::Sender<Option<LinkCut>>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkDirection {
    Server,
    Client,
}

impl CuttableLink {
    pub(super) async fn to(server: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (cut, state) = watch::channel(None);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *state.borrow() != Some(LinkCut::Off) {
                    tokio::spawn(carry(client, server, state.clone()));
                }
            }
        });
        Ok(Self { port, cut, task })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the link in this way, or repairs it.
    pub(super) fn set(&self, cut: Option<LinkCut>) {
        self.cut.send_replace(cut);
    }
}

impl Drop for CuttableLink {
    fn drop(&mut self) {
        self.task.abort();
        self.set(Some(LinkCut::Off));
    }
}

async fn carry(client: TcpStream, server: SocketAddr, state: watch::Receiver<Option<LinkCut>>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    for end in [&client, &server] {
        // A cut connection is reset, not closed.
        let _ = end.set_nodelay(true);
        let _ = end.set_zero_linger();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        _ = pass(from_client, to_server, state.clone(), LinkDirection::Server) => {}
        _ = pass(from_server, to_client, state, LinkDirection::Client) => {}
    }
}

/// Forwards bytes until the connection ends or is cut.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<Option<LinkCut>>,
    towards: LinkDirection,
) -> Option<()> {
    let mut bytes = vec![0; CHUNK];
    loop {
        let count = tokio::select! {
            count = from.read(&mut bytes) => count.ok().filter(|count| *count > 0)?,
            changed = state.changed() => {
                changed.ok()?;
                if *state.borrow() == Some(LinkCut::Off) {
                    return None;
                }
                continue;
            }
        };
        let now = state.wait_for(|cut| *cut != Some(LinkCut::Silence)).await;
        let now = *now.ok()?;
        match (now, towards) {
            (Some(LinkCut::Off), _) | (Some(LinkCut::Answers), LinkDirection::Client) => {
                return None;
            }
            (Some(LinkCut::Requests), LinkDirection::Server) => {
                to.write_all(&bytes[..count / 2]).await.ok()?;
                return None;
            }
            (None | Some(LinkCut::Silence | LinkCut::Answers | LinkCut::Requests), _) => {
                to.write_all(&bytes[..count]).await.ok()?;
            }
        }
    }
}
