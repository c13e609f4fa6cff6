//! Classes of IP addresses, by the registries of special-purpose addresses (RFC 6890 and its successors). Pure.
//!
//! An IPv6 address that contains an IPv4 address has the class of the latter, because that is where the packets go.
//! What is not known to be public is not public. `egress.rs` decides what is allowed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kind of an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// On the internet.
    Public,
    /// This machine.
    Loopback,
    /// This network segment.
    LinkLocal,
    /// A private network: RFC 1918, shared addresses of carriers (RFC 6598), unique local addresses (RFC 4193).
    Private,
    /// No address, which some systems read as this machine.
    Unspecified,
    /// A group of machines, or all of a network.
    Multicast,
    /// For examples in texts.
    Documentation,
    /// For benchmarks of network devices.
    Benchmarking,
    /// A service that gives a cloud's machines their credentials.
    CloudMetadata,
    /// Reserved by the IETF, or not assigned.
    Reserved,
}

impl AddressClass {
    /// The class of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        // AWS, Azure, Google and others; tasks and pods of AWS; Alibaba; Azure's host agent (a public address); Oracle.
        [169, 254, 169, 254]
        | [169, 254, 170, 2 | 23]
        | [100, 100, 100, 200]
        | [168, 63, 129, 16]
        | [192, 0, 0, 192] => AddressClass::CloudMetadata,
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            AddressClass::Private
        }
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [198, 18..=19, ..] => AddressClass::Benchmarking,
        [224..=239, ..] | [255, 255, 255, 255] => AddressClass::Multicast,
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64 (RFC 6052), 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => of_v4(embedded(high, low)),
        // Teredo (RFC 4380): a server, and a client with inverted bits.
        [0x2001, 0, high, low, _, _, client_high, client_low] => match of_v4(embedded(high, low)) {
            AddressClass::Public => of_v4(embedded(!client_high, !client_low)),
            class => class,
        },
        // NAT64 for local use (RFC 8215).
        [0x64, 0xff9b, 1, ..] => AddressClass::Private,
        // AWS and its pods, Google.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254 | 0x23] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::CloudMetadata
        }
        // Unique local addresses, and the site-local ones before them.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        [0x2001, 2, 0, ..] => AddressClass::Benchmarking,
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::AddressClass::{
        self, Benchmarking, CloudMetadata, Documentation, LinkLocal, Loopback, Multicast, Private,
        Public, Reserved, Unspecified,
    };

    fn check(class: AddressClass, addresses: &str) {
        for address in addresses.split_whitespace() {
            let parsed = address.parse().expect("an address");
            assert_eq!(AddressClass::of(parsed), class, "{address}");
        }
    }

    /// First, last and neighbouring addresses of each network.
    #[test]
    fn ipv4_addresses_have_the_class_of_their_network() {
        check(
            Public,
            "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0",
        );
        check(
            Public,
            "126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0",
        );
        check(
            Public,
            "172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0",
        );
        check(
            Public,
            "192.0.1.0 192.0.3.0 198.17.255.255 198.20.0.0 223.255.255.255",
        );
        check(
            Public,
            "198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0",
        );
        check(Loopback, "127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255");
        check(LinkLocal, "169.254.0.0 169.254.169.253 169.254.255.255");
        check(Private, "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255");
        check(
            Private,
            "192.168.0.0 192.168.255.255 100.64.0.0 100.127.255.255",
        );
        check(Unspecified, "0.0.0.0 0.255.255.255");
        check(Multicast, "224.0.0.0 239.255.255.255 255.255.255.255");
        check(
            Documentation,
            "192.0.2.0 192.0.2.255 198.51.100.7 203.0.113.255",
        );
        check(Benchmarking, "198.18.0.0 198.19.255.255");
        check(
            CloudMetadata,
            "169.254.169.254 169.254.170.2 169.254.170.23",
        );
        check(CloudMetadata, "100.100.100.200 168.63.129.16 192.0.0.192");
        check(Reserved, "192.0.0.0 192.88.99.1 240.0.0.0 255.255.255.254");
    }

    #[test]
    fn ipv6_addresses_have_the_class_of_their_network() {
        check(
            Public,
            "2000:: 2606:4700::1111 2001:200:: 2001:db7:: 2001:db9::",
        );
        check(Public, "2a00::1 3ffe:ffff:: 3fff:1000:: 2003:: 3fff:ffff::");
        check(Loopback, "::1");
        check(Unspecified, "::");
        check(LinkLocal, "fe80:: fe80::1 febf:ffff::");
        check(Private, "fc00:: fd00::1 fdff:ffff:: fec0::1 feff::");
        check(Private, "64:ff9b:1:: 64:ff9b:1:ffff::1.1.1.1");
        check(Multicast, "ff00:: ff02::1 ffff::");
        check(
            Documentation,
            "2001:db8:: 2001:db8:ffff:: 3fff:: 3fff:fff::",
        );
        check(Benchmarking, "2001:2:: 2001:2:0:ffff::");
        check(CloudMetadata, "fd00:ec2::254 fd00:ec2::23 fd20:ce::254");
        check(
            Reserved,
            "2001:10:: 2001:20:: 2001:1ff:: 100::1 4000:: 1fff::",
        );
        check(Reserved, "5f00::1 64:ff9b:2:: ::1:0:0:1 0:0:0:0:1::1.1.1.1");
    }

    #[test]
    fn an_embedded_ipv4_address_decides() {
        for (inner, hex, inverted, class) in [
            ("127.0.0.1", "7f00:1", "80ff:fffe", Loopback),
            ("10.0.0.1", "a00:1", "f5ff:fffe", Private),
            ("192.168.1.1", "c0a8:101", "3f57:fefe", Private),
            ("100.64.0.1", "6440:1", "9bbf:fffe", Private),
            ("169.254.1.1", "a9fe:101", "5601:fefe", LinkLocal),
            ("169.254.169.254", "a9fe:a9fe", "5601:5601", CloudMetadata),
            ("0.0.0.7", "0:7", "ffff:fff8", Unspecified),
            ("203.0.113.1", "cb00:7101", "34ff:8efe", Documentation),
            ("198.18.0.1", "c612:1", "39ed:fffe", Benchmarking),
            ("224.0.0.1", "e000:1", "1fff:fffe", Multicast),
            ("8.8.8.8", "808:808", "f7f7:f7f7", Public),
        ] {
            let mapped = format!("::ffff:{inner}");
            let compatible = format!("::{inner}");
            let translated = format!("::ffff:0:{inner}");
            let nat64 = format!("64:ff9b::{inner}");
            let six_to_four = format!("2002:{hex}::1");
            let teredo_server = format!("2001:0:{hex}::f7f7:f7f7");
            let teredo_client = format!("2001:0:808:808::{inverted}");
            check(
                class,
                &[mapped, compatible, translated, nat64, six_to_four].join(" "),
            );
            check(class, &[teredo_server, teredo_client].join(" "));
        }
    }
}
