//! The thread of the peers: connections, and the exchange that says what goes over them.

use super::{
    Clock, SharedStatus, addresses,
    connection::{ConnectionError, Met, OwnIdentity, SharedOutbox, run_frames},
    mesh_thread::{MeshCommand, MeshHandle},
    streams::ApiStream,
};
use crate::{
    config::Roster,
    events::EventSink,
    mesh::MeshEvent,
    next,
    peers::{
        certificate::Protocol,
        exchange::{ConnectionId, Exchange, PeerAction},
        frame::{self, FactsText, FrameBytes, PeerKey, Said},
    },
};
use mainstay_core::{
    clock::Mono,
    fleet::{EngineCommand, NodeFacts},
};
use mainstay_net::listen::{AcceptLoop, Arrival, Connections, Full};
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::{sleep_until, timeout},
};

/// Facts that change all the time are said no more often.
const SAY_EVERY: Duration = Duration::from_millis(20);
/// For all peers to have heard the last facts.
const FAREWELL: Duration = Duration::from_millis(400);
/// So many strangers may be about to say who they are.
const HANDSHAKES: usize = 64;
/// What connections have to say and nobody has taken yet.
const HAPPENINGS: usize = 64;
/// Refused connections are told so often.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum PeerCommand {
    Engine(EngineCommand),
    Roster(Roster),
    Leave(oneshot::Sender<()>),
}

/// What happens on connections.
#[derive(Debug)]
enum Happening {
    Met(Box<Met>),
    CallFailed(PeerKey, ConnectionError),
    Refused(SocketAddr, ConnectionError),
    Received(ConnectionId, Said),
    Closed(ConnectionId, ConnectionError),
}

#[derive(Debug)]
struct Connection {
    peer: PeerKey,
    version: u8,
    outbox: Arc<SharedOutbox>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What comes to the thread.
#[derive(Debug)]
pub(crate) struct PeerInputs {
    pub(crate) listener: std::net::TcpListener,
    pub(crate) commands: mpsc::UnboundedReceiver<PeerCommand>,
    pub(crate) mesh: mpsc::UnboundedReceiver<MeshEvent>,
}

#[derive(Debug)]
pub(crate) struct PeerThread {
    identity: Arc<OwnIdentity>,
    exchange: Exchange,
    mesh: Arc<MeshHandle>,
    clock: Clock,
    sink: EventSink,
    status: Arc<SharedStatus>,
    api: mpsc::Sender<ApiStream>,
    connections: BTreeMap<ConnectionId, Connection>,
    connected: ConnectionId,
    /// Facts that are to be said.
    pending: Option<Arc<NodeFacts>>,
    said_at: Option<Mono>,
    /// The last facts in each version of the protocol that somebody speaks.
    frames: BTreeMap<u8, FrameBytes>,
    looking_up: Option<AbortHandle>,
    refusal_told: Option<Mono>,
    not_understood_told: Option<Mono>,
    happenings: mpsc::Sender<Happening>,
}

impl PeerThread {
    /// Until nobody has anything to tell it any more, or this node has left.
    pub(crate) async fn run(parts: PeerParts, inputs: PeerInputs) {
        let PeerInputs { listener, mut commands, mesh: mut mesh_events } = inputs;
        let (happenings, mut happened) = mpsc::channel(HAPPENINGS);
        let mut this = PeerThread::new(parts, happenings);
        let accepting = match TcpListener::from_std(listener) {
            Ok(listener) => {
                tokio::spawn(answer_calls(listener, this.identity.clone(), this.happenings.clone()))
            }
            Err(error) => {
                tracing::error!("peers: nobody can call this node: {error}");
                return;
            }
        };
        let leaving = loop {
            let due = this.clock.instant(this.next_due()).into();
            tokio::select! {
                command = commands.recv() => {
                    let mut next = command;
                    let mut leaving = None;
                    while let Some(command) = next {
                        leaving = this.obey(command);
                        next = leaving.is_none().then(|| commands.try_recv().ok()).flatten();
                    }
                    if let Some(told) = leaving {
                        break Some(told);
                    }
                    if commands.is_closed() && commands.is_empty() {
                        break None;
                    }
                }
                Some(event) = mesh_events.recv() => {
                    // Whoever goes has said its last words before, and they are here.
                    while let Ok(happening) = happened.try_recv() {
                        this.happen(happening);
                    }
                    this.follow_mesh(event);
                }
                Some(happening) = happened.recv() => this.happen(happening),
                () = sleep_until(due) => {}
            }
            this.go_on();
        };
        accepting.abort();
        if let Some(told) = leaving {
            this.leave(&mut happened).await;
            let _ = told.send(());
        }
    }

    fn new(parts: PeerParts, happenings: mpsc::Sender<Happening>) -> PeerThread {
        let PeerParts { identity, exchange, mesh, clock, sink, status, api } = parts;
        PeerThread {
            identity: Arc::new(identity),
            exchange,
            mesh: Arc::new(mesh),
            clock,
            sink,
            status,
            api,
            connections: BTreeMap::new(),
            connected: 0,
            pending: None,
            said_at: None,
            frames: BTreeMap::new(),
            looking_up: None,
            refusal_told: None,
            not_understood_told: None,
            happenings,
        }
    }

