//! The connections that are open: so many and no more.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Duration, Instant, sleep},
};

/// Who makes room when all places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The oldest that has asked for nothing yet; if there is none, the newcomer is a guest.
    SilentGoes,
    /// The oldest, whatever it is doing.
    OldestGoes,
    /// Nobody: the newcomer waits in line until one has left by itself.
    NewcomerWaits,
}

/// Whether a connection has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Place,
    /// There is no room for it: it gets one answer, if it asks before other guests come.
    Guest,
}

/// Guests at a time, beyond the places.
const GUESTS: usize = 4;
/// Nobody has to go before it had this time to ask for something.
pub(super) const TO_ASK: Duration = Duration::from_millis(20);
/// A guest that has asked has this time to be answered.
const TO_BE_ANSWERED: Duration = Duration::from_millis(500);
/// A guest that is being answered has this time to take the answer.
const TO_TAKE: Duration = Duration::from_millis(20);

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
    progress: Arc<Progress>,
    room: Room,
    task: AbortHandle,
}

/// How far a client has come.
#[derive(Debug)]
pub(super) struct Progress {
    since: Instant,
    /// Its first request that was let in.
    asked: OnceLock<Instant>,
    /// The head of its first answer.
    answered: OnceLock<Instant>,
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

    /// `serve` is told which room there is for the client, and notes how far it has come.
    pub(super) fn add<F>(&self, room: Room, serve: impl FnOnce(Arc<Progress>, Room) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut open = self.0.open();
        let mut room = room;
        let full = open.slots.len() >= self.0.most && open.count(Room::Place) >= self.0.most;
        if room == Room::Place && full {
            let leaver = match self.0.full {
                Full::OldestGoes => open.slots.pop_first().map(|(_, slot)| slot),
                Full::SilentGoes => open.take(|slot| slot.can_be_missed()),
                Full::NewcomerWaits => None,
            };
            match leaver {
                Some(slot) => slot.task.abort(),
                None => room = Room::Guest,
            }
        }
        let progress = Arc::new(Progress::new());
        let number = open.next;
        open.next += 1;
        let place = Place { shared: Arc::downgrade(&self.0), number };
        let served = serve(progress.clone(), room);
        let task = tokio::spawn(async move {
            let _place = place;
            served.await;
        });
        open.slots.insert(number, Slot { progress, room, task: task.abort_handle() });
        self.0.count.send_replace(open.slots.len());
    }

    /// Returns when one more can be let in, as a guest at least where nobody has to wait.
    pub(super) async fn have_room(&self) {
        if self.0.full == Full::NewcomerWaits {
            // The sender is ours: it does not go before the wait is over.
            let _ = self.0.count.subscribe().wait_for(|open| *open < self.0.most).await;
            return;
        }
        while self.0.has_guests() && !self.let_go(|slot| slot.room == Room::Guest) {
            sleep(TO_ASK).await;
        }
    }

    /// Ends one that can be missed. Whether there was one.
    pub(super) fn let_one_go(&self) -> bool {
        self.0.full != Full::NewcomerWaits && self.let_go(|_| true)
    }

    fn let_go(&self, of: impl Fn(&Slot) -> bool) -> bool {
        let leaver = self.0.open().take(|slot| of(slot) && slot.can_be_missed());
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

    /// As many as there can be.
    fn has_guests(&self) -> bool {
        let open = self.open();
        open.slots.len() > self.most.min(GUESTS) && open.count(Room::Guest) >= GUESTS
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

    /// The oldest of these.
    fn take(&mut self, these: impl Fn(&Slot) -> bool) -> Option<Slot> {
        let number = *self.slots.iter().find(|(_, slot)| these(slot))?.0;
        self.slots.remove(&number)
    }
}

impl Slot {
    /// It had its time: to ask, and as a guest to be answered.
    fn can_be_missed(&self) -> bool {
        let Progress { since, asked, answered } = &*self.progress;
        match (asked.get(), answered.get(), self.room) {
            (None, _, Room::Place | Room::Guest) => since.elapsed() >= TO_ASK,
            (Some(_), _, Room::Place) => false,
            (Some(asked), None, Room::Guest) => asked.elapsed() >= TO_BE_ANSWERED,
            (Some(_), Some(answered), Room::Guest) => answered.elapsed() >= TO_TAKE,
        }
    }
}

impl Progress {
    fn new() -> Progress {
        Progress { since: Instant::now(), asked: OnceLock::new(), answered: OnceLock::new() }
    }

    pub(super) fn has_asked(&self) {
        let _ = self.asked.set(Instant::now());
    }

    pub(super) fn is_answered(&self) {
        let _ = self.answered.set(Instant::now());
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
        connections.add(Room::Place, |progress, _| {
            if speaks {
                progress.has_asked();
            }
            async move {
                let _told = told;
                pending::<()>().await;
            }
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_silent_one_makes_room_and_without_one_the_newcomer_is_a_guest() {
        let (tell, mut ended) = mpsc::unbounded_channel();
        let connections = Connections::new(2, Full::SilentGoes);
        add(&connections, Told(1, tell.clone()), true);
        add(&connections, Told(2, tell.clone()), false);
        sleep(TO_ASK).await;
        add(&connections, Told(3, tell.clone()), true);
        assert_eq!(ended.recv().await, Some(2));
        for number in 4..=7 {
            connections.have_room().await;
            add(&connections, Told(number, tell.clone()), true);
        }
        // Those with a place stay, and so do guests until they had the time for an answer.
        assert!(!connections.let_one_go());
        let asked = Instant::now();
        connections.have_room().await;
        assert!(asked.elapsed() >= TO_BE_ANSWERED);
        assert_eq!(ended.recv().await, Some(4));
        drop(connections);
        let mut rest = Vec::new();
        for _ in 0..5 {
            rest.extend(ended.recv().await);
        }
        rest.sort_unstable();
        assert_eq!(rest, [1, 3, 5, 6, 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_goes_before_it_could_ask_and_a_guest_that_has_asked_outlives_the_silent() {
        let (tell, mut ended) = mpsc::unbounded_channel();
        let connections = Connections::new(1, Full::SilentGoes);
        add(&connections, Told(1, tell.clone()), true);
        add(&connections, Told(2, tell.clone()), true);
        for number in 3..=5 {
            add(&connections, Told(number, tell.clone()), false);
        }
        assert!(!connections.let_one_go());
        let told = Instant::now();
        connections.have_room().await;
        assert_eq!(told.elapsed(), TO_ASK);
        assert_eq!(ended.recv().await, Some(3));
        assert!(connections.let_one_go());
        assert_eq!(ended.recv().await, Some(4));
        connections.have_room().await;
        assert_eq!(told.elapsed(), TO_ASK);
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

    #[tokio::test(start_paused = true)]
    async fn where_the_newcomer_waits_nobody_goes_for_it() {
        let (tell, mut ended) = mpsc::unbounded_channel();
        let connections = Connections::new(1, Full::NewcomerWaits);
        let (leave, left) = tokio::sync::oneshot::channel::<()>();
        connections.have_room().await;
        connections.add(Room::Place, |_, _| async { drop(left.await) });
        sleep(TO_ASK).await;
        assert!(!connections.let_one_go());
        let waited = tokio::time::timeout(Duration::from_secs(60), connections.have_room()).await;
        assert!(waited.is_err(), "there is no room while the first one is there");
        drop(leave);
        connections.have_room().await;
        add(&connections, Told(2, tell), false);
        drop(connections);
        assert_eq!(ended.recv().await, Some(2));
    }
}
