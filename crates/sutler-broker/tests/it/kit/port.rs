//! A broker behind a real port, in this process, with settings and TLS as a test wants them.

use super::script::Script;
use super::{PATIENCE, catalog_of, fixture};
use std::net::SocketAddr;
use std::sync::Arc;
use sutler_broker::{Broker, Running};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A broker at work on a free port.
pub(crate) struct Port {
    pub running: Running,
    pub script: Arc<Script>,
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Port {
    /// Starts one with everything in memory.
    pub(crate) async fn open(set_up: impl FnOnce(Broker) -> Broker) -> Self {
        let script = Arc::new(Script::default());
        let catalog = catalog_of(fixture::catalog());
        let ids: Vec<String> = catalog
            .services()
            .iter()
            .map(|it| it.id.as_str().to_owned())
            .collect();
        let broker = Broker::new(catalog)
            .basic_auth("user", "s3cret")
            .in_memory();
        let broker = ids.iter().fold(broker, |broker, id| {
            broker.untyped_service(id, script.clone())
        });
        let running = set_up(broker).start().await.expect("the broker starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let served = running.clone();
        let serving = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            served.serve(listener, stopped).await;
        });
        Self {
            running,
            script,
            address,
            stop,
            serving,
        }
    }

    /// A bare connection.
    pub(crate) async fn connect(&self) -> TcpStream {
        let connected = TcpStream::connect(self.address).await;
        connected.expect("the server accepts")
    }

    /// Sends bytes on a fresh connection and reads until the server closes it.
    pub(crate) async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may have heard enough, and close before all is sent.
        let _ = stream.write_all(bytes).await;
        read_to_end(&mut stream).await
    }

    /// Stops the server, which must end in order.
    pub(crate) async fn close(self) {
        self.script.open_all();
        self.stop.send(()).expect("the server still runs");
        let ended = tokio::time::timeout(PATIENCE, self.serving).await;
        ended.expect("the server ends").expect("without a panic");
    }
}

/// All that comes until the other side closes the connection.
pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    // A reset is an end, too.
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}