    fn next_due(&self) -> Mono {
        let say = self.pending.as_ref().map(|_| self.say_due());
        say.map_or(self.exchange.next_due(), |say| say.min(self.exchange.next_due()))
    }

    fn say_due(&self) -> Mono {
        self.said_at.map_or(Mono(0), |at| at.after(SAY_EVERY))
    }

    /// `Some`: this node is to leave, and that one wants to know when it has.
    fn obey(&mut self, command: PeerCommand) -> Option<oneshot::Sender<()>> {
        match command {
            PeerCommand::Engine(EngineCommand::Say(facts)) => self.pending = Some(facts),
            PeerCommand::Engine(command @ EngineCommand::Send { .. }) => {
                // What is said comes before what is sent.
                self.say();
                self.exchange.command(command);
            }
            PeerCommand::Engine(command @ EngineCommand::Campaign { .. }) => {
                self.exchange.command(command);
            }
            PeerCommand::Roster(roster) => self.set_roster(roster),
            PeerCommand::Leave(told) => return Some(told),
        }
        None
    }

    fn set_roster(&mut self, roster: Roster) {
        self.exchange.set_core(roster.core.clone());
        if let Some(task) = self.looking_up.take() {
            task.abort();
        }
        let (mesh, me) = (self.mesh.clone(), self.identity.me.node.clone());
        let tell = move |addresses| mesh.tell(MeshCommand::Addresses(addresses));
        let task = tokio::spawn(addresses::follow(roster, me, tell));
        self.looking_up = Some(task.abort_handle());
    }

