//! One service on its way into the catalogue, kept there, or on its way out.
//!
//! ```text
//!           ┌──── the entry is gone ────┐
//!           ▼                           │
//!  There: register ─► tell ─► (wait for a heartbeat or news) ─► tell …
//!  Gone:  remove ─► finished           a failure anywhere: wait, then again
//! ```
//!
//! What is wanted is one value that the holder replaces: whatever comes while a request is under way
//! is looked at when that is over, and only the latest counts. But a removal does not wait for a
//! standing to be told: whoever wants it has little time.

use crate::{
    backoff,
    catalogue::{About, Report},
    driver::{Driver, Failure},
    trouble::Trouble,
};
use mainstay_core::discovery::{Registration, Standing};
use mainstay_net::Backoff;
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};

/// So long it is tried to remove an entry from a catalogue that does not answer.
const REMOVING: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Clone)]
pub(crate) enum Desired {
    There {
        registration: Arc<Registration>,
        standing: Standing,
        note: Arc<str>,
    },
    /// The name of the service where it is known.
    Gone {
        service: Option<String>,
    },
}

/// What is wanted of one service.
#[derive(Debug)]
pub(crate) struct Wanted {
    desired: Desired,
    /// Counts what was desired before.
    round: u64,
    /// Nobody works for it any more.
    finished: bool,
}

impl Wanted {
    pub(crate) fn new(desired: Desired) -> watch::Sender<Wanted> {
        watch::Sender::new(Wanted { desired, round: 0, finished: false })
    }

