//! What happens on all nodes of the fleet, as one stream.
//!
//! Each node is read by a task of its own, this one as the others. Without `follow` all that is kept
//! comes in the order of its times; with it, events as they come. Every event says which node it is
//! of, and its id is how far each node has been read: `web-1=run:seq,web-2=run:seq`. A node that
//! joins is read from then on; one that was lost goes on where it was when it is back.

use super::{Hop, Question, pass_on};
use crate::{
    RouterState,
    problem::Problem,
    routes::v1::events::{kind, own_events},
};
use axum::{
    body::{Body, BodyDataStream},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt};
use mainstay_core::{fleet::PeerState, name::Name};
use mainstay_net::percent::segment;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

/// Of each node, read and not yet taken by the client.
const AHEAD: usize = 64;
/// A node whose stream has ended is read again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// No event is longer: whoever sends such a thing is not read any further.
const LONGEST: usize = 1 << 20;

/// Where a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Beginning {
    Now,
    /// With the first that is kept.
    Kept,
    /// Behind what a client has seen, as its last id says.
    After(String),
}

/// How far nodes have been read: the id of the last event of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Positions(BTreeMap<Name, String>);

impl Positions {
    fn parse(id: &str) -> Option<Positions> {
        let one = |pair: &str| {
            let (node, at) = pair.split_once('=')?;
            Some((Name::new(node).ok()?, at.to_owned()))
        };
        id.split(',').map(one).collect::<Option<_>>().map(Positions)
    }

    fn id(&self) -> String {
        let all = self.0.iter().map(|(node, at)| format!("{node}={at}"));
        all.collect::<Vec<_>>().join(",")
    }
}

/// What a node has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NodeFrame {
    node: Name,
    /// How far it has been read with this one.
    id: Option<String>,
    /// Name and data; `None`: only where it is, or that it is alive.
    event: Option<(String, String)>,
}

/// How nodes are read.
#[derive(Debug, Clone)]
struct FleetReading {
    state: RouterState,
    hop: Hop,
    beginning: Beginning,
    follow: bool,
    job: Option<String>,
}

pub(crate) fn stream(
    state: &RouterState,
    hop: Hop,
    beginning: Beginning,
    follow: bool,
    job: Option<&str>,
) -> Result<Response, Problem> {
    if state.handle.node_name().is_none() {
        return Err(Problem::no_fleet());
    }
    let positions = match &beginning {
        Beginning::Now | Beginning::Kept => Positions::default(),
        Beginning::After(id) => Positions::parse(id).ok_or_else(|| {
            Problem::bad_request("Last-Event-ID is not the id of an event of a fleet")
        })?,
    };
    let (state, job) = (state.clone(), job.map(str::to_owned));
    let reading = FleetReading { state, hop, beginning, follow, job };
    let body = match follow {
        true => {
            let (send, frames) = mpsc::channel(AHEAD);
            tokio::spawn(reading.follow_all(positions.clone(), send));
            let next = |mut frames: mpsc::Receiver<NodeFrame>| async {
                Some((frames.recv().await?, frames))
            };
            told(positions, stream::unfold(frames, next))
        }
        false => {
            let kept = reading.read_all(&positions);
            told(positions, stream::unfold(kept, KeptEvents::next))
        }
    };
    Ok((kind(), body).into_response())
}

/// Frames as they are sent, each with how far all nodes have been read.
fn told(
    positions: Positions,
    frames: impl stream::Stream<Item = NodeFrame> + Send + 'static,
) -> Body {
    let write = |positions: &mut Positions, frame: NodeFrame| {
        let text = positions.write(frame);
        std::future::ready(Some(Ok::<_, Infallible>(Bytes::from(text))))
    };
    Body::from_stream(frames.scan(positions, write))
}

impl Positions {
    fn write(&mut self, frame: NodeFrame) -> String {
        let NodeFrame { node, id, event } = frame;
        let has_moved = id.is_some();
        if let Some(id) = id {
            self.0.insert(node.clone(), id);
        }
        match (event, has_moved) {
            (Some((name, data)), _) => {
                let data = data.strip_prefix('{').unwrap_or(&data);
                let id = self.id();
                format!("id: {id}\nevent: {name}\ndata: {{\"node\":\"{node}\",{data}\n\n")
            }
            (None, true) => format!("id: {}\n: from here\n\n", self.id()),
            (None, false) => ":\n\n".to_owned(),
        }
    }
}

