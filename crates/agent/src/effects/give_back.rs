//! When memory is given back that a start or a reload has needed: once the node has calmed down.
//!
//! The keeper does the same when it hears that this agent is ready: so it is told again.

use crate::agent::{Agent, End};
use mainstay_sys::memory;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Calm is when nothing was decided for so long.
const CALM: Duration = Duration::from_secs(1);
/// Some nodes never are, and some take long.
const AT_LAST: Duration = Duration::from_secs(10);

/// The next time to give memory back, if there is reason to.
#[derive(Debug, Default)]
pub(crate) struct GiveBack(Option<Pending>);

#[derive(Debug)]
struct Pending {
    calm: Instant,
    at_last: Instant,
    /// Longer each time that it was not calm.
    patience: Duration,
}

impl GiveBack {
    /// There is something to give back, once things are calm.
    pub(crate) fn ask(&mut self) {
        let now = Instant::now();
        let patience = AT_LAST;
        self.0 = Some(Pending { calm: now + CALM, at_last: now + patience, patience });
    }

    /// Something was decided just now.
    pub(crate) fn disturb(&mut self, now: Instant) {
        if let Some(pending) = &mut self.0 {
            pending.calm = now + CALM;
        }
    }

    /// It was given back now; again, unless this was when things were calm.
    fn done(&mut self, now: Instant) {
        self.0 = self.0.take().filter(|pending| now < pending.calm);
        if let Some(pending) = &mut self.0 {
            pending.patience = pending.patience.saturating_mul(2);
            pending.at_last = now + pending.patience;
        }
    }

    /// Returns when it is time. May be dropped at any time.
    pub(crate) async fn due(&self) {
        match &self.0 {
            Some(Pending { calm, at_last, .. }) => sleep_until(*calm.min(at_last)).await,
            None => std::future::pending().await,
        }
    }
}

impl Agent {
    pub(crate) fn give_back(&mut self) -> Result<(), End> {
        let begun = Instant::now();
        self.give_back.done(begun);
        memory::give_back();
        self.say_ready();
        self.journal.retry_room();
        self.meter.busy(begun.elapsed());
        Ok(self.link.flush()?)
    }
}
