//! Between the room of the fleet and the loop: orders become inputs of the node, what has become of
//! its jobs is told to the fleet.

use super::{FleetAction, FleetRoom, FleetWake};
use crate::{
    agent::{Agent, End},
    clock,
};
use mainstay_core::{
    fleet::{FleetInput, FleetRequest, RequestAnswer},
    node::{Input, NodePhase, Request},
};
use tokio::sync::oneshot;

/// Returns when the fleet has something to look at; never without one. May be dropped at any time.
pub(crate) async fn next_wake(room: &mut Option<FleetRoom>) -> FleetWake {
    match room {
        Some(room) => room.next_wake(clock::mono).await,
        None => std::future::pending().await,
    }
}

impl Agent {
    pub(crate) fn on_fleet(&mut self, wake: FleetWake) -> Result<(), End> {
        if let Some(room) = &mut self.fleet {
            room.take(clock::mono(), wake);
        }
        self.tell_fleet()
    }

    /// A user asks something of the fleet. Without one nobody answers.
    pub(crate) fn ask_fleet(
        &mut self,
        request: FleetRequest,
        caller: oneshot::Sender<RequestAnswer>,
    ) -> Result<(), End> {
        if let Some(room) = &mut self.fleet {
            room.ask(clock::mono(), request, caller);
        }
        self.tell_fleet()
    }

    /// The node is to end once others have what it runs, or stays after all.
    pub(crate) fn hand_over(&mut self, on: bool) -> Result<(), End> {
        if let Some(room) = &mut self.fleet {
            room.step(clock::mono(), FleetInput::HandOver { on });
        }
        self.tell_fleet()
    }

    /// Does what the fleet wants, and tells it what has changed here, until both are done; then the
    /// rollout hears what the fleet serves.
    pub(crate) fn tell_fleet(&mut self) -> Result<(), End> {
        self.do_for_fleet()?;
        self.feed_rollout()
    }

    fn do_for_fleet(&mut self) -> Result<(), End> {
        loop {
            // Before any order: it may be for one who waits for that.
            self.hear_elsewhere()?;
            while let Some(action) = self.fleet.as_mut().and_then(FleetRoom::next_action) {
                self.do_fleet_action(action)?;
            }
            let Some(room) = &mut self.fleet else { return Ok(()) };
            if !std::mem::take(&mut self.fleet_is_behind) {
                return Ok(());
            }
            let now = clock::mono();
            room.apply(now, self.node.plan());
            room.tell_jobs(now, self.node.copies());
            if self.node.phase() == NodePhase::Stopping {
                room.end(now);
            }
        }
    }

    fn hear_elsewhere(&mut self) -> Result<(), End> {
        let news = self.fleet.as_ref().map(|room| room.news_for(&self.node)).unwrap_or_default();
        for (job, copy) in news {
            self.take_alone(Input::Elsewhere { job, copy })?;
        }
        Ok(())
    }

    fn do_fleet_action(&mut self, action: FleetAction) -> Result<(), End> {
        self.take_alone(match action {
            FleetAction::Give { to, profile, version } => {
                self.give_profile(to, profile, version);
                return Ok(());
            }
            FleetAction::Take(delivery) => {
                self.take_profile(delivery);
                return Ok(());
            }
            FleetAction::Order { job, order, what, said } => {
                Input::Ordered { job, order, what, said }
            }
            FleetAction::EndRun { again: false } => Input::Request(Request::Shutdown),
            FleetAction::EndRun { again: true } => Input::Request(Request::BeginAnew),
            FleetAction::Tell(event) => Input::Fleet(event),
        })
    }
}
