//! Which address of a machine others are told: the first that one of a list of wishes finds.
//!
//! ```text
//! eth0  eth0:inet     the first IPv4 address of that interface
//! eth0:inet6          the first IPv6 address of it
//! eth0[1]             its second address, of either family
//! 10.0.0.0/8          the first address inside, on any interface
//! inet  inet6         the first address of the family that is not the loopback's
//! static:10.0.0.1     this one, whether it is there or not
//! ```
//!
//! "First" is in the order of interface names, then of addresses, IPv4 before IPv6.

// The language's own `core`: addresses as values, without sockets.
use ::core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// What is tried when nothing is wished for: `eth0:inet`, then `inet`.
#[must_use]
pub fn defaults() -> Vec<InterfaceSpec> {
    let eth0 = InterfaceSpec::Named { interface: "eth0".to_owned(), family: Family::Inet };
    vec![eth0, InterfaceSpec::Any(Family::Inet)]
}

/// The longest name that the kernel takes.
const LONGEST_NAME: usize = 15;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InterfaceSpec {
    /// The first address of a family on one interface.
    Named { interface: String, family: Family },
    /// An address of one interface, counted from zero over both families.
    Nth { interface: String, index: usize },
    /// The first address inside a network.
    Within { network: IpAddr, prefix: u8 },
    /// The first address of a family that is not the loopback's.
    Any(Family),
    /// Exactly this.
    Static(IpAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Inet,
    Inet6,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' does not say which address to take: {hint}")]
pub struct SpecError {
    pub text: String,
    pub hint: String,
}

/// No wish found anything. Says what was wished for, and what there was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no address matches {specs}; this machine has {addresses}")]
pub struct NoAddress {
    pub specs: String,
    pub addresses: String,
}

/// The first address that the first wish finds, else the second, and so on.
///
/// # Errors
/// When none finds any.
pub fn choose(
    specs: &[InterfaceSpec],
    addresses: &[(String, IpAddr)],
) -> Result<IpAddr, NoAddress> {
    let mut sorted = addresses.to_vec();
    sorted.sort_by(|one, other| (&one.0, wide(one.1)).cmp(&(&other.0, wide(other.1))));
    specs.iter().find_map(|spec| spec.find(&sorted)).ok_or_else(|| NoAddress {
        specs: joined(specs.iter().map(|spec| format!("'{spec}'"))),
        addresses: joined(sorted.iter().map(|(name, address)| format!("{name} {address}"))),
    })
}

/// An address as sixteen bytes, in which both families have one order.
fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn joined(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

impl InterfaceSpec {
    fn find(&self, sorted: &[(String, IpAddr)]) -> Option<IpAddr> {
        let mut all = sorted.iter();
        match self {
            InterfaceSpec::Named { interface, family } => {
                all.find(|(name, address)| name == interface && family.has(*address))
            }
            InterfaceSpec::Nth { interface, index } => {
                all.filter(|(name, _)| name == interface).nth(*index)
            }
            InterfaceSpec::Within { network, prefix } => {
                all.find(|(_, address)| masked(*address, *prefix) == *network)
            }
            InterfaceSpec::Any(family) => {
                all.find(|(_, address)| family.has(*address) && !address.is_loopback())
            }
            InterfaceSpec::Static(address) => return Some(*address),
        }
        .map(|(_, address)| *address)
    }
}

impl Family {
    fn has(self, address: IpAddr) -> bool {
        match self {
            Family::Inet => address.is_ipv4(),
            Family::Inet6 => address.is_ipv6(),
        }
    }

    fn bits(address: IpAddr) -> u8 {
        if address.is_ipv4() { 32 } else { 128 }
    }
}

/// The address without the bits behind the prefix.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let cut = u32::from(Family::bits(address).saturating_sub(prefix));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(cut).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(cut).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl FromStr for InterfaceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<InterfaceSpec, SpecError> {
        parse(text).map_err(|hint| SpecError { text: text.to_owned(), hint })
    }
}

fn parse(text: &str) -> Result<InterfaceSpec, String> {
    match text {
        "inet" => return Ok(InterfaceSpec::Any(Family::Inet)),
        "inet6" => return Ok(InterfaceSpec::Any(Family::Inet6)),
        other => {
            if let Some(address) = other.strip_prefix("static:") {
                let address = address.parse().map_err(|_| "write an ip after 'static:'")?;
                return Ok(InterfaceSpec::Static(address));
            }
        }
    }
    if let Some((network, prefix)) = text.split_once('/') {
        return within(network, prefix);
    }
    if text.parse::<IpAddr>().is_ok() {
        return Err(format!("write 'static:{text}' to take this one"));
    }
    if let Some((interface, index)) = text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        let index = index.parse().map_err(|_| "write a number from 0 between '[' and ']'")?;
        return Ok(InterfaceSpec::Nth { interface: named(interface)?, index });
    }
    let (interface, family) = match text.split_once(':') {
        None | Some((_, "inet")) => (text.trim_end_matches(":inet"), Family::Inet),
        Some((interface, "inet6")) => (interface, Family::Inet6),
        Some((_, _)) => return Err("write 'inet' or 'inet6' after the ':'".to_owned()),
    };
    Ok(InterfaceSpec::Named { interface: named(interface)?, family })
}

