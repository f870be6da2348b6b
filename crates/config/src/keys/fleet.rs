//! `[fleet]`: the nodes that act as one.

use crate::{
    diag::nearest,
    keys::{
        Kind,
        Reload::{Live, NewRun},
        Table, api, key,
        node::Node,
    },
    notation::address::is_host,
    reader::{Place, Reader, Span, Value},
};
use mainstay_core::{
    fleet::{Conciliation, Strategy},
    name::Name,
    plan::{FLEET_PORT, FleetEngine, FleetNode, FleetPlan},
};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub(crate) const STRATEGY: Kind = Kind::OneOf(&[
    "config",
    "less-loaded",
    "most-loaded",
    "local",
    "less-loaded-node",
    "most-loaded-node",
]);

/// In one fleet.
const MOST_NODES: usize = 1000;

/// `[fleet]` as far as it has been read.
pub(crate) struct Fleet {
    name: Option<Name>,
    engine: FleetEngine,
    listen: Option<SocketAddr>,
    nodes: Vec<FleetNode>,
    nodes_at: Option<Place>,
    join: Vec<String>,
    join_at: Option<Place>,
    core: Vec<(Name, Place)>,
    tick: Duration,
    sync_timeout: Duration,
    order_timeout: Duration,
    auto_fence: bool,
    strategy: Strategy,
    conciliation: Conciliation,
    key_file: Option<PathBuf>,
    /// Of these keys a value was wrong, and that was told.
    told: Vec<&'static str>,
}

impl Default for Fleet {
    fn default() -> Fleet {
        Fleet {
            name: None,
            engine: FleetEngine::Mesh,
            listen: None,
            nodes: Vec::new(),
            nodes_at: None,
            join: Vec::new(),
            join_at: None,
            core: Vec::new(),
            tick: FleetPlan::TICK,
            sync_timeout: FleetPlan::SYNC_TIMEOUT,
            order_timeout: FleetPlan::ORDER_TIMEOUT,
            auto_fence: false,
            strategy: Strategy::default(),
            conciliation: Conciliation::default(),
            key_file: None,
            told: Vec::new(),
        }
    }
}