    fn follow_mesh(&mut self, event: MeshEvent) {
        let now = self.clock.now();
        match event {
            MeshEvent::Members(members) => {
                self.status.lock().members.clone_from(&members);
                self.exchange.members_are(now, members);
            }
            MeshEvent::Digest(digest) => self.exchange.digest(now, &digest),
            MeshEvent::OtherVersion { from, theirs, ours } => tracing::warn!(
                "{from} speaks version {theirs} of the fleet's protocol, and this node {ours}: upgrade the older one"
            ),
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.clock.now();
        match happening {
            Happening::Met(met) => self.met(*met),
            Happening::CallFailed(peer, error) => {
                tracing::debug!("peers: {} does not answer: {error}", peer.node);
                self.exchange.call_failed(now, &peer);
            }
            Happening::Refused(from, error) => self.refused(now, from, &error),
            Happening::Received(connection, said) => {
                if let Said::NotUnderstood(why) = &said {
                    self.not_understood(now, connection, why);
                }
                self.exchange.received(connection, said);
            }
            Happening::Closed(connection, error) => {
                if let Some(it) = self.connections.remove(&connection) {
                    tracing::debug!("peers: the connection to {} is over: {error}", it.peer.node);
                    self.exchange.closed(now, connection);
                    self.show_connected();
                }
            }
        }
    }

    fn met(&mut self, met: Met) {
        let Met { peer, version, protocol, stream } = met;
        if protocol == Protocol::Api {
            let stream = ApiStream { from: peer.node, stream: Box::new(stream.stream) };
            if self.api.try_send(stream).is_err() {
                tracing::warn!("peers: too many requests were passed on: one is refused");
            }
            return;
        }
        self.connected += 1;
        let connection = self.connected;
        let outbox = Arc::new(SharedOutbox::default());
        for frame in next::greetings(self.identity.versions, version) {
            outbox.edit(|it| it.add(frame));
        }
        let (happenings, versions) = (self.happenings.clone(), self.identity.versions);
        let carried = {
            let (outbox, received) = (outbox.clone(), happenings.clone());
            async move {
                let received = |said| {
                    let happening = Happening::Received(connection, said);
                    // The thread is over: so is the connection.
                    let sent = received.send(happening);
                    async { drop(sent.await) }
                };
                let error = run_frames(stream, versions, outbox, received).await;
                let _ = happenings.send(Happening::Closed(connection, error)).await;
            }
        };
        let task = tokio::spawn(carried).abort_handle();
        let it = Connection { peer: peer.clone(), version, outbox, task };
        self.connections.insert(connection, it);
        self.exchange.connected(connection, peer);
        self.show_connected();
    }

    /// Refused ones are counted, and told now and then.
    fn refused(&mut self, now: Mono, from: SocketAddr, error: &ConnectionError) {
        self.status.lock().refused_connections += 1;
        if self.refusal_told.is_none_or(|at| now.since(at) >= TELL_AGAIN) {
            self.refusal_told = Some(now);
            tracing::warn!("peers: a connection from {from} was refused: {error}");
        }
    }

    /// It is passed over, and told now and then.
    fn not_understood(&mut self, now: Mono, connection: ConnectionId, why: &str) {
        let Some(it) = self.connections.get(&connection) else { return };
        if self.not_understood_told.is_none_or(|at| now.since(at) >= TELL_AGAIN) {
            self.not_understood_told = Some(now);
            let (node, version) = (&it.peer.node, it.version);
            tracing::warn!(
                "peers: {node} says, in version {version}, what this node does not understand: {why}"
            );
        }
    }

    fn show_connected(&self) {
        let connected = self.connections.values().map(|it| it.peer.node.clone()).collect();
        self.status.lock().connected = connected;
    }

    fn go_on(&mut self) {
        let now = self.clock.now();
        if now >= self.say_due() {
            self.say();
        }
        self.exchange.pass(now);
        self.perform();
    }

    /// Facts become text once, for all.
    fn say(&mut self) {
        let Some(facts) = self.pending.take() else { return };
        let text = FactsText::new(&facts, self.identity.versions);
        self.said_at = Some(self.clock.now());
        self.frames.clear();
        self.mesh.tell(MeshCommand::Say { version: text.version, hash: text.hash });
        self.exchange.say(text);
        // In this order, whatever follows.
        self.perform();
    }

    fn perform(&mut self) {
        for action in self.exchange.take_actions() {
            match action {
                PeerAction::Tell(event) => self.sink.push(event),
                PeerAction::Call { peer, at } => self.call(peer, at),
                PeerAction::HangUp(connection) => {
                    self.connections.remove(&connection);
                    self.show_connected();
                }
                PeerAction::PushFacts(connection) => self.push_facts(connection),
                PeerAction::Pull(connection) => self.give(connection, |version, outbox| {
                    outbox.edit(|it| it.set_pull(frame::pull(version)));
                }),
                PeerAction::Send(connection, message) => {
                    self.give(connection, |version, outbox| {
                        outbox.edit(|it| it.add(frame::sent(version, &message)));
                    })
                }
            }
        }
    }

    fn give(&self, connection: ConnectionId, give: impl FnOnce(u8, &SharedOutbox)) {
        if let Some(it) = self.connections.get(&connection) {
            give(it.version, &it.outbox);
        }
    }

    fn push_facts(&mut self, connection: ConnectionId) {
        let Some(said) = self.exchange.said() else { return };
        let Some(it) = self.connections.get(&connection) else { return };
        let frame = self.frames.entry(it.version).or_insert_with(|| said.frame(it.version)).clone();
        it.outbox.edit(|outbox| outbox.set_facts(frame));
    }

    fn call(&self, peer: PeerKey, at: SocketAddr) {
        let (identity, happenings) = (self.identity.clone(), self.happenings.clone());
        tokio::spawn(async move {
            let called = identity.call(&peer.node, Some(&peer), at, Protocol::Fleet).await;
            let happening = match called {
                Ok(met) => Happening::Met(Box::new(met)),
                Err(error) => Happening::CallFailed(peer, error),
            };
            let _ = happenings.send(happening).await;
        });
    }

    /// Everybody hears the last facts, and then that this node goes.
    async fn leave(&mut self, happened: &mut mpsc::Receiver<Happening>) {
        self.say();
        self.connections.values().for_each(|it| it.outbox.edit(|outbox| outbox.end()));
        let all_closed = async {
            while !self.connections.is_empty() {
                match happened.recv().await {
                    Some(Happening::Closed(connection, _)) => {
                        drop(self.connections.remove(&connection));
                    }
                    Some(_) => {}
                    None => return,
                }
            }
        };
        let _ = timeout(FAREWELL, all_closed).await;
        let (told, left) = oneshot::channel();
        self.mesh.tell(MeshCommand::Leave(told));
        let _ = left.await;
    }
}

/// What the thread is made of.
#[derive(Debug)]
pub(crate) struct PeerParts {
    pub(crate) identity: OwnIdentity,
    pub(crate) exchange: Exchange,
    pub(crate) mesh: MeshHandle,
    pub(crate) clock: Clock,
    pub(crate) sink: EventSink,
    pub(crate) status: Arc<SharedStatus>,
    pub(crate) api: mpsc::Sender<ApiStream>,
}

/// Answers whoever calls, a few at a time: others wait until one of those has said who it is, or had
/// its time to.
async fn answer_calls(
    listener: TcpListener,
    identity: Arc<OwnIdentity>,
    happenings: mpsc::Sender<Happening>,
) {
    let connections = Connections::new(HANDSHAKES, Full::NewcomerWaits);
    let accepting = AcceptLoop { listener: Arc::new(listener), connections };
    let answer = |Arrival { accepted: (tcp, from), .. }: Arrival<_>| {
        let (identity, happenings) = (identity.clone(), happenings.clone());
        async move {
            let happening = match identity.answer(tcp).await {
                Ok(met) => Happening::Met(Box::new(met)),
                Err(error) => Happening::Refused(from, error),
            };
            let _ = happenings.send(happening).await;
        }
    };
    match accepting.run(answer).await {}
}