    /// Wants something else, unless nobody would see it.
    pub(crate) fn set(wanted: &watch::Sender<Wanted>, desired: Desired) -> Result<(), Desired> {
        let mut desired = Some(desired);
        wanted.send_if_modified(|wanted| match desired.take_if(|_| !wanted.finished) {
            Some(desired) => {
                *wanted = Wanted { desired, round: wanted.round + 1, finished: false };
                true
            }
            None => false,
        });
        desired.map_or(Ok(()), Err)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// What the last desired said of the service's name.
    pub(crate) fn service(&self) -> Option<String> {
        match &self.desired {
            Desired::There { registration, .. } => Some(registration.service.clone()),
            Desired::Gone { service } => service.clone(),
        }
    }
}

pub(crate) struct Service<D> {
    driver: Arc<D>,
    id: String,
    wanted: watch::Sender<Wanted>,
    news: watch::Receiver<Wanted>,
    reports: mpsc::UnboundedSender<Report>,
    trouble: Trouble,
    backoff: Backoff,
    /// What the catalogue has, as far as we know.
    registered: Option<Arc<Registration>>,
    /// It was made and its standing not told yet.
    fresh: bool,
    /// A request has failed since the last success: the catalogue may still act on it, later.
    unsure: bool,
}

/// Whether the catalogue has been told the standing; `No`: the service is to be removed instead.
enum Told {
    Yes,
    No,
}

/// When to go on, if nothing new is wanted before.
enum Next {
    After(Duration),
    OnNews,
    Finished,
}

impl<D: Driver> Service<D> {
    pub(crate) fn new(
        driver: Arc<D>,
        id: &str,
        wanted: watch::Sender<Wanted>,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Service<D> {
        Service {
            driver,
            id: id.to_owned(),
            news: wanted.subscribe(),
            wanted,
            trouble: Trouble::new(About::Service(id.to_owned()), reports.clone()),
            reports,
            backoff: backoff::between_tries(id),
            registered: None,
            fresh: false,
            unsure: false,
        }
    }

    pub(crate) async fn keep(mut self) {
        let mut removing: Option<(u64, Instant)> = None;
        loop {
            let (desired, round) = {
                let wanted = self.news.borrow_and_update();
                (wanted.desired.clone(), wanted.round)
            };
            let next = match desired {
                Desired::There { registration, standing, note } => {
                    removing = None;
                    self.there(&registration, standing, &note).await
                }
                Desired::Gone { service } => {
                    let again = removing.filter(|(of, _)| *of == round);
                    let (_, since) = *removing.insert(again.unwrap_or((round, Instant::now())));
                    self.gone(service.as_deref(), again.is_some(), since).await
                }
            };
            match next {
                Next::Finished if self.finish(round) => return,
                Next::Finished => {}
                Next::OnNews => {
                    // The sender is ours as well: it does not close.
                    let _ = self.news.changed().await;
                }
                Next::After(pause) => tokio::select! {
                    _ = self.news.changed() => {}
                    () = sleep(pause) => {}
                },
            }
        }
    }

    async fn there(
        &mut self,
        registration: &Arc<Registration>,
        standing: Standing,
        note: &str,
    ) -> Next {
        let begun = Instant::now();
        match self.bring(registration, standing, note).await {
            Ok(Told::No) => {
                self.unsure = true;
                Next::After(Duration::ZERO)
            }
            Ok(Told::Yes) => {
                self.trouble.over();
                self.backoff.reset();
                let (fresh, unsure) = (mem::take(&mut self.fresh), mem::take(&mut self.unsure));
                if fresh {
                    let _ = self.reports.send(Report::Announced { id: self.id.clone() });
                }
                // A catalogue that forgets critical services by itself is not kept from it.
                let beats = unsure
                    || standing != Standing::Critical
                    || registration.deregister_critical_after.is_none();
                match (beats, fresh) {
                    (true, true) => {
                        Next::After(backoff::first_beat(&self.id, registration.heartbeat))
                    }
                    (true, false) => {
                        Next::After(registration.heartbeat.saturating_sub(begun.elapsed()))
                    }
                    (false, _) => Next::OnNews,
                }
            }
            Err(failure) => {
                self.unsure = true;
                self.trouble.met(failure.into_words());
                Next::After(self.backoff.next_wait())
            }
        }
    }

    /// Makes the entry if need be, and tells the standing.
    async fn bring(
        &mut self,
        registration: &Arc<Registration>,
        standing: Standing,
        note: &str,
    ) -> Result<Told, Failure> {
        if self.registered.as_ref() == Some(registration) {
            match self.tell(registration, standing, note).await {
                Err(Failure::Unknown) => self.registered = None,
                told => return told,
            }
        }
        if let Some(other) = self.registered.take_if(|old| old.service != registration.service) {
            self.driver.remove(&self.id, Some(&other.service)).await?;
        }
        self.driver.register(registration, standing).await?;
        (self.registered, self.fresh) = (Some(registration.clone()), true);
        self.tell(registration, standing, note).await
    }

    async fn tell(
        &self,
        registration: &Registration,
        standing: Standing,
        note: &str,
    ) -> Result<Told, Failure> {
        let mut wanted = self.wanted.subscribe();
        tokio::select! {
            told = self.driver.tell(registration, standing, note) => told.map(|()| Told::Yes),
            _ = wanted.wait_for(|wanted| matches!(wanted.desired, Desired::Gone { .. })) => Ok(Told::No),
        }
    }

    async fn gone(&mut self, service: Option<&str>, again: bool, since: Instant) -> Next {
        match self.driver.remove(&self.id, service).await {
            Ok(()) | Err(Failure::Unknown) => {
                self.registered = None;
                self.trouble.over();
                let _ = self.reports.send(Report::Withdrawn { id: self.id.clone(), done: true });
                Next::Finished
            }
            Err(failure) => {
                self.unsure = true;
                self.trouble.met(failure.into_words());
                if !again {
                    let report = Report::Withdrawn { id: self.id.clone(), done: false };
                    let _ = self.reports.send(report);
                }
                match since.elapsed() < REMOVING {
                    true => Next::After(self.backoff.next_wait()),
                    false => Next::Finished,
                }
            }
        }
    }

    /// Whether nothing else has been wanted meanwhile.
    fn finish(&self, round: u64) -> bool {
        let mut finished = false;
        self.wanted.send_if_modified(|wanted| {
            finished = wanted.round == round;
            wanted.finished = finished;
            false
        });
        finished
    }
}
