//! Egress rules: at which addresses a broker may be. Enforced on the address that is connected to.
//!
//! Names are checked where they are resolved: `EgressResolver` removes the other addresses from the answer of the
//! system's resolver, and the connection uses what is left. There is no second look-up, so a name that changes between
//! two answers (DNS rebinding) gains nothing. Addresses in URLs are never resolved; `check_literal` checks them when the
//! connection is set up. Classes of addresses are in `address_class.rs`.

use super::address_class::AddressClass;
use super::host_lookup::{LookupLimitError, look_up};
use super::ip_network::IpNetwork;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Most addresses of one host that are tried: the server of its domain may list thousands.
const ADDRESSES_MAX: usize = 8;

/// Which addresses may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EgressPolicy {
    /// All.
    #[default]
    Anywhere,
    /// Public addresses, and those of these networks.
    PublicAnd(Vec<IpNetwork>),
}

impl EgressPolicy {
    /// Public addresses only.
    pub fn public_only() -> Self {
        Self::PublicAnd(Vec::new())
    }

    /// Whether an address may be connected to.
    ///
    /// A network that contains a metadata service of a cloud does not allow that service, because it gives away the
    /// credentials of this machine; it must be listed by its own address.
    pub fn allows(&self, address: IpAddr) -> bool {
        let networks = match self {
            Self::Anywhere => return true,
            Self::PublicAnd(networks) => networks,
        };
        // An IPv4-mapped address is another notation of the same address.
        let address = address.to_canonical();
        match AddressClass::of(address) {
            AddressClass::Public => true,
            AddressClass::CloudMetadata => networks.iter().any(|it| it.is_only(address)),
            AddressClass::Loopback
            | AddressClass::LinkLocal
            | AddressClass::Private
            | AddressClass::Unspecified
            | AddressClass::Multicast
            | AddressClass::Documentation
            | AddressClass::Benchmarking
            | AddressClass::Reserved => networks.iter().any(|it| it.contains(address)),
        }
    }
}

/// A host without an address that is allowed, or without any. The text names the host and none of its addresses, and does
/// not say which of the two it is: who may choose a host could else find out which names exist inside of a network.
#[derive(Debug, thiserror::Error)]
#[error(
    "{host} is not at an address that is allowed, or not known; use the name of a public address, or have its network allowed"
)]
pub(super) struct EgressError {
    host: String,
}

/// Refuses a URL whose host is an address that is not allowed. A name is checked when it is resolved.
pub(super) fn check_literal(url: &Url, policy: &EgressPolicy) -> Result<(), EgressError> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) if !policy.allows(address) => Err(refusal(host)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The system's resolver, without the addresses that are not allowed.
pub(super) struct EgressResolver(Arc<EgressPolicy>);

impl EgressResolver {
    pub(super) fn new(policy: EgressPolicy) -> Self {
        Self(Arc::new(policy))
    }
}

impl Resolve for EgressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str();
            // The connection replaces port 0 by that of the URL.
            let found = look_up(host).await;
            let allowed = reached_addresses(host, found, &policy)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The addresses to connect to. Under rules, a host that is not known fails as one that is not allowed; the cause is logged.
fn reached_addresses(
    host: &str,
    found: io::Result<Vec<SocketAddr>>,
    policy: &EgressPolicy,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let found = match (found, policy) {
        (Ok(found), _) => found,
        (Err(error), EgressPolicy::PublicAnd(_)) if !is_limit(&error) => {
            tracing::info!(server.address = host, %error, "a host was not found");
            return Err(refusal(host).into());
        }
        (Err(error), _) => return Err(error.into()),
    };
    let allowed = allowed_addresses(host, found.into_iter(), policy);
    if allowed.is_err() {
        tracing::info!(
            server.address = host,
            "a host has no address that is allowed"
        );
    }
    Ok(allowed?)
}

fn is_limit(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|it| it.is::<LookupLimitError>())
}

fn refusal(host: &str) -> EgressError {
    EgressError {
        host: host.to_owned(),
    }
}

