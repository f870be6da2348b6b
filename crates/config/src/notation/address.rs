//! Addresses of listening sockets: `ip:port`, `[ip6]:port`, `unix:/path`, and `udp:` before an ip;
//! and what may stand for a host elsewhere.
//!
//! To listen on, host names are refused: they would be looked up at an unknown time with an unknown answer.

use std::net::SocketAddr;

/// What a unix address can hold, without its end.
const LONGEST_PATH: usize = 107;

/// The address in the one form in which two equal ones look equal, or what to write instead.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') || path.ends_with('/') {
            return Err("write an absolute path to a socket: unix:/run/app.sock".to_owned());
        }
        if path.len() > LONGEST_PATH {
            return Err(format!("use a path of at most {LONGEST_PATH} bytes"));
        }
        return Ok(text.to_owned());
    }
    let (kind, rest) = text.strip_prefix("udp:").map_or(("", text), |rest| ("udp:", rest));
    if let Ok(address) = rest.parse::<SocketAddr>() {
        return Ok(format!("{kind}{address}"));
    }
    Err(match rest.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err() => {
            "write a port from 0 to 65535 after the last ':'".to_owned()
        }
        Some(("" | "*", port)) => {
            format!("say which interface: {kind}0.0.0.0:{port} or {kind}[::]:{port}")
        }
        Some(("localhost", port)) => format!("use an ip: {kind}127.0.0.1:{port}"),
        Some((ip, port)) if ip.contains(':') && !ip.starts_with('[') => {
            format!("put an IPv6 address in brackets: {kind}[{ip}]:{port}")
        }
        _ => "write ip:port, [ip6]:port, udp:ip:port or unix:/path".to_owned(),
    })
}

/// A host name, an IPv4 address, or an IPv6 address in brackets.
#[must_use]
pub fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return inside.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_brought_into_one_form() {
        for (text, expected) in [
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("127.0.0.1:080", "127.0.0.1:80"),
            ("[::]:80", "[::]:80"),
            ("[0:0::1]:80", "[::1]:80"),
            ("udp:0.0.0.0:53", "udp:0.0.0.0:53"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_wrong_address_says_what_to_write() {
        for (text, part) in [
            ("", "ip:port"),
            ("80", "ip:port"),
            (":80", "0.0.0.0:80 or [::]:80"),
            ("udp::53", "udp:0.0.0.0:53"),
            ("*:80", "0.0.0.0:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("example.org:80", "ip:port"),
            ("1.2.3.4:99999", "port from 0"),
            ("1.2.3.4", "ip:port"),
            ("::1:80", "[::1]:80"),
            ("unix:a.sock", "absolute"),
            ("unix:/", "absolute"),
            ("1.2.3.4:", "port from 0"),
        ] {
            let help = parse(text).expect_err(text);
            assert!(help.contains(part), "{text}: {help}");
        }
        assert!(parse(&format!("unix:/{}", "x".repeat(107))).is_err());
    }
}
