//! The clients of control sockets: let in, answered, told of every change.

use crate::{
    control::client::{Client, ClientInput, Flushed, MAX_CLIENTS, MAX_CLIENTS_IN_ALL},
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Ready, Source},
        reserve::Accepted,
    },
    keeper::Keeper,
};
use mainstay_wire::{link::ControlRequest, state::ContainerState};
use std::time::Duration;

const REPORT_EVERY: Duration = Duration::from_secs(3);

impl Keeper {
    pub(crate) fn accept_clients(&mut self, id: u64) {
        loop {
            let Some(job) = self.jobs.get(&id) else { return };
            let Some(socket) = &job.control else { return };
            let full = job.clients.len() >= MAX_CLIENTS || self.clients.len() >= MAX_CLIENTS_IN_ALL;
            match self.reserve.accept(socket, self.context.table()) {
                Accepted::Client(fd) if !full => self.add_client(id, Client::new(fd, id)),
                Accepted::Client(_) | Accepted::TurnedAway => {}
                Accepted::Nobody => return,
            }
        }
    }

    fn add_client(&mut self, id: u64, mut client: Client) {
        let Some(state) = self.jobs.get(&id).and_then(crate::process::job::Job::state_now) else {
            return;
        };
        let key = self.fresh_id();
        if self.poller.add(client.fd(), Source::ControlClient, key, Interest::Read).is_err() {
            return;
        }
        if client.offer(&state.to_json()) == Flushed::Gone {
            // It said what it wanted and went, before we came to let it in.
            self.poller.remove(client.fd());
            return self.take_requests(id, &client.drain());
        }
        self.clients.insert(key, client);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.clients.push(key);
        }
        self.update_interest(key);
        if !self.reporting {
            self.reporting = true;
            self.deadlines.after(REPORT_EVERY, Deadline::StateReport);
        }
    }

    pub(crate) fn client_ready(&mut self, event: Ready) {
        let Some(client) = self.clients.get_mut(&event.id) else { return };
        if client.deaf && event.hung_up {
            return self.drop_client(event.id);
        }
        if event.readable && !client.deaf {
            let id = client.job;
            match client.read() {
                ClientInput::Requests(requests) => self.take_requests(id, &requests),
                ClientInput::End(requests) => {
                    client.deaf = true;
                    self.take_requests(id, &requests);
                }
                ClientInput::Nonsense(requests) => {
                    self.take_requests(id, &requests);
                    return self.drop_client(event.id);
                }
            }
        }
        let Some(client) = self.clients.get_mut(&event.id) else { return };
        match client.flush() {
            Flushed::Gone => return self.drop_client(event.id),
            Flushed::All if client.leaving => return self.drop_client(event.id),
            Flushed::All | Flushed::Some => {}
        }
        self.update_interest(event.id);
    }

    pub(super) fn update_interest(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        let interest = match (client.deaf, client.flush()) {
            (false, Flushed::Some) => Interest::ReadWrite,
            (false, Flushed::All | Flushed::Gone) => Interest::Read,
            (true, Flushed::Some) => Interest::Write,
            (true, Flushed::All | Flushed::Gone) => Interest::HangUp,
        };
        self.poller.change(client.fd(), Source::ControlClient, key, interest);
    }

    fn take_requests(&mut self, id: u64, requests: &[ControlRequest]) {
        for request in requests {
            self.on_control_request(id, *request);
        }
    }

    pub(crate) fn drop_client(&mut self, key: u64) {
        let Some(client) = self.clients.remove(&key) else { return };
        self.poller.remove(client.fd());
        if let Some(job) = self.jobs.get_mut(&client.job) {
            job.clients.retain(|other| *other != key);
        }
    }

    /// The regular word to every client.
    pub(crate) fn report_states(&mut self) {
        self.reporting = !self.clients.is_empty();
        if self.reporting {
            self.deadlines.after(REPORT_EVERY, Deadline::StateReport);
        }
        let jobs: Vec<u64> =
            self.jobs.values().filter(|job| !job.clients.is_empty()).map(|job| job.id).collect();
        for id in jobs {
            if let Some(state) = self.jobs.get(&id).and_then(crate::process::job::Job::state_now) {
                self.report_state(id, &state);
            }
        }
    }

    pub(crate) fn report_state(&mut self, id: u64, state: &ContainerState) {
        let keys = self.jobs.get(&id).map(|job| job.clients.clone()).unwrap_or_default();
        if keys.is_empty() {
            return;
        }
        let text = state.to_json();
        for key in keys {
            let Some(client) = self.clients.get_mut(&key) else { continue };
            if client.offer(&text) == Flushed::Gone {
                self.drop_client(key);
            } else {
                self.update_interest(key);
            }
        }
    }
}
