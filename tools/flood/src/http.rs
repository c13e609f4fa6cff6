//! Requests as bytes, and connections from several addresses of this machine.
//!
//! Responses are read by [`sutler_servers::http::HttpConnection`].

use crate::broker::{PASSWORD, PLAN, SERVICE};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpSocket, TcpStream};

/// A request of a user, with a body if there is one.
pub(crate) fn request(user: &str, line: &str, body: &str) -> String {
    let basic = STANDARD.encode(format!("{user}:{PASSWORD}"));
    let body_headers = if body.is_empty() {
        String::new()
    } else {
        format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )
    };
    format!(
        "{line} HTTP/1.1\r\nHost: flood\r\nAuthorization: Basic {basic}\r\n\
         X-Broker-API-Version: 2.17\r\n{body_headers}\r\n{body}"
    )
}

/// A synchronous provision.
pub(crate) fn provision(user: &str, id: &str) -> String {
    let body = serde_json::json!({
        "service_id": SERVICE, "plan_id": PLAN, "organization_guid": "o", "space_guid": "s",
    });
    let line = format!("PUT /v2/service_instances/{id}");
    request(user, &line, &body.to_string())
}

/// Opens a connection from an address of this machine.
pub(crate) async fn connect(to: SocketAddr, from: u8) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 0, 0, from), 0).into())?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