fn within(network: &str, prefix: &str) -> Result<InterfaceSpec, String> {
    let network: IpAddr =
        network.parse().map_err(|_| "write a network as 10.0.0.0/8 or fd00::/8")?;
    let bits = Family::bits(network);
    match prefix.parse::<u8>() {
        Ok(prefix) if prefix <= bits => {
            Ok(InterfaceSpec::Within { network: masked(network, prefix), prefix })
        }
        Ok(_) | Err(_) => Err(format!("write a number from 0 to {bits} after the '/'")),
    }
}

/// Whatever the kernel takes as the name of an interface: `br-3f2a` and `eth0.100` as well.
fn named(text: &str) -> Result<String, String> {
    let taken = (1..=LONGEST_NAME).contains(&text.len())
        // The kernel takes more, and nobody calls one `!`.
        && text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "/:[],".contains(c));
    match taken {
        true => Ok(text.to_owned()),
        false => Err("write an interface (eth0, eth0:inet6, eth0[1]), a network (10.0.0.0/8), \
                      'inet', 'inet6', or 'static:' and an ip"
            .to_owned()),
    }
}

impl fmt::Display for InterfaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterfaceSpec::Named { interface, family } => write!(f, "{interface}:{family}"),
            InterfaceSpec::Nth { interface, index } => write!(f, "{interface}[{index}]"),
            InterfaceSpec::Within { network, prefix } => write!(f, "{network}/{prefix}"),
            InterfaceSpec::Any(family) => write!(f, "{family}"),
            InterfaceSpec::Static(address) => write!(f, "static:{address}"),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Inet => "inet",
            Family::Inet6 => "inet6",
        })
    }
}

impl TryFrom<String> for InterfaceSpec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<InterfaceSpec, SpecError> {
        text.parse()
    }
}

impl From<InterfaceSpec> for String {
    fn from(spec: InterfaceSpec) -> String {
        spec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Out of order on purpose.
    fn machine() -> Vec<(String, IpAddr)> {
        [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth1", "fd00::7"),
            ("eth1", "192.168.1.20"),
            ("eth0", "fe80::1"),
            ("eth0", "10.0.0.9"),
            ("eth0", "10.0.0.10"),
            ("br-3f2a", "172.17.0.1"),
            ("eth0.100", "10.100.0.1"),
        ]
        .map(|(name, address)| (name.to_owned(), address.parse().expect("right")))
        .to_vec()
    }

    fn chosen(specs: &[&str]) -> Result<String, NoAddress> {
        let specs: Vec<InterfaceSpec> =
            specs.iter().map(|spec| spec.parse().expect("right")).collect();
        choose(&specs, &machine()).map(|address| address.to_string())
    }

    #[test]
    fn each_kind_of_wish_finds_its_address() {
        for (spec, expected) in [
            ("eth0", "10.0.0.9"),
            ("eth0:inet", "10.0.0.9"),
            ("eth0:inet6", "fe80::1"),
            ("eth0[1]", "10.0.0.10"),
            ("eth0[2]", "fe80::1"),
            ("br-3f2a", "172.17.0.1"),
            ("eth0.100", "10.100.0.1"),
            ("192.168.0.0/16", "192.168.1.20"),
            ("10.0.0.10/32", "10.0.0.10"),
            ("0.0.0.0/0", "172.17.0.1"),
            ("fd00::/8", "fd00::7"),
            ("inet", "172.17.0.1"),
            ("inet6", "fe80::1"),
            ("lo", "127.0.0.1"),
            ("static:203.0.113.7", "203.0.113.7"),
            ("static:2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(chosen(&[spec]).as_deref(), Ok(expected), "{spec}");
        }
    }

    #[test]
    fn the_first_wish_that_finds_something_wins() {
        assert_eq!(chosen(&["eth7", "eth1", "eth0"]).as_deref(), Ok("192.168.1.20"));
        assert_eq!(chosen(&["eth0:inet", "inet"]).as_deref(), Ok("10.0.0.9"));
    }

    #[test]
    fn when_nothing_is_found_the_error_says_what_there_is() {
        let told = chosen(&["eth7", "eth0[9]"]).expect_err("wrong").to_string();
        for part in ["'eth7:inet'", "'eth0[9]'", "eth0 10.0.0.9, eth0 10.0.0.10, eth0 fe80::1"] {
            assert!(told.contains(part), "{part} in {told}");
        }
        let none = choose(&["inet".parse().expect("right")], &[]).expect_err("wrong").to_string();
        assert_eq!(none, "no address matches 'inet'; this machine has none");
    }

    #[test]
    fn a_network_is_written_without_the_bits_that_do_not_count() {
        for (text, shown) in
            [("10.1.2.3/8", "10.0.0.0/8"), ("fd00::5/16", "fd00::/16"), ("::/0", "::/0")]
        {
            let spec: InterfaceSpec = text.parse().expect("right");
            assert_eq!(spec.to_string(), shown);
            assert_eq!(shown.parse(), Ok(spec));
        }
    }

    #[test]
    fn a_wrong_wish_says_what_to_write() {
        for (text, part) in [
            ("", "write an interface"),
            ("eth0:inet5", "'inet' or 'inet6'"),
            ("eth0[x]", "a number from 0"),
            ("eth0[1", "write an interface"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("10.0.0/8", "10.0.0.0/8"),
            ("static:host", "an ip"),
            ("10.0.0.1", "static:10.0.0.1"),
            ("an interface", "write an interface"),
            ("!", "write an interface"),
            ("a-name-beyond-fifteen", "write an interface"),
        ] {
            let told = text.parse::<InterfaceSpec>().expect_err("wrong").to_string();
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
