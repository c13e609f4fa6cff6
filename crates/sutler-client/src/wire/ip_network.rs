//! A network of IP addresses, such as `10.0.0.0/8`. Data and parsing only; `egress.rs` uses it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IpNetwork {
    /// The lowest address.
    first: IpAddr,
    /// Count of leading bits that all its addresses share.
    prefix: u8,
}

/// A text that is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpNetworkError {
    /// It has another form.
    #[error("a network is an address, or an address and a length, such as 10.0.0.0/8 or fd00::/8")]
    NotANetwork,
    /// It is an address inside of a network.
    #[error(
        "a network begins with its lowest address, such as 10.0.0.0/8; for one address leave out the length"
    )]
    NotTheLowestAddress,
    /// It is an IPv4 network in the notation of IPv6, whose addresses are compared as IPv4.
    #[error("write an IPv4 network as IPv4, such as 10.0.0.0/8")]
    MappedIpv4,
}

impl IpNetwork {
    /// Whether an address belongs to it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let prefix = u32::from(self.prefix);
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.checked_shr(32 - prefix).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differing = first.to_bits() ^ address.to_bits();
                differing.checked_shr(128 - prefix).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Whether it is this address and no other.
    pub fn is_only(&self, address: IpAddr) -> bool {
        self.first == address && self.prefix == bits(address)
    }
}

fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    fn from_str(text: &str) -> Result<Self, IpNetworkError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| IpNetworkError::NotANetwork)?;
        let prefix = match length {
            None => bits(first),
            Some(length) if length.bytes().all(|it| it.is_ascii_digit()) => {
                let prefix = length.parse().ok().filter(|it| *it <= bits(first));
                prefix.ok_or(IpNetworkError::NotANetwork)?
            }
            Some(_) => return Err(IpNetworkError::NotANetwork),
        };
        let rest = match first {
            IpAddr::V4(first) => first.to_bits().checked_shl(prefix.into()).unwrap_or(0) != 0,
            IpAddr::V6(first) => first.to_bits().checked_shl(prefix.into()).unwrap_or(0) != 0,
        };
        if rest {
            return Err(IpNetworkError::NotTheLowestAddress);
        }
        if first.to_canonical() != first {
            return Err(IpNetworkError::MappedIpv4);
        }
        Ok(Self { first, prefix })
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl TryFrom<String> for IpNetwork {
    type Error = IpNetworkError;

    fn try_from(text: String) -> Result<Self, IpNetworkError> {
        text.parse()
    }
}

impl From<IpNetwork> for String {
    fn from(network: IpNetwork) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{IpNetwork, IpNetworkError};

    #[test]
    fn a_network_contains_what_shares_its_first_bits() {
        for (network, inside, outside) in [
            (
                "10.0.0.0/8",
                vec!["10.0.0.0", "10.255.255.255"],
                vec!["11.0.0.0", "9.255.255.255"],
            ),
            (
                "10.1.2.0/23",
                vec!["10.1.2.0", "10.1.3.255"],
                vec!["10.1.1.255", "10.1.4.0"],
            ),
            (
                "127.0.0.1",
                vec!["127.0.0.1"],
                vec!["127.0.0.2", "::1", "::ffff:127.0.0.1"],
            ),
            ("0.0.0.0/0", vec!["0.0.0.0", "255.255.255.255"], vec!["::"]),
            (
                "fd00::/8",
                vec!["fd00::", "fdff::1"],
                vec!["fc00::", "fe00::", "253.0.0.1"],
            ),
            ("::1", vec!["::1"], vec!["::", "::2", "0.0.0.1"]),
            ("::/0", vec!["::", "ffff::"], vec!["1.1.1.1"]),
        ] {
            let network: IpNetwork = network.parse().expect("a network");
            let contains = |it: &&str| network.contains(it.parse().expect("an address"));
            assert!(inside.iter().all(contains), "{network}");
            assert!(!outside.iter().any(contains), "{network}");
            assert_eq!(network.to_string().parse(), Ok(network));
        }
    }

    #[test]
    fn only_a_network_of_full_length_is_one_address() {
        let is_only = |network: &str| {
            let network: IpNetwork = network.parse().expect("a network");
            network.is_only("10.0.0.0".parse().expect("an address"))
        };
        assert!(is_only("10.0.0.0") && is_only("10.0.0.0/32"));
        assert!(!is_only("10.0.0.0/31") && !is_only("10.0.0.1"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10/8",
            "fd00::/129",
            "localhost",
        ] {
            assert_eq!(
                text.parse::<IpNetwork>(),
                Err(IpNetworkError::NotANetwork),
                "{text}"
            );
        }
        for text in [
            "10.0.0.0/+8",
            "10.0.0.0/ 8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "10.0.0.0/999",
        ] {
            assert_eq!(
                text.parse::<IpNetwork>(),
                Err(IpNetworkError::NotANetwork),
                "{text}"
            );
        }
        for text in ["10.0.0.1/8", "fd00::1/8", "1.0.0.0/0", "::1/127"] {
            let refusal = Err(IpNetworkError::NotTheLowestAddress);
            assert_eq!(text.parse::<IpNetwork>(), refusal, "{text}");
        }
        let refusal = Err(IpNetworkError::MappedIpv4);
        assert_eq!("::ffff:10.0.0.0/104".parse::<IpNetwork>(), refusal);
    }
}
