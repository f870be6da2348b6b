//! How the node comes to take part: with what an earlier run left, on the engine that its plan names.

use super::{Carrier, FleetPeers, FleetRoom, open};
use crate::clock;
use mainstay_core::{
    fleet::{Identity, RunId},
    name::Name,
    plan::{FleetNode, FleetPlan, Plan},
};
use mainstay_engine::{Engine, EngineError, FleetKeys, KeyError, MeshConfig, Roster, Versions};
use mainstay_sys::proc;
use mainstay_wire::link::Welcome;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Why a node cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("[fleet] key_file cannot be used: {0}")]
    Key(#[from] KeyError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("'{0}' cannot name a node of a fleet")]
    Name(String),
}

/// Takes part in the fleet of the plan, if it has one.
pub(crate) async fn join(
    plan: &Plan,
    welcome: &Welcome,
) -> Result<Option<(FleetRoom, FleetPeers)>, JoinError> {
    let Some(fleet) = plan.fleet.as_deref() else { return Ok(None) };
    let name = &plan.node.name;
    let me = Name::new(name).map_err(|_| JoinError::Name(name.clone()))?;
    let state_dir = &welcome.state_dir;
    let found = open(state_dir, &fleet.name, &me);
    let run = RunId::new(&welcome.run);
    let config = MeshConfig {
        fleet: fleet.name.to_string(),
        me: me.clone(),
        run: run.clone(),
        listen: fleet.listen,
        roster: roster(fleet),
        highest_term: found.kept.highest_term.clone(),
        tick: fleet.tick,
        keys: FleetKeys::read(&fleet.key_file)?,
        versions: Versions::of_program(),
    };
    let (engine, mut events, streams) = Engine::start(config).await?;
    let engine = Arc::new(engine);
    let (to_room, incoming) = mpsc::channel(1);
    tokio::spawn(async move {
        // What waits is kept by the engine, which knows what is outdated.
        while let Ok(room) = to_room.reserve().await {
            room.send(events.next().await);
        }
    });
    let machine = plan.node.machine.clone().unwrap_or_else(proc::boot_id);
    let identity = Identity { name: me.clone(), run, machine };
    let carrier = Carrier::mesh(engine.clone(), incoming);
    let now = clock::mono();
    let room = FleetRoom::new(now, identity, (plan, fleet), (state_dir, found), carrier);
    let is_successor = welcome.agent_restarts > 0 || !welcome.upgraded.is_empty();
    let room = if is_successor { room.resuming(now) } else { room };
    let peers = FleetPeers::new(me, engine, streams, &room);
    Ok(Some((room, peers)))
}

/// Whom the engine looks for.
pub(super) fn roster(fleet: &FleetPlan) -> Roster {
    let node = |node: &FleetNode| (node.name.clone(), node.address.clone());
    Roster {
        nodes: fleet.nodes.iter().map(node).collect(),
        join: fleet.join.clone(),
        core: fleet.core.iter().cloned().collect(),
    }
}
