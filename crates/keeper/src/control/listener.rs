//! The control socket of a job over its life: from its first exec to the end of its last restart.
//!
//! ```text
//!  none ── first exec done or failed ─► open ── asked end, Rest, end of the run ─► closed, file left
//!                                       │  ▲
//!                                       └──┘ ends by itself, BACKOFF, next incarnation
//! ```
//!
//! The keeper does not know whether a restart follows an end that nobody asked for: the socket
//! stays open until the agent says that the job rests. A stop or kill in between is for the life:
//! it waits for the agent, however long that takes.

use crate::{
    control::client::Flushed,
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Source},
    },
    keeper::{Keeper, Role},
    link::node::PendingRequest,
    process::job::Job,
    run::dirs,
};
use mainstay_core::{exit::Asked, name::Name};
use std::time::Duration;

/// What a client that is slow to read its last state has.
const LINGER: Duration = Duration::from_secs(1);

impl Keeper {
    /// Whether an end is that of the job's life as well, as far as the keeper can tell.
    pub(crate) fn ends_life(&self, asked: Asked) -> bool {
        match &self.role {
            Role::Hold(_) => true,
            Role::Node(node) => {
                asked != Asked::None || node.stopping_alone || node.ending.is_some()
            }
        }
    }

    /// Listens for clients, if that has not begun in this life.
    pub(crate) fn open_control(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.control.is_none()) else { return };
        let path = job.control_file();
        let (disk, at) = (&self.context.disk, path.clone());
        let listen = move || dirs::listen(&at, 0o600);
        match self.reserve.with(|| disk.run(listen.clone())) {
            Ok(socket) => {
                let _ = self.poller.add(&socket, Source::Control, id, Interest::Read);
                (job.control, job.control_error) = (Some(socket), None);
            }
            Err(error) => {
                let error = format!("cannot make the control socket {}: {error}", path.display());
                let text = format!("{}: {error}; nobody can connect", job.name);
                job.control_error = Some(error);
                self.log(text);
                // In the file at least: nobody is connected.
                if let Some(state) = self.jobs.get(&id).and_then(Job::state_now) {
                    self.write_state(id, &state);
                }
            }
        }
    }

    /// The agent says that nothing follows this incarnation.
    pub(crate) fn rest(&mut self, name: &Name, incarnation: u64) {
        let Some(id) = self.names.get(name).copied() else { return };
        let rests = |job: &Job| {
            job.process.is_none() && job.highest <= incarnation && job.control.is_some()
        };
        if self.jobs.get(&id).is_some_and(rests) {
            self.close_control(id);
        }
    }

    /// Closes the sockets of all jobs that have no process: the run ends.
    pub(crate) fn close_idle_controls(&mut self) {
        let idle = self.jobs.values().filter(|job| job.process.is_none() && job.control.is_some());
        for id in idle.map(|job| job.id).collect::<Vec<_>>() {
            self.close_control(id);
        }
    }

    /// Closes, for everybody once they have read the last word; the file stays, so that late
    /// clients are refused.
    pub(crate) fn close_control(&mut self, id: u64) {
        if let Some(node) = self.node() {
            let of_this = |pending: &PendingRequest| matches!(pending, PendingRequest::Control { job, .. } if *job == id);
            node.pending_requests.retain(|_, pending| !of_this(pending));
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(socket) = job.control.take() {
            self.poller.remove(&socket);
        } else {
            // Never up: whoever waits for the socket must be refused, and then reads the state.
            let path = job.control_file();
            let _ = self.context.disk.run(move || dirs::listen(&path, 0o600));
        }
        let keys =
            self.jobs.get_mut(&id).map(|job| std::mem::take(&mut job.clients)).unwrap_or_default();
        for key in keys {
            let Some(client) = self.clients.get_mut(&key) else { continue };
            client.leaving = true;
            if client.flush() == Flushed::Some {
                self.deadlines.after(LINGER, Deadline::Linger { client: key });
                self.update_interest(key);
            } else {
                self.drop_client(key);
            }
        }
    }
}
