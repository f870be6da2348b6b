//! Those who ask at `keeper.sock`: one frame in, one frame out. It works while no agent answers.

use crate::{
    event_loop::{
        poller::{Interest, Poller, Source},
        reserve::Accepted,
    },
    keeper::{Keeper, Role},
    link::node::Node,
    upgrade::{Upgrade, UpgradeRequester},
};
use mainstay_core::signal::Signal;
use mainstay_sys::credentials;
use mainstay_wire::{
    frame::{self, FrameDecoder, Message},
    link::{KeeperRequest, KeeperResponse},
};
use std::os::fd::OwnedFd;

const MAX_KEEPER_CLIENTS: usize = 32;

/// Somebody at `keeper.sock`.
#[derive(Debug)]
pub(crate) struct KeeperClient {
    pub(crate) fd: OwnedFd,
    pub(crate) decoder: FrameDecoder,
}

impl Node {
    /// When all places are taken, the one who has waited longest without asking has to go.
    fn make_room(&mut self, poller: &Poller) {
        if self.keeper_clients.len() < MAX_KEEPER_CLIENTS {
            return;
        }
        let waits = self.upgrade.as_ref().and_then(Upgrade::waiting_client);
        let oldest = self.keeper_clients.keys().copied().find(|id| Some(*id) != waits);
        if let Some(client) = oldest.and_then(|id| self.keeper_clients.remove(&id)) {
            poller.remove(&client.fd);
        }
    }
}

impl Keeper {
    pub(crate) fn accept_keeper_client(&mut self) {
        loop {
            let Keeper { role: Role::Node(node), poller, reserve, context, .. } = self else {
                return;
            };
            let fd = match reserve.accept(&node.resources.socket, context.table()) {
                Accepted::Client(fd) => fd,
                Accepted::TurnedAway => continue,
                Accepted::Nobody => return,
            };
            let ours = rustix::process::geteuid().as_raw();
            let allowed = credentials::peer_uid(&fd).is_ok_and(|uid| uid == 0 || uid == ours);
            if !allowed {
                continue;
            }
            node.make_room(poller);
            self.next_id += 1;
            if poller.add(&fd, Source::KeeperClient, self.next_id, Interest::Read).is_ok() {
                node.keeper_clients
                    .insert(self.next_id, KeeperClient { fd, decoder: FrameDecoder::default() });
            }
        }
    }

    pub(crate) fn keeper_client_ready(&mut self, id: u64) {
        let Some(client) = self.node().and_then(|node| node.keeper_clients.get_mut(&id)) else {
            return;
        };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&client.fd, &mut bytes) {
            Ok(count) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            Err(_) => 0,
        };
        client.decoder.push(&bytes[..count]);
        match client.decoder.next_message() {
            Ok(Some(Message::Known(KeeperRequest::Upgrade { binary }))) => {
                self.begin_upgrade(binary, UpgradeRequester::KeeperClient(id))
            }
            Ok(Some(Message::Known(KeeperRequest::Stop))) => {
                self.answer(id, &KeeperResponse::Done { version: crate::VERSION.to_owned() });
                self.signalled(Signal::TERM.number());
            }
            Ok(Some(Message::Known(KeeperRequest::Figures))) => {
                let figures = self.figures();
                self.answer(id, &KeeperResponse::Figures(figures));
            }
            Ok(Some(Message::Unknown(name))) => {
                let error = format!("this version does not know '{name}'");
                self.answer(id, &KeeperResponse::Refused { error });
            }
            Ok(None) if count > 0 => {}
            Ok(None) | Err(_) => self.drop_keeper_client(id),
        }
    }

    /// Says one thing and closes. An answer fits into the buffer of a socket.
    pub(crate) fn answer(&mut self, id: u64, answer: &KeeperResponse) {
        if let Some(client) = self.node().and_then(|node| node.keeper_clients.get(&id))
            && let Ok(bytes) = frame::encode(answer)
        {
            let _ = rustix::io::write(&client.fd, &bytes);
        }
        self.drop_keeper_client(id);
    }

    fn drop_keeper_client(&mut self, id: u64) {
        let Keeper { role: Role::Node(node), poller, .. } = self else { return };
        if let Some(client) = node.keeper_clients.remove(&id) {
            poller.remove(&client.fd);
        }
    }
}
