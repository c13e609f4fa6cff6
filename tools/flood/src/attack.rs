//! The attackers: idle connections, slow headers and bodies, and one flooding user.
//!
//! Each attacker opens its connections, reports that on its standard output, and continues until it is
//! killed or its time is over. A connection that the server closes is opened again.

use crate::ToolResult;
use crate::broker::GREEDY;
use crate::http::{connect, provision, request};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sutler_servers::http::HttpConnection;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Maximum lifetime of an attacker, even if its parent dies.
const LIFE_MAX: Duration = Duration::from_secs(300);
/// Maximum connections from one address: fewer than the broker allows.
const PER_ADDRESS: usize = 900;
/// Pause between the bytes of a slow sender.
const TRICKLE: Duration = Duration::from_secs(1);
/// Pause before a connection is opened again.
const AGAIN: Duration = Duration::from_millis(200);
/// Connections opened concurrently.
const OPENING: usize = 200;

/// Kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Connections that send one request and then stay open.
    Held,
    /// Headers, a byte a second.
    SlowHeaders,
    /// Bodies, a byte a second, by one user.
    SlowBodies,
    /// As many requests as one user can send.
    Flood,
}

/// An attack.
#[derive(Args)]
pub(crate) struct AttackArgs {
    #[arg(long)]
    kind: Kind,
    #[arg(long)]
    to: SocketAddr,
    /// Number of connections.
    #[arg(long)]
    count: usize,
}

pub(crate) async fn run(args: AttackArgs) -> ToolResult {
    if !args.to.ip().is_loopback() {
        return Err("only this machine is attacked: give an address of 127.0.0.1".into());
    }
    let opened = Arc::new(AtomicUsize::new(0));
    let opening = Arc::new(tokio::sync::Semaphore::new(OPENING));
    for n in 0..args.count {
        let (kind, to) = (args.kind, args.to);
        let (opened, opening) = (opened.clone(), opening.clone());
        tokio::spawn(async move {
            let from = u8::try_from(2 + n / PER_ADDRESS).unwrap_or(u8::MAX);
            let mut first = true;
            loop {
                let permit = opening.acquire().await;
                let connected = connect(to, from).await;
                drop(permit);
                if let Ok(stream) = connected {
                    if std::mem::take(&mut first) {
                        opened.fetch_add(1, Ordering::SeqCst);
                    }
                    let _ = attack(kind, stream, n).await;
                }
                sleep(AGAIN).await;
            }
        });
    }
    let all_open = async {
        while opened.load(Ordering::SeqCst) < args.count {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(60), all_open).await.is_ok();
    let open = opened.load(Ordering::SeqCst);
    crate::process::print_line(if in_time { "open" } else { "not all open" });
    if !in_time {
        return Err(format!("only {open} of {} connections could be opened", args.count).into());
    }
    sleep(LIFE_MAX).await;
    Ok(())
}

async fn attack(kind: Kind, mut stream: TcpStream, n: usize) -> std::io::Result<()> {
    match kind {
        Kind::Held => {
            let mut connection = HttpConnection::new(stream)?;
            let request = request(GREEDY, "GET /v2/nowhere", "");
            connection.send(request.as_bytes()).await?;
            // Returns when the server closes the connection.
            connection.into_stream().read_u8().await.map(|_| ())
        }
        Kind::SlowHeaders => trickle(&mut stream, &request(GREEDY, "GET /v2/catalog", "")).await,
        Kind::SlowBodies => {
            let whole = provision(GREEDY, &format!("slow-{n}"));
            let (head, body) = whole.split_at(whole.find("\r\n\r\n").unwrap_or(0) + 4);
            stream.write_all(head.as_bytes()).await?;
            trickle(&mut stream, body).await
        }
        Kind::Flood => {
            let mut connection = HttpConnection::new(stream)?;
            for round in 0_u64.. {
                let request = match round % 4 {
                    0 => provision(GREEDY, &format!("flood-{n}-{round}")),
                    1 => request(GREEDY, &format!("GET /v2/service_instances/flood-{n}"), ""),
                    _ => request(GREEDY, "GET /v2/catalog", ""),
                };
                connection.send(request.as_bytes()).await?;
            }
            Ok(())
        }
    }
}

async fn trickle(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    for byte in text.as_bytes() {
        stream.write_all(&[*byte]).await?;
        sleep(TRICKLE).await;
    }
    Ok(())
}