pub(crate) static FLEET: Table<Fleet> = Table {
    keys: &[
        key(
            "name",
            Kind::Text,
            "\"fleet\"",
            NewRun,
            "The name of the fleet: nodes of another are not listened to.",
            |fleet, v, r| {
                let text = r.filled(v)?;
                match Name::new(&text) {
                    Ok(name) => fleet.name = Some(name),
                    Err(error) => return r.wrong(v.span, error.to_string(), "rename the fleet"),
                }
                Some(())
            },
        ),
        key(
            "engine",
            Kind::OneOf(&["mesh"]),
            "\"mesh\"",
            NewRun,
            "What it stands on. mesh: the nodes themselves; each side of a cut goes on, and what \
             then runs twice is conciliated.",
            |fleet, v, r| r.one_of(v).map(|it| fleet.engine = it),
        ),
        key(
            "listen",
            Kind::Text,
            "",
            NewRun,
            "Where the other nodes reach this one, ip:port, UDP and TCP; default: its address in \
             nodes.",
            |fleet, v, r| {
                fleet.told.push("listen");
                let text = r.filled(v)?;
                match api::tcp(&text) {
                    Ok(address) => fleet.listen = Some(address),
                    Err(help) => return r.wrong(v.span, format!("'{text}' is no address"), help),
                }
                Some(())
            },
        ),
        key(
            "nodes",
            Kind::Texts,
            "",
            Live,
            "The nodes that are expected, in their order: \"NAME=HOST:PORT\". A host that is not given \
             is the name, a port 7071.",
            |fleet, v, r| {
                fleet.nodes_at = Some(r.here(v.span));
                r.list(v, node).map(|it| fleet.nodes = it)
            },
        ),
        key(
            "join",
            Kind::Texts,
            "",
            Live,
            "Instead of nodes: some that know the others, HOST:PORT. Whoever has the key may join.",
            |fleet, v, r| {
                fleet.join_at = Some(r.here(v.span));
                r.list(v, |r, one| {
                    let text = r.filled(one)?;
                    host(r, one.span, &text)
                })
                .map(|it| fleet.join = it)
            },
        ),
        key(
            "core",
            Kind::Texts,
            "[]",
            Live,
            "Nodes that are enough to begin with: when they are there nobody else is waited for, and \
             one of them is master.",
            |fleet, v, r| {
                let core = r.list(v, |r, one| {
                    let text = r.filled(one)?;
                    match Name::new(&text) {
                        Ok(name) => Some((name, r.here(one.span))),
                        Err(error) => r.wrong(one.span, error.to_string(), "name a node"),
                    }
                })?;
                fleet.core = core;
                Some(())
            },
        ),
        key(
            "tick",
            Kind::Duration,
            "\"1s\"",
            NewRun,
            "How often nodes look whether the others are there: a lost one is seen within two.",
            |fleet, v, r| {
                let tick = r.duration(v)?;
                if !(SHORTEST_TICK..=LONGEST_TICK).contains(&tick) {
                    return r.wrong(v.span, "out of range", "use \"100ms\" to \"60s\"");
                }
                fleet.tick = tick;
                Some(())
            },
        ),
        key(
            "sync_timeout",
            Kind::Duration,
            "\"15s\"",
            Live,
            "How long nodes wait for each other before they begin without those that are missing.",
            |fleet, v, r| r.period(v).map(|it| fleet.sync_timeout = it),
        ),
        key(
            "order_timeout",
            Kind::Duration,
            "\"5s\"",
            Live,
            "An order to a node that shows no effect for so long has failed.",
            |fleet, v, r| r.period(v).map(|it| fleet.order_timeout = it),
        ),
        key(
            "auto_fence",
            Kind::Bool,
            "false",
            Live,
            "A node that was lost stays out, over boots, until somebody lets it in again.",
            |fleet, v, r| r.boolean(v).map(|it| fleet.auto_fence = it),
        ),
        key(
            "strategy",
            STRATEGY,
            "\"config\"",
            Live,
            "Which of the nodes that have room gets a job: the first, the one with the least or the \
             most load (_node: counted by machine), or the one that was asked.",
            |fleet, v, r| r.one_of(v).map(|it| fleet.strategy = it),
        ),
        key(
            "conciliation",
            Kind::OneOf(&["senicide", "infanticide", "user", "stop", "restart", "running-failure"]),
            "\"user\"",
            Live,
            "What becomes of a job that runs on several nodes: the youngest or the oldest stays, a \
             user decides, all stop, all stop and one starts anew, or it counts as lost.",
            |fleet, v, r| r.one_of(v).map(|it| fleet.conciliation = it),
        ),
        key(
            "key_file",
            Kind::Text,
            "",
            NewRun,
            "The file with the key of the fleet, accessible to nobody else: whoever has it is a node. \
             Required.",
            |fleet, v, r| {
                fleet.told.push("key_file");
                let path = api::file(v, r)?;
                if let Err(error) = std::fs::metadata(&path) {
                    let help = format!(
                        "make one with 'mainstay fleet key --out {}', and give every node a copy of it",
                        path.display()
                    );
                    let message = format!("cannot look at {}: {error}", path.display());
                    return r.wrong(v.span, message, help);
                }
                if api::is_accessible(&path, 0o077) {
                    let shown = path.display();
                    let help = format!("keep it to the user who runs the node: chmod go= {shown}");
                    return r.wrong(v.span, format!("{shown} is accessible to others"), help);
                }
                fleet.key_file = Some(path);
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

const SHORTEST_TICK: Duration = Duration::from_millis(100);
const LONGEST_TICK: Duration = Duration::from_secs(60);

/// `NAME`, `NAME=HOST` or `NAME=HOST:PORT`.
fn node(r: &mut Reader<'_>, v: Value<'_>) -> Option<FleetNode> {
    let text = r.filled(v)?;
    let (name, rest) = text.split_once('=').unwrap_or((&text, &text));
    let name = match Name::new(name) {
        Ok(name) => name,
        Err(error) => return r.wrong(v.span, error.to_string(), "write NAME=HOST:PORT"),
    };
    let address = host(r, v.span, rest)?;
    Some(FleetNode { name, address })
}

/// With its port.
fn host(r: &mut Reader<'_>, span: Span, text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, port.parse::<u16>().ok()),
        Some(_) | None => (text, Some(FLEET_PORT)),
    };
    match port.filter(|port| *port > 0 && is_host(host)) {
        Some(port) => Some(format!("{host}:{port}")),
        None => r.wrong(span, format!("'{text}' is no address"), "write HOST:PORT or [IP6]:PORT"),
    }
}

impl Fleet {
    pub(crate) fn node_names(&self) -> Vec<Name> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// What can only be said about the whole table. `at`: where it is.
    pub(crate) fn judge(self, r: &mut Reader<'_>, node: &Node, at: Place) -> Option<FleetPlan> {
        let me = self.own_name(r, node, at);
        self.others(r, at);
        self.core_is_known(r);
        r.file = at.file;
        let missing = |r: &mut Reader<'_>, told: &[&str], key: &'static str, help: &str| {
            if !told.contains(&key) && r.is_whole() {
                r.wrong::<()>(at.span, format!("'{key}' is missing"), help);
            }
        };
        let own = self.nodes.iter().find(|it| Some(&it.name) == me.as_ref());
        let listen = self.listen.or_else(|| own?.address.parse().ok());
        if listen.is_none() && me.is_some() {
            missing(
                r,
                &self.told,
                "listen",
                "add where the others reach this node: listen = \"IP:PORT\"",
            );
        }
        if self.key_file.is_none() {
            missing(
                r,
                &self.told,
                "key_file",
                "make a key with 'mainstay fleet key --out FILE', give every node a copy of it, and add \
                 key_file = \"FILE\"",
            );
        }
        let name = self.name.or_else(|| Name::new("fleet").ok())?;
        Some(FleetPlan {
            name,
            engine: self.engine,
            listen: listen?,
            nodes: self.nodes,
            join: self.join,
            core: self.core.into_iter().map(|(name, _)| name).collect(),
            tick: self.tick,
            sync_timeout: self.sync_timeout,
            order_timeout: self.order_timeout,
            auto_fence: self.auto_fence,
            strategy: self.strategy,
            conciliation: self.conciliation,
            key_file: self.key_file?,
        })
    }

    /// The others know this node by its name.
    fn own_name(&self, r: &mut Reader<'_>, node: &Node, at: Place) -> Option<Name> {
        let text = &node.plan.name;
        let help = "give the node a name of its own: [node] name = \"web-1\"";
        let place = node.name.unwrap_or(at);
        let wrong = |r: &mut Reader<'_>, message: String| {
            r.file = place.file;
            r.wrong::<Name>(place.span, message, help)
        };
        let of_host = if node.name.is_none() { " (the name of the host)" } else { "" };
        if text == "localhost" {
            let message =
                format!("'localhost'{of_host} names every machine, and no node of a fleet");
            return wrong(r, message);
        }
        let Ok(name) = Name::new(text) else {
            let message = format!(
                "'{text}'{of_host} cannot name a node of a fleet: use letters, digits, '_' or '-'"
            );
            return wrong(r, message);
        };
        if !self.nodes.is_empty() && self.nodes.iter().all(|it| it.name != name) {
            return wrong(
                r,
                format!("this node, '{text}'{of_host}, is not among the nodes of the fleet"),
            );
        }
        Some(name)
    }

    /// Either all are listed, or some are asked.
    fn others(&self, r: &mut Reader<'_>, at: Place) {
        match (self.nodes_at, self.join_at) {
            (Some(nodes), Some(join)) => {
                r.file = join.file;
                let help = "list all nodes, or let whoever has the key join";
                let nodes = (nodes, "all are listed here");
                r.within("join", |r| {
                    r.wrong_beside::<()>(
                        join.span,
                        nodes,
                        "nodes and join exclude each other",
                        help,
                    )
                });
            }
            (None, None) if r.is_whole() => {
                r.file = at.file;
                let help = "add nodes = [\"NAME=HOST:PORT\", …], or join = [\"HOST:PORT\"]";
                r.wrong::<()>(at.span, "nothing says who the other nodes are", help);
            }
            (None, None) | (Some(_), None) | (None, Some(_)) => {}
        }
        let Some(place) = self.nodes_at else { return };
        r.file = place.file;
        r.within("nodes", |r| {
            if self.nodes.len() > MOST_NODES {
                let message = format!("more than {MOST_NODES} nodes");
                r.wrong::<()>(place.span, message, "make several fleets of them");
            }
            for (index, node) in self.nodes.iter().enumerate() {
                let before = self.nodes.get(..index).unwrap_or_default();
                if before.iter().any(|it| it.name == node.name) {
                    let message = format!("'{}' is listed twice", node.name);
                    r.wrong::<()>(place.span, message, "remove one of them");
                } else if let Some(other) = before.iter().find(|it| it.address == node.address) {
                    let message = format!("'{}' and '{}' have one address", other.name, node.name);
                    r.wrong::<()>(place.span, message, "give each node its own");
                }
            }
        });
    }

    fn core_is_known(&self, r: &mut Reader<'_>) {
        if self.nodes.is_empty() {
            return;
        }
        for (name, place) in &self.core {
            if self.nodes.iter().any(|node| node.name == *name) {
                continue;
            }
            let near = nearest(name.as_str(), self.nodes.iter().map(|node| node.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean '{near}'?"),
                None => "use those that nodes has".to_owned(),
            };
            r.file = place.file;
            r.within("core", |r| {
                r.wrong::<()>(place.span, format!("there is no node '{name}'"), help)
            });
        }
    }
}
