//! `/etc/resolv.conf`: whom to ask, how long to wait, and how short names go on.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

const PORT: u16 = 53;
const MOST_SERVERS: usize = 3;
const MOST_SEARCHED: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvConf {
    pub(super) servers: Vec<SocketAddr>,
    search: Vec<String>,
    /// A name with fewer dots is tried with the search list first.
    dots: usize,
    /// For one answer of one server.
    pub(super) timeout: Duration,
    pub(super) attempts: u32,
}

impl ResolvConf {
    /// What is not understood is passed over.
    pub(super) fn parse(text: &str) -> ResolvConf {
        let mut conf = ResolvConf {
            servers: Vec::new(),
            search: Vec::new(),
            dots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
        };
        for line in text.lines() {
            let mut words = line.split(['#', ';']).next().unwrap_or("").split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    conf.servers.extend(address.map(|it| SocketAddr::new(it, PORT)));
                }
                // The last one counts.
                Some("search" | "domain") => conf.search = words.map(str::to_owned).collect(),
                Some("options") => words.for_each(|option| conf.set(option)),
                Some(_) | None => {}
            }
        }
        if conf.servers.is_empty() {
            conf.servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        conf.servers.truncate(MOST_SERVERS);
        conf.search.truncate(MOST_SEARCHED);
        conf
    }

    fn set(&mut self, option: &str) {
        let Some((name, value)) = option.split_once(':') else { return };
        let Ok(value) = value.parse::<u32>() else { return };
        match name {
            "ndots" => self.dots = value.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(value.clamp(1, 30).into()),
            "attempts" => self.attempts = value.clamp(1, 5),
            _ => {}
        }
    }

    /// What a name may stand for, in the order in which it is tried.
    pub(super) fn candidates(&self, host: &str) -> Vec<String> {
        if let Some(whole) = host.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let bare = [host.to_owned()];
        let completed = self.search.iter().map(|domain| format!("{host}.{domain}"));
        match host.matches('.').count() >= self.dots {
            true => bare.into_iter().chain(completed).collect(),
            false => completed.chain(bare).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_s_file_is_understood() {
        let text = "# made by somebody\nnameserver 10.0.0.10\nnameserver fe80::1%eth0\n\
                    nameserver ::1\nsearch a.svc svc\noptions ndots:2 timeout:3 rotate attempts:9\n";
        let conf = ResolvConf::parse(text);
        let servers = ["10.0.0.10:53", "[::1]:53"].map(|at| at.parse().expect("an address"));
        assert_eq!(conf.servers, servers);
        assert_eq!((conf.timeout, conf.attempts), (Duration::from_secs(3), 5));
        assert_eq!(conf.candidates("web"), ["web.a.svc", "web.svc", "web"]);
        assert_eq!(conf.candidates("a.b.c"), ["a.b.c", "a.b.c.a.svc", "a.b.c.svc"]);
        assert_eq!(conf.candidates("web."), ["web"]);
    }

    #[test]
    fn without_a_file_this_machine_is_asked() {
        let conf = ResolvConf::parse("");
        assert_eq!(conf.servers, ["127.0.0.1:53".parse().expect("an address")]);
        assert_eq!(conf.candidates("web"), ["web"]);
    }
}
