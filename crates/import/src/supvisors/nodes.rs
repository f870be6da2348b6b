//! The nodes of the fleet: `supvisors_list`, once `address_list`.

use crate::draft::{Names, quoted};
use mainstay_config::is_host;
use mainstay_core::plan::FLEET_PORT;
use std::collections::BTreeMap;

/// One supervisord of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instance {
    nick: Option<String>,
    host: String,
    /// Of its HTTP server; `None`: the same as that of this one.
    port: Option<u16>,
    /// As it is called here.
    pub(super) name: String,
    /// Of its fleet, which is another than that of its HTTP server.
    fleet_port: u16,
}

/// All of the list, in its order.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) all: Vec<Instance>,
    /// The one that these files are of.
    pub(super) me: Option<usize>,
    /// Tags of this one; those of others stand in their files.
    pub(super) stereotypes: Vec<String>,
}

/// What can be wrong with an entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListError {
    #[error("'{0}' is neither HOST nor <NICK>HOST:PORT")]
    Entry(String),
    #[error("there are more than {MOST} nodes in it")]
    TooMany,
}

const MOST: usize = 1000;

impl Nodes {
    pub(super) fn read(list: &str) -> Result<Nodes, ListError> {
        let mut names = Names::default();
        let mut of_host: BTreeMap<String, u16> = BTreeMap::new();
        let mut all: Vec<Instance> = Vec::new();
        for entry in list.split([',', '\n']).map(str::trim).filter(|it| !it.is_empty()) {
            let (nick, host, port) =
                entry_parts(entry).ok_or_else(|| ListError::Entry(entry.to_owned()))?;
            if all.iter().any(|it| it.host == host && it.port == port) {
                continue;
            }
            if all.len() == MOST {
                return Err(ListError::TooMany);
            }
            let wanted = nick.as_deref().unwrap_or(&host);
            let name = match wanted {
                "localhost" => names.take("node", None),
                wanted => names.take(wanted, None),
            };
            let before = of_host.entry(host.clone()).or_insert(0);
            let fleet_port = FLEET_PORT + *before;
            *before += 1;
            all.push(Instance { nick, host, port, name, fleet_port });
        }
        Ok(Nodes { all, ..Nodes::default() })
    }

    /// Finds this host, and if it has several the one with this port.
    pub(super) fn find_me(&mut self, host_name: &str, port: Option<u16>) {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let is_host = |it: &Instance| it.host == host_name || short(&it.host) == short(host_name);
        let is_me = |it: &Instance| it.nick.as_deref() == Some(host_name) || is_host(it);
        let of_host: Vec<usize> = (0..self.all.len()).filter(|at| is_me(&self.all[*at])).collect();
        let with_port = of_host.iter().find(|at| {
            let own = self.all[**at].port;
            own.is_some() && own == port
        });
        self.me = with_port.or(of_host.first()).copied();
    }

    /// Whether it takes several nodes to be as it was.
    pub(super) fn is_fleet(&self) -> bool {
        self.all.len() > 1
    }

    /// By nick name, host, host and port, or the name that it has here.
    pub(super) fn named(&self, identifier: &str) -> Option<usize> {
        let by = |is: &dyn Fn(&Instance) -> bool| self.all.iter().position(is);
        by(&|it| it.nick.as_deref() == Some(identifier))
            .or_else(|| by(&|it| it.host == identifier))
            .or_else(|| {
                by(&|it| it.port.is_some_and(|port| identifier == format!("{}:{port}", it.host)))
            })
            .or_else(|| by(&|it| it.name == identifier))
    }

    pub(super) fn name(&self, at: usize) -> Option<&str> {
        self.all.get(at).map(|node| node.name.as_str())
    }
}

impl Instance {
    /// `"NAME=HOST:PORT"`
    pub(super) fn written(&self) -> String {
        let Instance { name, host, fleet_port, .. } = self;
        quoted(&format!("{name}={host}:{fleet_port}"))
    }

    /// Where it has to listen, if its address does not say so.
    pub(super) fn listen(&self) -> Option<String> {
        let known = self.host.parse::<std::net::Ipv4Addr>().is_ok() || self.host.starts_with('[');
        (!known).then(|| quoted(&format!("0.0.0.0:{}", self.fleet_port)))
    }

    /// It is called otherwise than it was.
    pub(super) fn renamed(&self) -> Option<&str> {
        let wanted = self.nick.as_deref().unwrap_or(&self.host);
        (wanted != self.name).then_some(wanted)
    }
}

type EntryParts = (Option<String>, String, Option<u16>);

/// `<NICK>HOST:PORT`, of which only the host has to be there. One of them once had two ports.
fn entry_parts(entry: &str) -> Option<EntryParts> {
    let (nick, rest) = match entry.strip_prefix('<') {
        Some(rest) => {
            let (nick, rest) = rest.split_once('>')?;
            (Some(nick.trim().to_owned()).filter(|nick| !nick.is_empty()), rest.trim())
        }
        None => (None, entry),
    };
    // A nick name may be all there is.
    let rest = match (rest.is_empty(), &nick) {
        (true, Some(nick)) => nick.as_str(),
        _ => rest,
    };
    let mut parts = rest.split(':');
    let host = parts.next()?.to_owned();
    let mut ports = parts.filter(|it| !it.is_empty()).map(str::parse::<u16>);
    let port = ports.next().transpose().ok()?;
    if ports.any(|port| port.is_err()) || !is_host(&host) {
        return None;
    }
    Some((nick, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(nodes: &Nodes) -> Vec<&str> {
        nodes.all.iter().map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn a_list_gives_names_and_addresses() {
        let nodes = Nodes::read("<a>10.0.0.1:60000, cliche02 ,10.0.0.1:60001:7777\n web.x.org");
        let nodes = nodes.expect("a list");
        assert_eq!(names(&nodes), ["a", "cliche02", "10-0-0-1", "web-x-org"]);
        let written: Vec<String> = nodes.all.iter().map(Instance::written).collect();
        assert_eq!(written[2], "\"10-0-0-1=10.0.0.1:7072\"", "two on one host");
        assert_eq!(nodes.all[1].listen().as_deref(), Some("\"0.0.0.0:7071\""));
        assert_eq!(nodes.all[0].listen(), None);
        assert_eq!(nodes.named("10.0.0.1:60001"), Some(2));
        assert_eq!(
            (nodes.named("a"), nodes.named("10.0.0.1"), nodes.named("b")),
            (Some(0), Some(0), None)
        );
    }

    #[test]
    fn this_one_is_found_by_its_host_and_its_port() {
        let mut nodes = Nodes::read("other,<a>box:1,<b>box:2").expect("a list");
        nodes.find_me("box", Some(2));
        assert_eq!(nodes.me, Some(2));
        nodes.find_me("box.example.org", None);
        assert_eq!(nodes.me, Some(1));
        nodes.find_me("elsewhere", None);
        assert_eq!(nodes.me, None);
    }

    #[test]
    fn what_is_no_host_is_told() {
        for entry in ["a b", "<a", "a:x", "a:70000", "ä"] {
            assert_eq!(Nodes::read(entry).err(), Some(ListError::Entry(entry.to_owned())));
        }
    }
}
