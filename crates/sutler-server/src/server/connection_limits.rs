//! Counts connections, in total and per client address, against their limits.

use super::limits::Limits;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open connections of one listener.
#[derive(Default)]
pub(super) struct ConnectionLimits(Mutex<ConnectionCounts>);

#[derive(Default)]
struct ConnectionCounts {
    all: usize,
    by_peer: HashMap<IpAddr, usize>,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionLimitExceeded {
    Total,
    PerPeer,
}

/// One open connection, uncounted when dropped.
pub(super) struct ConnectionPermit {
    peers: Arc<ConnectionLimits>,
    peer: IpAddr,
}

impl ConnectionLimits {
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        limits: &Limits,
    ) -> Result<ConnectionPermit, ConnectionLimitExceeded> {
        let peer = network_of(peer);
        let mut counts = self.counts();
        if counts.all >= limits.connections_max {
            return Err(ConnectionLimitExceeded::Total);
        }
        let of_peer = counts.by_peer.entry(peer).or_default();
        if *of_peer >= limits.connections_per_peer {
            return Err(ConnectionLimitExceeded::PerPeer);
        }
        *of_peer += 1;
        counts.all += 1;
        let peers = self.clone();
        Ok(ConnectionPermit { peers, peer })
    }

    fn counts(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut counts = self.peers.counts();
        counts.all -= 1;
        if let Some(left) = counts.by_peer.get_mut(&self.peer) {
            *left -= 1;
            if *left == 0 {
                counts.by_peer.remove(&self.peer);
            }
        }
    }
}

/// A client with one IPv6 address usually controls the whole /64 network, so that is what is counted.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionLimitExceeded, ConnectionLimits};
    use crate::server::limits::Limits;
    use std::net::IpAddr;
    use std::sync::Arc;

    fn limits(all: usize, per_peer: usize) -> Limits {
        Limits {
            connections_max: all,
            connections_per_peer: per_peer,
            ..Limits::default()
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_every_connection() {
        let (peers, limits) = (Arc::new(ConnectionLimits::default()), limits(3, 2));
        let held: Vec<_> = (0..2)
            .map(|_| peers.admit(ip("10.0.0.1"), &limits))
            .collect();
        assert!(held.iter().all(Result::is_ok));
        let third = peers.admit(ip("10.0.0.1"), &limits).err();
        assert_eq!(third, Some(ConnectionLimitExceeded::PerPeer));
        let other = peers.admit(ip("10.0.0.2"), &limits);
        assert!(other.is_ok());
        let beyond = peers.admit(ip("10.0.0.3"), &limits).err();
        assert_eq!(beyond, Some(ConnectionLimitExceeded::Total));
        drop(held);
        assert!(peers.admit(ip("10.0.0.1"), &limits).is_ok());
        drop(other);
        assert!(peers.counts().by_peer.is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let (peers, limits) = (Arc::new(ConnectionLimits::default()), limits(10, 1));
        let _first = peers.admit(ip("2001:db8::1"), &limits);
        assert!(peers.admit(ip("2001:db8::2"), &limits).is_err());
        assert!(peers.admit(ip("2001:db8:0:1::1"), &limits).is_ok());
    }
}
