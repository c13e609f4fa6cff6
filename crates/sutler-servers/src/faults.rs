//! Faults that a replica of a store must survive, one kind after the other.
//!
//! For tests that keep a store under load meanwhile. Seeded plans over several brokers are in `tools/crash`.

use crate::{CutPoint, Proxy, Server};
use std::time::Duration;

/// Injects a fault into the connections of this proxy or into the server, waits, and repairs it. The kind of fault
/// is `n` modulo 6.
pub async fn inject_fault(n: usize, proxy: &Proxy, server: &Server) {
    match n % 6 {
        0 => proxy.cut(CutPoint::Before),
        1 => proxy.cut(CutPoint::During),
        2 => proxy.cut(CutPoint::After),
        3 => proxy.set_down(true),
        4 => {
            server.kill();
            server.start();
        }
        _ => server.freeze(),
    }
    pause_until_it_hurts().await;
    match n % 6 {
        3 => proxy.set_down(false),
        5 => server.thaw(),
        _ => {}
    }
}

async fn pause_until_it_hurts() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}
