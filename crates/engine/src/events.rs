//! What an engine has to say to core, until core has the time: a queue that does not grow, since of
//! what is said again only the last counts.

use mainstay_core::fleet::{EngineEvent, Message};
use std::{
    collections::VecDeque,
    mem::discriminant,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Beyond that the oldest goes: orders are given again.
const SENT: usize = 1024;
/// Contents of profiles are large, and are asked for again.
const DELIVERIES: usize = 16;

#[derive(Debug, Default)]
struct Queue {
    events: Mutex<VecDeque<EngineEvent>>,
    added: Notify,
}

/// The end where events go in.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventSink(Arc<Queue>);

/// The end where they come out.
#[derive(Debug)]
pub struct EngineEvents(Arc<Queue>);

impl EventSink {
    pub(crate) fn events(&self) -> EngineEvents {
        EngineEvents(self.0.clone())
    }

    pub(crate) fn push(&self, event: EngineEvent) {
        add(&mut self.0.lock(), event);
        self.0.added.notify_one();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<EngineEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EngineEvents {
    /// The next one. May be dropped at any time.
    pub async fn next(&mut self) -> EngineEvent {
        loop {
            if let Some(event) = self.0.lock().pop_front() {
                return event;
            }
            self.0.added.notified().await;
        }
    }
}

fn add(events: &mut VecDeque<EngineEvent>, event: EngineEvent) {
    match &event {
        // Members come before what they say, and go after their last words.
        EngineEvent::Members(_) => events.push_back(event),
        EngineEvent::Said { .. } => match events.iter_mut().find(|it| replaces(&event, it)) {
            Some(earlier) => *earlier = event,
            None => events.push_back(event),
        },
        EngineEvent::Leader { .. } => {
            events.retain(|it| discriminant(it) != discriminant(&event));
            events.push_back(event);
        }
        EngineEvent::Sent { message, .. } => {
            if let Message::Profile(_) = message {
                drop_oldest(events, DELIVERIES, |it| {
                    matches!(it, EngineEvent::Sent { message: Message::Profile(_), .. })
                });
            }
            drop_oldest(events, SENT, |it| matches!(it, EngineEvent::Sent { .. }));
            events.push_back(event);
        }
    }
    drop_outdated_members(events);
}

/// Makes room for one more of those of which there are so many at most.
fn drop_oldest(events: &mut VecDeque<EngineEvent>, most: usize, is: fn(&EngineEvent) -> bool) {
    if events.iter().filter(|it| is(it)).count() >= most
        && let Some(oldest) = events.iter().position(is)
    {
        events.remove(oldest);
    }
}

/// Of members that follow each other the last count.
fn drop_outdated_members(events: &mut VecDeque<EngineEvent>) {
    let are_members = |it: Option<&EngineEvent>| matches!(it, Some(EngineEvent::Members(_)));
    let mut at = 0;
    while at < events.len() {
        match are_members(events.get(at)) && are_members(events.get(at + 1)) {
            true => drop(events.remove(at)),
            false => at += 1,
        }
    }
}

fn replaces(later: &EngineEvent, earlier: &EngineEvent) -> bool {
    match (later, earlier) {
        (EngineEvent::Said { node, facts }, EngineEvent::Said { node: of, facts: before }) => {
            node == of && facts.run == before.run
        }
        (
            EngineEvent::Members(_)
            | EngineEvent::Said { .. }
            | EngineEvent::Leader { .. }
            | EngineEvent::Sent { .. },
            _,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_core::{
        fleet::{FleetMember, JobOrder, MemberId, Number, OrderKind, Role, RunId, Term},
        name::Name,
        rollout::{Content, Digest, ProfileDelivery, Version},
    };

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn members(count: u64) -> EngineEvent {
        let member = |id| FleetMember { node: name("a"), run: RunId::new("1"), id: MemberId(id) };
        EngineEvent::Members((0..count).map(member).collect())
    }

    fn leader(number: u64) -> EngineEvent {
        EngineEvent::Leader { role: Role::Master, term: Term { number, master: name("a") } }
    }

    fn sent(counter: u64) -> EngineEvent {
        let number = Number { term: Term { number: 1, master: name("a") }, counter };
        let order = JobOrder { number, job: name("web"), what: OrderKind::Stop };
        EngineEvent::Sent { from: name("a"), message: Message::Order(order) }
    }

    #[tokio::test]
    async fn what_is_said_again_takes_the_place_of_what_still_waits() {
        let sink = EventSink::default();
        let mut events = sink.events();
        for event in [members(0), members(1), leader(1), sent(1), members(2), leader(2), sent(2)] {
            sink.push(event);
        }
        for expected in [members(1), sent(1), members(2), leader(2), sent(2)] {
            assert_eq!(events.next().await, expected);
        }
    }

    #[tokio::test]
    async fn it_does_not_grow_without_end() {
        let sink = EventSink::default();
        (0..3000).for_each(|counter| sink.push(sent(counter)));
        assert_eq!(sink.0.lock().len(), SENT);
        assert_eq!(sink.events().next().await, sent(3000 - SENT as u64));
        let version = Version { label: None, digest: Digest([1; 32]), secrets: None, rotation: 0 };
        let content = Content {
            content_type: "text/plain".to_owned(),
            body: b"x".to_vec(),
            secrets: Default::default(),
        };
        let message = Message::Profile(ProfileDelivery::new(name("app"), version, content));
        let delivery = EngineEvent::Sent { from: name("a"), message };
        (0..100).for_each(|_| sink.push(delivery.clone()));
        let waits = sink.0.lock().iter().filter(|it| **it == delivery).count();
        assert_eq!(waits, DELIVERIES);
    }
}