impl FleetReading {
    /// This node, and those that take part.
    fn nodes(&self) -> BTreeSet<Name> {
        let handle = &self.state.handle;
        let states = handle.peer_states().map(|states| states.borrow().clone());
        let running = states.into_iter().flatten().filter(|it| it.1 == PeerState::Running);
        handle.node_name().cloned().into_iter().chain(running.map(|it| it.0)).collect()
    }

    /// Reads all nodes until nobody takes any more, or the run is over.
    async fn follow_all(self, mut positions: Positions, send: mpsc::Sender<NodeFrame>) {
        let Some(mut states) = self.state.handle.peer_states() else { return };
        let mut tasks = JoinSet::new();
        let mut being_read = BTreeSet::new();
        loop {
            states.mark_unchanged();
            for node in self.nodes() {
                if being_read.insert(node.clone()) {
                    let at = positions.0.get(&node).cloned();
                    tasks.spawn(self.clone().follow_one(node, at, send.clone()));
                }
            }
            tokio::select! {
                () = send.closed() => return,
                Some(Ok((node, at))) = tasks.join_next() => {
                    let is_own = self.state.handle.node_name() == Some(&node);
                    if is_own && *self.state.ending.borrow() {
                        return;
                    }
                    being_read.remove(&node);
                    positions.0.extend(at.map(|at| (node, at)));
                }
                changed = states.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Reads one node to the end of its stream; how far that was.
    async fn follow_one(
        self,
        node: Name,
        mut at: Option<String>,
        send: mpsc::Sender<NodeFrame>,
    ) -> (Name, Option<String>) {
        if let Ok(body) = self.open(&node, at.as_deref()).await {
            let mut frames = FrameReader::new(node.clone(), body);
            while let Some(frame) = frames.next().await {
                at = frame.id.clone().or(at);
                if send.send(frame).await.is_err() {
                    return (node, at);
                }
            }
        }
        if !*self.state.ending.borrow() {
            sleep(AGAIN).await;
        }
        (node, at)
    }

    /// What all nodes have kept.
    fn read_all(self, positions: &Positions) -> KeptEvents {
        let mut kept = KeptEvents { open: BTreeMap::new(), heads: BTreeMap::new() };
        for node in self.nodes() {
            let (send, frames) = mpsc::channel(AHEAD);
            let (reading, at) = (self.clone(), positions.0.get(&node).cloned());
            kept.open.insert(node.clone(), frames);
            tokio::spawn(reading.read_one(node, at, send));
        }
        kept
    }

    async fn read_one(self, node: Name, at: Option<String>, send: mpsc::Sender<NodeFrame>) {
        let Ok(body) = self.open(&node, at.as_deref()).await else { return };
        let mut frames = FrameReader::new(node, body);
        while let Some(frame) = frames.next().await {
            if send.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// The events of a node, behind the one with this id if there is one.
    async fn open(&self, node: &Name, at: Option<&str>) -> Result<Body, Problem> {
        let since = (at.is_none() && self.beginning == Beginning::Kept).then_some(0);
        if self.state.handle.node_name() == Some(node) {
            return own_events(&self.state, since, at, self.follow, self.job.clone());
        }
        let since = since.map_or("", |_| "&since=0");
        let job = self.job.as_ref().map_or(String::new(), |job| format!("&job={}", segment(job)));
        let target = format!("/v1/events?here=true&follow={}{since}{job}", self.follow);
        let question = Question::get(target).after(at);
        let answer = pass_on(&self.state, self.hop, node, question).await?;
        Ok(answer.into_response().await?.into_body())
    }
}

/// What nodes have kept, in the order of its times.
struct KeptEvents {
    open: BTreeMap<Name, mpsc::Receiver<NodeFrame>>,
    /// The next of each, and when that was.
    heads: BTreeMap<Name, (String, NodeFrame)>,
}

impl KeptEvents {
    async fn next(mut self) -> Option<(NodeFrame, KeptEvents)> {
        let waiting: Vec<Name> =
            self.open.keys().filter(|node| !self.heads.contains_key(*node)).cloned().collect();
        for node in waiting {
            match self.open.get_mut(&node)?.recv().await {
                Some(frame) => drop(self.heads.insert(node, (time_of(&frame), frame))),
                None => drop(self.open.remove(&node)),
            }
        }
        let first = self.heads.iter().min_by_key(|(_, (time, _))| time)?.0.clone();
        let (_, frame) = self.heads.remove(&first)?;
        Some((frame, self))
    }
}

/// What is no event comes first.
fn time_of(frame: &NodeFrame) -> String {
    let data = frame.event.as_ref().and_then(|(_, data)| serde_json::from_str::<Value>(data).ok());
    data.and_then(|data| Some(data["time"].as_str()?.to_owned())).unwrap_or_default()
}

/// The frames of one node, as it sends them.
struct FrameReader {
    node: Name,
    body: BodyDataStream,
    rest: BytesMut,
}

impl FrameReader {
    fn new(node: Name, body: Body) -> FrameReader {
        FrameReader { node, body: body.into_data_stream(), rest: BytesMut::new() }
    }

    /// `None`: its stream has ended, however it has.
    async fn next(&mut self) -> Option<NodeFrame> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|it| it == b"\n\n") {
                let frame = self.rest.split_to(end + 2);
                return Some(self.read(&String::from_utf8_lossy(&frame)));
            }
            if self.rest.len() > LONGEST {
                return None;
            }
            self.rest.extend_from_slice(&self.body.next().await?.ok()?);
        }
    }

    fn read(&self, text: &str) -> NodeFrame {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.next().map(|value| value.trim_start().to_owned())
        };
        let event = field("event:").zip(field("data:"));
        NodeFrame { node: self.node.clone(), id: field("id:"), event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn reader(pieces: &[&'static str]) -> FrameReader {
        let pieces: Vec<_> =
            pieces.iter().map(|it| Ok::<_, Infallible>(Bytes::from(*it))).collect();
        FrameReader::new(name("b"), Body::from_stream(stream::iter(pieces)))
    }

    async fn all(mut reader: FrameReader) -> Vec<NodeFrame> {
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await {
            frames.push(frame);
        }
        frames
    }

    #[tokio::test]
    async fn what_a_node_sends_is_told_with_its_name_and_how_far_all_are() {
        let pieces = [
            "id: r2:7\n: from he",
            "re\n\nid: r2:8\nevent: sta",
            "rtup\ndata: {\"seq\":8}\n\n:\n\nid:",
        ];
        let mut positions = Positions::parse("a=r1:3").expect("an id");
        let told: Vec<String> =
            all(reader(&pieces)).await.into_iter().map(|it| positions.write(it)).collect();
        assert_eq!(
            told,
            [
                "id: a=r1:3,b=r2:7\n: from here\n\n",
                "id: a=r1:3,b=r2:8\nevent: startup\ndata: {\"node\":\"b\",\"seq\":8}\n\n",
                ":\n\n",
            ]
        );
        assert_eq!(Positions::parse(&positions.id()), Some(positions));
        assert_eq!(Positions::parse("r1:3"), None);
    }

    #[tokio::test]
    async fn what_nodes_have_kept_comes_in_the_order_of_its_times() {
        let mut kept = KeptEvents { open: BTreeMap::new(), heads: BTreeMap::new() };
        for (node, times) in [("a", [1, 4]), ("b", [2, 3])] {
            let (send, frames) = mpsc::channel(AHEAD);
            for time in times {
                let data = format!("{{\"time\":\"{time}\"}}");
                let event = Some(("startup".to_owned(), data));
                send.try_send(NodeFrame { node: name(node), id: None, event }).expect("room");
            }
            kept.open.insert(name(node), frames);
        }
        let mut order = Vec::new();
        while let Some((frame, rest)) = kept.next().await {
            order.push(time_of(&frame));
            kept = rest;
        }
        assert_eq!(order, ["1", "2", "3", "4"].map(str::to_owned));
    }
}
