//! Who can be reached: SWIM, by foca, with its timers as values.
//!
//! Every node asks another one in turn whether it is there. One that does not answer, nor through
//! others, is suspected, and gone if it does not object. With the tick that a user writes:
//!
//! | of a tick | |
//! |---|---|
//! | 1/5 | from one question to the next |
//! | 1/10 | until others are asked to ask |
//! | 3/5 | to object |

use super::{
    datagram::ROOM,
    digest::{Digest, Digests},
    identity::{MeshCodec, MeshId},
    seal::Seed,
};
use foca::{Config, Foca, Member, Notification, PeriodicParams, Runtime, Timer};
use mainstay_core::clock::Mono;
use rand::{SeedableRng, rngs::SmallRng};
use std::{
    collections::BTreeMap,
    num::{NonZeroU8, NonZeroUsize},
    sync::mpsc::Receiver,
    time::Duration,
};

/// A run that is gone is remembered, so that what is said of it late is known to be late.
const REMEMBER_GONE: Duration = Duration::from_secs(600);
/// How often each change is passed on by each node.
const PASSED_ON: NonZeroU8 = NonZeroU8::new(10).expect("not zero");
const HELPERS: NonZeroUsize = NonZeroUsize::new(3).expect("not zero");

/// How a tick is spent.
fn config(tick: Duration) -> Config {
    let every = |frequency, num_members| Some(PeriodicParams { frequency, num_members });
    Config {
        probe_period: tick / 5,
        probe_rtt: tick / 10,
        num_indirect_probes: HELPERS,
        max_transmissions: PASSED_ON,
        suspect_to_down_after: tick * 3 / 5,
        remove_down_after: Some(REMEMBER_GONE),
        max_packet_size: const { NonZeroUsize::new(ROOM).expect("not zero") },
        notify_down_members: true,
        periodic_announce: every(tick * 5, NonZeroUsize::MIN),
        // Whoever is gone is looked for with those that never came.
        periodic_announce_to_down_members: None,
        periodic_gossip: every(tick / 5, HELPERS),
    }
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SwimEvent {
    Up(MeshId),
    Down(MeshId),
    /// This node was given up, and has come back as the next generation.
    Rejoined,
    /// Nobody is left.
    Alone,
}

pub(crate) struct Swim {
    foca: Foca<MeshId, MeshCodec, SmallRng, Digests>,
    sinks: Sinks,
    digests: Receiver<Digest>,
}

/// What foca wants done.
#[derive(Debug, Default)]
struct Sinks {
    now: Mono,
    sends: Vec<(MeshId, Vec<u8>)>,
    events: Vec<SwimEvent>,
    /// When they are due, and the order in which they were wanted.
    timers: BTreeMap<(Mono, u64), Timer<MeshId>>,
    counter: u64,
}

impl Runtime<MeshId> for &mut Sinks {
    fn notify(&mut self, notification: Notification<'_, MeshId>) {
        self.events.extend(match notification {
            Notification::MemberUp(id) => Some(SwimEvent::Up(id.clone())),
            Notification::MemberDown(id) => Some(SwimEvent::Down(id.clone())),
            Notification::Rejoin(_) => Some(SwimEvent::Rejoined),
            Notification::Idle => Some(SwimEvent::Alone),
            // The run is the same; or nothing that anybody acts on.
            Notification::Rename(..) | Notification::Active | Notification::Defunct => None,
        });
    }

    fn send_to(&mut self, to: MeshId, data: &[u8]) {
        self.sends.push((to, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<MeshId>, after: Duration) {
        self.counter += 1;
        self.timers.insert((self.now.after(after), self.counter), event);
    }
}

impl std::fmt::Debug for Swim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Swim").field("me", self.foca.identity()).finish_non_exhaustive()
    }
}

impl Swim {
    pub(crate) fn new(me: MeshId, tick: Duration, seed: Seed) -> Swim {
        let (handler, digests) = Digests::new();
        let rng = SmallRng::from_seed(seed.give("dice", 0));
        let foca = Foca::with_custom_broadcast(me, config(tick), rng, MeshCodec, handler);
        Swim { foca, sinks: Sinks::default(), digests }
    }

    pub(crate) fn me(&self) -> &MeshId {
        self.foca.identity()
    }

    /// Those that can be reached, without this node.
    pub(crate) fn members(&self) -> impl Iterator<Item = &MeshId> {
        self.foca.iter_members().map(Member::id)
    }

    pub(crate) fn has(&self, id: &MeshId) -> bool {
        self.members().any(|it| it.is_same_run(id))
    }

    /// Something came from another node. `false`: it is not to be understood.
    pub(crate) fn take(&mut self, now: Mono, data: &[u8]) -> bool {
        self.sinks.now = now;
        match self.foca.handle_data(data, &mut self.sinks) {
            Ok(()) => true,
            Err(
                foca::Error::DataTooBig
                | foca::Error::MalformedPacket
                | foca::Error::Decode(_)
                | foca::Error::CustomBroadcast(_)
                | foca::Error::IndirectForOurselves,
            ) => false,
            // Two of one name and run, or it is understood and nothing came of it.
            Err(_) => true,
        }
    }

    /// Whatever is due is done.
    pub(crate) fn pass(&mut self, now: Mono) {
        self.sinks.now = now;
        while let Some(entry) = self.sinks.timers.first_entry()
            && entry.key().0 <= now
        {
            let timer = entry.remove();
            if let Err(error) = self.foca.handle_timer(timer, &mut self.sinks) {
                tracing::debug!("mesh: a timer was in vain: {error}");
            }
        }
    }

    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.sinks.timers.keys().next().map(|(at, _)| *at)
    }

    /// Asks to be taken in.
    pub(crate) fn announce(&mut self, now: Mono, to: MeshId) {
        self.sinks.now = now;
        if let Err(error) = self.foca.announce(to, &mut self.sinks) {
            tracing::debug!("mesh: nothing was announced: {error}");
        }
    }

    /// It is gone, whatever others say of that run.
    pub(crate) fn bury(&mut self, now: Mono, id: MeshId) {
        self.sinks.now = now;
        let gone = std::iter::once(Member::down(id));
        if let Err(error) = self.foca.apply_many(gone, true, &mut self.sinks) {
            tracing::debug!("mesh: an end was not passed on: {error}");
        }
    }

    /// Passes on which facts this node has.
    pub(crate) fn spread(&mut self, digest: &Digest) {
        if let Err(error) = self.foca.add_broadcast(&digest.bytes()) {
            tracing::debug!("mesh: a digest was not passed on: {error}");
        }
    }

    pub(crate) fn take_sends(&mut self) -> Vec<(MeshId, Vec<u8>)> {
        std::mem::take(&mut self.sinks.sends)
    }

    pub(crate) fn take_events(&mut self) -> Vec<SwimEvent> {
        std::mem::take(&mut self.sinks.events)
    }

    pub(crate) fn take_digests(&mut self) -> Vec<Digest> {
        self.digests.try_iter().collect()
    }
}
