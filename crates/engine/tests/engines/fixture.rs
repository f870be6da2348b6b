//! An engine with its ends, and facts to say.

use mainstay_core::{
    clock::Mono,
    fleet::{
        Departed, EngineCommand, EngineEvent, FailureQueue, FleetStage, JobOrder, Message,
        NodeFacts, Number, OrderKind, RunId, Shared, Term, Wishes,
    },
    name::Name,
};
use mainstay_engine::{
    ApiStreams, Engine, EngineError, EngineEvents, EngineStatus, FleetKeys, MeshConfig, Roster,
    Versions,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::time::{sleep, timeout};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
/// Everything comes long before.
const LIMIT: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

pub(crate) struct Peer {
    pub(crate) name: Name,
    pub(crate) run: RunId,
    pub(crate) at: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) events: EngineEvents,
    pub(crate) api: ApiStreams,
}

impl Peer {
    pub(crate) async fn start(name: &str, run: &str, join: &[SocketAddr]) -> Peer {
        Peer::start_with(name, run, join, KEY).await
    }

    pub(crate) async fn start_with(name: &str, run: &str, join: &[SocketAddr], keys: &str) -> Peer {
        Peer::start_at(name, run, ([127, 0, 0, 1], 0).into(), join, keys).await
    }

    pub(crate) async fn start_at(
        name: &str,
        run: &str,
        listen: SocketAddr,
        join: &[SocketAddr],
        keys: &str,
    ) -> Peer {
        let spoken = (Versions::SPOKEN, Duration::from_secs(1));
        Peer::start_as(name, run, listen, join, keys, spoken).await
    }

    /// It speaks these versions, and is not given up soon: an agent of the same run may follow it.
    pub(crate) async fn start_speaking(
        name: &str,
        listen: SocketAddr,
        join: &[SocketAddr],
        versions: Versions,
    ) -> Peer {
        Peer::start_as(name, "1", listen, join, KEY, (versions, Duration::from_secs(5))).await
    }

    async fn start_as(
        text: &str,
        run: &str,
        listen: SocketAddr,
        join: &[SocketAddr],
        keys: &str,
        (versions, tick): (Versions, Duration),
    ) -> Peer {
        let (name, run) = (name(text), RunId::new(run));
        let join: Vec<String> = join.iter().map(ToString::to_string).collect();
        let config = || MeshConfig {
            fleet: "shop".to_owned(),
            me: name.clone(),
            run: run.clone(),
            listen,
            roster: Roster { nodes: Vec::new(), join: join.clone(), core: BTreeSet::new() },
            highest_term: None,
            tick,
            keys: FleetKeys::parse(keys, Path::new("key")).expect("keys"),
            versions,
        };
        // Whoever was there before may not have closed its sockets yet.
        let started = timeout(LIMIT, async {
            loop {
                match Engine::start(config()).await {
                    Err(EngineError::Listen { .. }) => sleep(LOOK_AGAIN).await,
                    started => return started.expect("it starts"),
                }
            }
        });
        let (engine, events, api) = started.await.expect("its address is free");
        let at = engine.status().address;
        Peer { name, run, at, engine, events, api }
    }

    /// Until its status is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&EngineStatus) -> bool) {
        let found = timeout(LIMIT, async {
            while !is_so(&self.engine.status()) {
                sleep(LOOK_AGAIN).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("{}: never: {what}", self.name));
    }

    /// Those of these names, each of which knows the first.
    pub(crate) async fn fleet(names: &[&str]) -> Vec<Peer> {
        let mut fleet: Vec<Peer> = Vec::new();
        for name in names {
            let seeds: Vec<SocketAddr> = fleet.first().map(|it| it.at).into_iter().collect();
            fleet.push(Peer::start(name, "1", &seeds).await);
        }
        for peer in &mut fleet {
            peer.sees(names).await;
        }
        fleet
    }

    /// The first event that is it; others are passed over.
    pub(crate) async fn wait_for<T>(
        &mut self,
        what: &str,
        is_it: impl Fn(&EngineEvent) -> Option<T>,
    ) -> T {
        let found = timeout(LIMIT, async {
            loop {
                if let Some(found) = is_it(&self.events.next().await) {
                    return found;
                }
            }
        });
        found.await.unwrap_or_else(|_| {
            panic!("{} never heard: {what}; {:?}", self.name, self.engine.status())
        })
    }

    /// Until it reaches exactly these.
    pub(crate) async fn sees(&mut self, names: &[&str]) {
        let expected: BTreeSet<Name> = names.iter().map(|it| name(it)).collect();
        self.wait_for(&format!("members {names:?}"), |event| match event {
            EngineEvent::Members(members) => {
                let seen: BTreeSet<Name> = members.iter().map(|it| it.node.clone()).collect();
                (seen == expected && members.len() == expected.len()).then_some(())
            }
            EngineEvent::Leader { .. } | EngineEvent::Said { .. } | EngineEvent::Sent { .. } => {
                None
            }
        })
        .await;
    }

    /// The facts of a node, of this version or a later one.
    pub(crate) async fn hears(&mut self, node: &str, version: u64) -> Arc<NodeFacts> {
        let expected = name(node);
        self.wait_for(&format!("facts {version} of {node}"), |event| match event {
            EngineEvent::Said { node, facts } => {
                (*node == expected && facts.version >= version).then(|| facts.clone())
            }
            EngineEvent::Members(_) | EngineEvent::Leader { .. } | EngineEvent::Sent { .. } => None,
        })
        .await
    }

    pub(crate) fn facts(&self, version: u64) -> NodeFacts {
        NodeFacts {
            run: self.run.clone(),
            version,
            now: Mono(1),
            machine: self.name.to_string(),
            in_sync: true,
            peers: Shared::default(),
            accepts: Shared::default(),
            term: None,
            highest_term: None,
            stage: FleetStage::Initialization,
            isolates: Shared::default(),
            drained: false,
            hands_over: false,
            ending: false,
            catalogue: Arc::default(),
            jobs: Shared::default(),
            wishes: Wishes::default(),
            failures: FailureQueue::default(),
            requests: BTreeMap::new(),
            departed: Departed::default(),
            waves: Default::default(),
            work: None,
        }
    }

    pub(crate) fn say(&self, facts: NodeFacts) {
        self.engine.command(EngineCommand::Say(Arc::new(facts)));
    }

    pub(crate) fn order(&self, to: &str, counter: u64) {
        let number = Number { term: Term { number: 1, master: self.name.clone() }, counter };
        let what = OrderKind::Start { args: vec!["-v".into()], fails_over: false };
        let message = Message::Order(JobOrder { number, job: name("web"), what });
        self.engine.command(EngineCommand::Send { to: name(to), message });
    }
}
