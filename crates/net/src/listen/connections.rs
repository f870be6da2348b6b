//! The connections that are open: so many and no more.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::watch, task::AbortHandle};

/// Who makes room when all places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The oldest that has asked for nothing yet; if there is none, the newcomer is a guest.
    SilentGoes,
    /// The oldest, whatever it is doing.
    OldestGoes,
}

/// Whether a connection has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Place,
    /// There is no room for it: it gets one answer, if no other guest comes before that.
    Guest,
}

/// Guests at a time, beyond the places.
const GUESTS: usize = 4;

/// Clones count together. When the last is dropped, all connections end.
#[derive(Clone)]
pub struct Connections(Arc<Shared>);

struct Shared {
    most: usize,
    full: Full,
    open: Mutex<Open>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// By age.
    slots: BTreeMap<u64, Slot>,
}

struct Slot {
    /// Becomes true with the first request that was let in.
    active: Arc<AtomicBool>,
    room: Room,
    task: AbortHandle,
}

/// Gives the place back when the connection is over, however it ends.
struct Place {
    shared: Weak<Shared>,
    number: u64,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, most) = (*self.0.count.borrow(), self.0.most);
        f.debug_struct("Connections").field("open", &open).field("most", &most).finish()
    }
}

impl Connections {
    #[must_use]
    pub fn new(most: usize, full: Full) -> Connections {
        let (open, count) = (Mutex::default(), watch::Sender::new(0));
        Connections(Arc::new(Shared { most, full, open, count }))
    }

    /// `serve` gets a flag to set when the client has asked for something it may have, and which
    /// room there is for it.
    pub(super) fn add<F>(&self, room: Room, serve: impl FnOnce(Arc<AtomicBool>, Room) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut open = self.0.open();
        let mut room = room;
        let full = open.slots.len() >= self.0.most && open.count(Room::Place) >= self.0.most;
        if room == Room::Place && full {
            match open.leaver(self.0.full) {
                Some(slot) => slot.task.abort(),
                None => room = Room::Guest,
            }
        }
        if room == Room::Guest && open.count(Room::Guest) >= GUESTS {
            open.oldest_guest().into_iter().for_each(|slot| slot.task.abort());
        }
        let active = Arc::new(AtomicBool::new(false));
        let number = open.next;
        open.next += 1;
        let place = Place { shared: Arc::downgrade(&self.0), number };
        let served = serve(active.clone(), room);
        let task = tokio::spawn(async move {
            let _place = place;
            served.await;
        });
        open.slots.insert(number, Slot { active, room, task: task.abort_handle() });
        self.0.count.send_replace(open.slots.len());
    }

    /// Ends one that can be missed: a silent one, else a guest. Whether there was one.
    pub(super) fn let_one_go(&self) -> bool {
        let mut open = self.0.open();
        let leaver = open.leaver(Full::SilentGoes).or_else(|| open.oldest_guest());
        leaver.inspect(|slot| slot.task.abort()).is_some()
    }

    /// Returns when everybody has left.
    pub async fn all_left(&self) {
        // The sender is ours: it does not go before the wait is over.
        let _ = self.0.count.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn count(&self, room: Room) -> usize {
        let guests = self.slots.values().filter(|slot| slot.room == Room::Guest).count();
        match room {
            Room::Guest => guests,
            Room::Place => self.slots.len() - guests,
        }
    }

    fn oldest_guest(&mut self) -> Option<Slot> {
        let guest = self.slots.iter().find(|(_, slot)| slot.room == Room::Guest);
        let number = *guest?.0;
        self.slots.remove(&number)
    }

    fn leaver(&mut self, full: Full) -> Option<Slot> {
        let number = match full {
            Full::OldestGoes => *self.slots.first_key_value()?.0,
            Full::SilentGoes => {
                let silent = |slot: &Slot| !slot.active.load(Ordering::Relaxed);
                *self.slots.iter().find(|(_, slot)| silent(slot))?.0
            }
        };
        self.slots.remove(&number)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        open.slots.values().for_each(|slot| slot.task.abort());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut open = shared.open();
        open.slots.remove(&self.number);
        shared.count.send_replace(open.slots.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::sync::mpsc;

    /// Tells its number when it ends.
    struct Told(u32, mpsc::UnboundedSender<u32>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }

    fn add(connections: &Connections, told: Told, speaks: bool) {
        connections.add(Room::Place, |active, _| {
            active.store(speaks, Ordering::Relaxed);
            async move {
                let _told = told;
                pending::<()>().await;
            }
        });
    }

    #[tokio::test]
    async fn the_oldest_silent_one_makes_room_and_without_one_the_newcomer_is_a_guest() {
        let (tell, mut ended) = mpsc::unbounded_channel();
        let connections = Connections::new(2, Full::SilentGoes);
        add(&connections, Told(1, tell.clone()), true);
        add(&connections, Told(2, tell.clone()), false);
        add(&connections, Told(3, tell.clone()), true);
        assert_eq!(ended.recv().await, Some(2));
        // Of those beyond the places the oldest goes.
        for number in 4..=8 {
            add(&connections, Told(number, tell.clone()), true);
        }
        assert_eq!(ended.recv().await, Some(4));
        assert!(connections.let_one_go());
        assert_eq!(ended.recv().await, Some(5));
        drop(connections);
        let mut rest = Vec::new();
        for _ in 0..5 {
            rest.extend(ended.recv().await);
        }
        rest.sort_unstable();
        assert_eq!(rest, [1, 3, 6, 7, 8]);
    }

    #[tokio::test]
    async fn where_the_oldest_goes_it_goes_whatever_it_does() {
        let (tell, mut ended) = mpsc::unbounded_channel();
        let connections = Connections::new(1, Full::OldestGoes);
        add(&connections, Told(1, tell.clone()), true);
        add(&connections, Told(2, tell.clone()), true);
        assert_eq!(ended.recv().await, Some(1));
        connections.add(Room::Place, |_, _| std::future::ready(()));
        assert_eq!(ended.recv().await, Some(2));
        connections.all_left().await;
    }
}