/// The first addresses of a host that are allowed, in the same order.
fn allowed_addresses(
    host: &str,
    found: impl Iterator<Item = SocketAddr>,
    policy: &EgressPolicy,
) -> Result<Vec<SocketAddr>, EgressError> {
    let allowed = found.filter(|it| policy.allows(it.ip()));
    let allowed: Vec<SocketAddr> = allowed.take(ADDRESSES_MAX).collect();
    if allowed.is_empty() {
        return Err(refusal(host));
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::{
        ADDRESSES_MAX, EgressPolicy, LookupLimitError, allowed_addresses, check_literal,
        reached_addresses,
    };
    use reqwest::Url;
    use std::io;
    use std::net::SocketAddr;

    fn policy(networks: &[&str]) -> EgressPolicy {
        let networks = networks.iter().map(|it| it.parse().expect("a network"));
        EgressPolicy::PublicAnd(networks.collect())
    }

    #[test]
    fn addresses_are_allowed_by_being_public_or_by_their_network() {
        for (address, networks, allowed) in [
            ("1.1.1.1", vec![], true),
            ("2606:4700::1111", vec![], true),
            ("::ffff:1.1.1.1", vec![], true),
            ("127.0.0.1", vec![], false),
            ("127.0.0.1", vec!["127.0.0.0/8"], true),
            ("::ffff:127.0.0.1", vec!["127.0.0.0/8"], true),
            ("::1", vec!["127.0.0.0/8"], false),
            ("::1", vec!["10.0.0.0/8", "::1"], true),
            ("10.1.2.3", vec!["10.1.0.0/16"], true),
            ("10.2.2.3", vec!["10.1.0.0/16"], false),
            ("fd00::1", vec!["10.0.0.0/8"], false),
            ("fd00::1", vec!["fd00::/8"], true),
            // A gateway is another address than the one behind it.
            ("64:ff9b::10.1.2.3", vec!["10.0.0.0/8"], false),
            ("64:ff9b::10.1.2.3", vec!["64:ff9b::/96"], true),
            ("64:ff9b::1.1.1.1", vec![], true),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(
                policy(&networks).allows(parsed),
                allowed,
                "{address} {networks:?}"
            );
            assert!(EgressPolicy::Anywhere.allows(parsed));
        }
    }

    #[test]
    fn a_metadata_service_is_allowed_by_its_own_address_only() {
        for (address, network) in [
            ("169.254.169.254", "169.254.0.0/16"),
            ("100.100.100.200", "100.64.0.0/10"),
            ("fd00:ec2::254", "fd00::/8"),
        ] {
            let parsed = address.parse().expect("an address");
            assert!(!policy(&[]).allows(parsed), "{address}");
            assert!(
                !policy(&[network, "0.0.0.0/0", "::/0"]).allows(parsed),
                "{address}"
            );
            assert!(policy(&[address]).allows(parsed), "{address}");
        }
    }

    #[test]
    fn of_several_addresses_only_the_allowed_ones_are_used() {
        let found = [
            "10.0.0.1:0",
            "1.1.1.1:0",
            "[::1]:0",
            "[2606:4700::1111]:0",
            "127.0.0.1:0",
        ];
        let found: Vec<SocketAddr> = found.map(|it| it.parse().expect("an address")).to_vec();
        let kept = |networks: &[&str]| {
            allowed_addresses("host.example", found.iter().copied(), &policy(networks))
        };
        let kept_ones = kept(&[]).expect("public ones");
        assert_eq!(kept_ones, [found[1], found[3]]);
        let kept_ones = kept(&["10.0.0.0/8"]).expect("some");
        assert_eq!(kept_ones, [found[0], found[1], found[3]]);
    }

    #[test]
    fn of_many_addresses_only_the_first_are_used() {
        let found = (0..=255).map(|it| SocketAddr::from(([1, 1, 1, it], 0)));
        let found: Vec<SocketAddr> = found.collect();
        for policy in [EgressPolicy::Anywhere, policy(&[])] {
            let kept = allowed_addresses("host.example", found.iter().copied(), &policy);
            assert_eq!(kept.expect("public ones"), found[..ADDRESSES_MAX]);
        }
    }

    #[test]
    fn a_host_without_an_allowed_address_is_named_without_its_addresses() {
        let found = ["10.0.0.1:0", "[::1]:0"].map(|it| it.parse().expect("an address"));
        let refusal = allowed_addresses("host.example", found.into_iter(), &policy(&[]));
        let sentence = refusal.expect_err("none is allowed").to_string();
        assert!(sentence.contains("host.example"), "{sentence}");
        assert!(
            !sentence.contains("10.") && !sentence.contains("::1"),
            "{sentence}"
        );
    }

    #[test]
    fn a_host_that_is_not_known_fails_as_one_that_is_not_allowed() {
        let sentence = |found, policy: &EgressPolicy| {
            let refusal = reached_addresses("host.example", found, policy);
            refusal.expect_err("it fails").to_string()
        };
        let unknown = || Err(io::Error::other("no such host"));
        let internal = || Ok(vec!["10.0.0.1:0".parse().expect("an address")]);
        let no_place = || Err(io::Error::other(LookupLimitError));
        let rules = policy(&[]);
        assert_eq!(sentence(unknown(), &rules), sentence(internal(), &rules));
        assert_eq!(sentence(unknown(), &EgressPolicy::Anywhere), "no such host");
        let limit = LookupLimitError.to_string();
        assert_eq!(sentence(no_place(), &rules), limit, "it is no such cause");
    }

    /// The parser of URLs turns each of these spellings into an address.
    #[test]
    fn an_address_in_a_url_is_recognized_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "0",
            "0.0.0.0",
            "[::1]",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "169.254.169.254",
            "[fe80::1]",
            "10.0.0.1",
            "[fd00::1]",
        ] {
            let url = Url::parse(&format!("http://{host}:8080/cf")).expect("a URL");
            assert!(check_literal(&url, &policy(&[])).is_err(), "{host}: {url}");
            assert!(
                check_literal(&url, &EgressPolicy::Anywhere).is_ok(),
                "{host}"
            );
        }
        for host in [
            "1.1.1.1",
            "[2606:4700::1111]",
            "localhost",
            "127.0.0.1.example",
        ] {
            let url = Url::parse(&format!("http://{host}")).expect("a URL");
            assert!(check_literal(&url, &policy(&[])).is_ok(), "{host}: {url}");
        }
    }
}
