//! Those who listen and talk to jobs: clients of control sockets, and sd_notify.

use crate::{
    control::client::{Client, ClientInput, Flushed, MAX_CLIENTS, MAX_CLIENTS_IN_ALL},
    event_loop::{
        deadline::Deadline,
        poller::{Interest, Ready, Source},
        reserve::Accepted,
    },
    keeper::Keeper,
    process::{notify, tree::Tree},
    run::dirs,
};
use mainstay_sys::proc;
use mainstay_wire::{
    link::{ControlRequest, ToAgent},
    state::ContainerState,
};
use rustix::io::Errno;
use std::time::Duration;

const REPORT_EVERY: Duration = Duration::from_secs(3);
const LINGER: Duration = Duration::from_secs(1);
/// Datagrams taken in one turn, so that no job keeps the others waiting.
const NOTIFICATIONS: usize = 32;

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
            return;
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

    fn update_interest(&mut self, key: u64) {
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

    fn report_state(&mut self, id: u64, state: &ContainerState) {
        let text = state.to_json();
        let keys = self.jobs.get(&id).map(|job| job.clients.clone()).unwrap_or_default();
        for key in keys {
            let Some(client) = self.clients.get_mut(&key) else { continue };
            if client.offer(&text) == Flushed::Gone {
                self.drop_client(key);
            } else {
                self.update_interest(key);
            }
        }
    }

    /// Says the last word to everybody and closes; the file stays, so that late clients are refused.
    pub(crate) fn close_control(&mut self, id: u64, state: &ContainerState) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(socket) = job.control.take() {
            self.poller.remove(&socket);
        } else {
            // Never up: whoever waits for the socket must be refused, and then reads the state.
            let _ = dirs::listen(&job.control_file(), 0o600);
        }
        self.report_state(id, state);
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

    pub(crate) fn read_notifications(&mut self, id: u64) {
        for _ in 0..NOTIFICATIONS {
            let Some(job) = self.jobs.get_mut(&id) else { return };
            let Some(notification) = job.notify.as_ref().and_then(notify::receive) else { return };
            let Some(process) = &mut job.process else { continue };
            if notification.fields.is_empty()
                || !belongs(&process.tree, process.pid, notification.sender)
            {
                continue;
            }
            process.notified.extend(notification.fields.clone());
            let key = (id, process.incarnation);
            if let Some(node) = self.node() {
                node.notifications.entry(key).or_default().extend(notification.fields);
            }
        }
    }

    /// A newline on its notification descriptor resources the same as READY=1; more is not expected.
    pub(crate) fn read_ready_pipe(&mut self, id: u64) {
        let Some(process) = self.jobs.get_mut(&id).and_then(|job| job.process.as_mut()) else {
            return;
        };
        let Some(pipe) = &process.ready else { return };
        let mut bytes = [0; 512];
        let said = match rustix::io::read(pipe, &mut bytes) {
            Ok(0) => false,
            Ok(count) if bytes[..count].contains(&b'\n') => true,
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => false,
        };
        self.poller.remove(pipe);
        process.ready = None;
        if said {
            let ready = [("READY".to_owned(), "1".to_owned())];
            process.notified.extend(ready.clone());
            let key = (id, process.incarnation);
            if let Some(node) = self.node() {
                node.notifications.entry(key).or_default().extend(ready);
            }
        }
    }

    /// Passes notifications on when the agent has read what came before: it gets the latest of each.
    pub(crate) fn send_notifications(&mut self) {
        let Some(node) = self.node() else { return };
        let listens = node.agent.as_ref().is_some_and(|agent| agent.welcomed && agent.is_idle());
        if !listens || node.notifications.is_empty() {
            return;
        }
        for ((id, incarnation), fields) in std::mem::take(&mut node.notifications) {
            if let Some(job) = self.jobs.get(&id) {
                let message = ToAgent::Notified { job: job.name.clone(), incarnation, fields };
                self.send(&message);
            }
        }
    }
}

/// Whether a sender is of the job's tree. The socket belongs to the job's user, so one that has
/// gone already (as `systemd-notify` has) is believed. One that we cannot see is no descendant.
fn belongs(tree: &Tree, leader: u32, sender: Option<u32>) -> bool {
    let Some(sender) = sender else { return false };
    if sender == leader {
        return true;
    }
    match tree {
        Tree::Cgroup { group, .. } => group.procs().contains(&sender) || proc::is_dead(sender),
        Tree::Group => true,
    }
}
