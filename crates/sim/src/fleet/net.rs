//! The network between nodes: what is sent comes later, twice, or not at all.

use mainstay_core::{
    clock::Mono,
    fleet::{FleetInput, FleetMember, Message, NodeFacts},
    name::Name,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Numbers from one seed.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    #[must_use]
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// SplitMix64.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap_or(0)]
    }

    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

#[derive(Debug, Clone)]
pub(super) enum Packet {
    Alive(FleetMember),
    Said(Arc<NodeFacts>),
    Sent(Message),
    /// It goes, on purpose.
    Leaves(FleetMember),
}

/// Something that happens at a time.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    Arrives {
        from: Name,
        to: Name,
        packet: Packet,
    },
    Beat {
        node: Name,
        run: u64,
    },
    Tick {
        node: Name,
        run: u64,
    },
    Wake {
        node: Name,
        run: u64,
    },
    /// Its rollout wants to hear that time has passed.
    Rollout {
        node: Name,
        run: u64,
    },
    /// A process of a job has got somewhere.
    Job {
        node: Name,
        run: u64,
        job: Name,
        incarnation: u64,
    },
    /// A node that was ended on purpose is through with that.
    Off {
        node: Name,
        run: u64,
        again: bool,
    },
    /// What a node was told while it stood still.
    Told {
        node: Name,
        run: u64,
        input: Box<FleetInput>,
    },
    /// A slow node takes what has happened to it by now.
    Late(Box<Happening>),
    Fault(usize),
}

impl Happening {
    /// The node that it happens to; what happens from outside happens to none.
    pub(super) fn node(&self) -> Option<&Name> {
        match self {
            Happening::Arrives { to: node, .. }
            | Happening::Beat { node, .. }
            | Happening::Tick { node, .. }
            | Happening::Wake { node, .. }
            | Happening::Rollout { node, .. }
            | Happening::Job { node, .. }
            | Happening::Told { node, .. }
            | Happening::Off { node, .. } => Some(node),
            Happening::Late(what) => what.node(),
            Happening::Fault(_) => None,
        }
    }

    /// Its agent takes it, not its mesh.
    pub(super) fn is_for_core(&self) -> bool {
        match self {
            // In the order in which they were sent: it goes when all that it said has come.
            Happening::Arrives {
                packet: Packet::Said(_) | Packet::Sent(_) | Packet::Leaves(_),
                ..
            }
            | Happening::Tick { .. }
            | Happening::Wake { .. }
            | Happening::Rollout { .. }
            | Happening::Job { .. } => true,
            Happening::Arrives { packet: Packet::Alive(_), .. }
            | Happening::Beat { .. }
            | Happening::Off { .. }
            | Happening::Told { .. }
            | Happening::Late(_)
            | Happening::Fault(_) => false,
        }
    }

    /// It is of a process, or comes again and again.
    pub(super) fn outlives_an_agent(&self) -> bool {
        match self {
            Happening::Beat { .. }
            | Happening::Tick { .. }
            | Happening::Rollout { .. }
            | Happening::Job { .. } => true,
            Happening::Late(what) => what.outlives_an_agent(),
            Happening::Arrives { .. }
            | Happening::Wake { .. }
            | Happening::Told { .. }
            | Happening::Off { .. }
            | Happening::Fault(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Net {
    queue: BTreeMap<(Mono, u64), Happening>,
    count: u64,
    /// Nothing passes from the first to the second.
    cut: BTreeSet<(Name, Name)>,
    /// Of a thousand packets so many are lost, so many come twice.
    pub(super) loss: u64,
    pub(super) repeats: u64,
    /// Milliseconds, at most.
    pub(super) delay: u64,
}

impl Net {
    pub(super) fn new() -> Net {
        Net {
            queue: BTreeMap::new(),
            count: 0,
            cut: BTreeSet::new(),
            loss: 0,
            repeats: 0,
            delay: 5,
        }
    }

    pub(super) fn at(&mut self, when: Mono, what: Happening) {
        self.count += 1;
        self.queue.insert((when, self.count), what);
    }

    pub(super) fn pop(&mut self, until: Mono) -> Option<(Mono, Happening)> {
        let entry = self.queue.first_entry().filter(|it| it.key().0 <= until)?;
        let ((when, _), what) = entry.remove_entry();
        Some((when, what))
    }

    pub(super) fn send(
        &mut self,
        now: Mono,
        dice: &mut Dice,
        from: &Name,
        to: &Name,
        packet: &Packet,
    ) {
        let copies = 1 + u64::from(dice.chance(self.repeats));
        for _ in 0..copies {
            if dice.chance(self.loss) || self.is_cut(from, to) {
                continue;
            }
            let delay = Duration::from_micros(200 + dice.below(self.delay * 1000));
            let (from, to, packet) = (from.clone(), to.clone(), packet.clone());
            self.at(now.after(delay), Happening::Arrives { from, to, packet });
        }
    }

    fn is_cut(&self, from: &Name, to: &Name) -> bool {
        !self.cut.is_empty() && self.cut.contains(&(from.clone(), to.clone()))
    }

    /// What is under way when a cut comes still arrives.
    pub(super) fn cut(&mut self, from: &Name, to: &Name) {
        self.cut.insert((from.clone(), to.clone()));
    }

    pub(super) fn heal(&mut self) {
        self.cut.clear();
    }
}
