//! Between the rollout and the fleet of a node: profiles that go through the fleet in waves. What each
//! says to the other is core's, and so is what follows; contents are read, checked and sent beside
//! the loop.

use super::{RolloutRoom, perform::Performers};
use crate::{
    agent::{Agent, End},
    clock,
};
use mainstay_core::{
    clock::Now,
    fleet::{EngineCommand, Message},
    name::Name,
    rollout::{ProfileDelivery, RolloutInput, Version, WaveFeed},
};
use mainstay_engine::Engine;
use mainstay_pool::ROLLOUT;
use mainstay_rollout::profile::is_content_of;
use std::{collections::BTreeMap, sync::Arc};

impl Agent {
    /// The rollout hears what the fleet serves.
    pub(crate) fn feed_rollout(&mut self) -> Result<(), End> {
        let (Some(fleet), Some(room)) = (&self.fleet, self.rollout.room_mut()) else {
            return Ok(());
        };
        let goes_in_waves = room.plan.wave.is_some() || !room.fed.is_empty();
        match goes_in_waves && room.feed(clock::now(), fleet.wave_feeds()) {
            true => self.tell_rollout(),
            false => Ok(()),
        }
    }

    /// The fleet hears how profiles stand here, as far as that is on the disk.
    pub(super) fn report_waves(&mut self) -> Result<(), End> {
        let Some(fleet) = &mut self.fleet else { return Ok(()) };
        let report = self.rollout.room().and_then(|room| room.report.as_ref());
        match fleet.tell_waves(clock::mono(), report) {
            true => self.tell_fleet(),
            false => Ok(()),
        }
    }

    /// Another node lacks a content that is here.
    pub(crate) fn give_profile(&mut self, to: Name, profile: Name, version: Version) {
        let engine = self.fleet.as_ref().and_then(|fleet| fleet.engine());
        if let (Some(room), Some(engine)) = (self.rollout.room(), engine) {
            room.performers.give(engine, to, profile, version);
        }
    }

    /// A content has come that this node lacks.
    pub(crate) fn take_profile(&mut self, delivery: ProfileDelivery) {
        if let Some(room) = self.rollout.room() {
            room.performers.take(delivery);
        }
    }
}

impl RolloutRoom {
    /// Whether what the fleet serves is news.
    fn feed(&mut self, now: Now, feeds: BTreeMap<Name, WaveFeed>) -> bool {
        let is_news = self.fed != feeds;
        if is_news {
            self.fed = feeds.clone();
            self.step(now, RolloutInput::Fed(feeds));
        }
        is_news
    }
}

impl Performers {
    fn give(&self, engine: Arc<Engine>, to: Name, profile: Name, version: Version) {
        let (store, of, wanted) = (self.store.clone(), profile.clone(), version.clone());
        let report = self.report.clone();
        let read = ROLLOUT.ask(move || store.content(&of, &wanted));
        tokio::spawn(async move {
            match read.await {
                Ok(Ok(content)) => {
                    let delivery = ProfileDelivery::new(profile, version, content);
                    let message = Message::Profile(delivery);
                    engine.command(EngineCommand::Send { to, message });
                }
                // It asks somebody else, and so does this node.
                Ok(Err(loss)) => {
                    tracing::warn!("node {to} wants a profile: {loss}");
                    if loss.is_gone() {
                        // Nobody listens only when the agent is gone.
                        let _ = report.send(RolloutInput::Lost { profile, version });
                    }
                }
                Err(unserved) => tracing::warn!("node {to} wants a profile: {unserved}"),
            }
        });
    }

    /// Nothing is taken that is not what it says.
    fn take(&self, delivery: ProfileDelivery) {
        let report = self.report.clone();
        tokio::spawn(async move {
            let check = move || {
                let content = delivery.content();
                (is_content_of(&delivery.version, &content), delivery, content)
            };
            match ROLLOUT.run(check).await {
                Ok((true, ProfileDelivery { profile, version, .. }, content)) => {
                    let content = Arc::new(content);
                    // Nobody listens only when the agent is gone.
                    let _ = report.send(RolloutInput::Arrived { profile, version, content });
                }
                Ok((false, delivery, _)) => {
                    tracing::error!(
                        "a content that another node has sent is another: {delivery:?}"
                    );
                }
                Err(unserved) => tracing::warn!("a profile cannot be taken: {unserved}"),
            }
        });
    }
}
