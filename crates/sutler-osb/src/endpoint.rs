//! Network endpoints of a binding (B-195): a host, its ports, a protocol.
//!
//! Checks the form of ports; does not check that a host exists.

use crate::non_empty_text::NonEmptyText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A network endpoint that an application must be able to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// A name or one address.
    pub host: NonEmptyText,
    /// At least one port or range.
    pub ports: Ports,
    /// Protocol; defaults to `tcp`.
    #[serde(default)]
    pub protocol: Protocol,
}

/// The protocol of an [`Endpoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP only.
    #[default]
    Tcp,
    /// UDP only.
    Udp,
    /// Both.
    All,
}

/// The ports of an endpoint; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<PortRange>", into = "Vec<PortRange>")]
pub struct Ports(Vec<PortRange>);

impl Ports {
    /// The ports, in their original order.
    pub fn as_slice(&self) -> &[PortRange] {
        &self.0
    }
}

impl TryFrom<Vec<PortRange>> for Ports {
    type Error = PortsError;
    fn try_from(ports: Vec<PortRange>) -> Result<Self, PortsError> {
        if ports.is_empty() {
            Err(PortsError::Empty)
        } else {
            Ok(Self(ports))
        }
    }
}

impl From<Ports> for Vec<PortRange> {
    fn from(ports: Ports) -> Self {
        ports.0
    }
}

/// One port, or all from the first to the last: `443` or `9000-9010`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// A text that is not a port range, or a list that is not a list of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortsError {
    /// The list is empty.
    #[error("must have at least one port")]
    Empty,
    /// Not a number, not two numbers, or out of range.
    #[error("must be a port such as 443 or a range such as 9000-9010, from 1 to 65535")]
    NoPort,
    /// The range ends before it begins.
    #[error("must be a range that does not end before it begins")]
    Backwards,
}

impl PortRange {
    /// A range; for a single port, pass it twice.
    pub fn new(first: u16, last: u16) -> Result<Self, PortsError> {
        match (first, last) {
            (0, _) => Err(PortsError::NoPort),
            (first, last) if last < first => Err(PortsError::Backwards),
            (first, last) => Ok(Self { first, last }),
        }
    }

    /// The first port.
    pub fn first(self) -> u16 {
        self.first
    }

    /// The last port, which may be the first.
    pub fn last(self) -> u16 {
        self.last
    }
}

impl FromStr for PortRange {
    type Err = PortsError;
    fn from_str(text: &str) -> Result<Self, PortsError> {
        match text.split_once('-') {
            Some((first, last)) => Self::new(port(first)?, port(last)?),
            None => Self::new(port(text)?, port(text)?),
        }
    }
}

impl TryFrom<String> for PortRange {
    type Error = PortsError;
    fn try_from(text: String) -> Result<Self, PortsError> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

fn port(text: &str) -> Result<u16, PortsError> {
    // `parse` alone would accept a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(PortsError::NoPort);
    }
    text.parse().map_err(|_| PortsError::NoPort)
}
