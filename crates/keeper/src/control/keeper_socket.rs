//! Those who ask at `keeper.sock`: one frame in, one frame out. It works while no agent answers.

use crate::{
    event_loop::{
        poller::{Interest, Kind, Poller},
        reserve::Accepted,
    },
    keeper::{Keeper, Part},
    link::node::{NodePart, Wanting},
    upgrade::Check,
};
use mainstay_core::signal::Signal;
use mainstay_sys::credentials;
use mainstay_wire::{
    frame::{self, Decoder},
    link::{KeeperAnswer, KeeperAsk},
};
use std::os::fd::OwnedFd;

const MOST_ASKERS: usize = 32;

/// Somebody at `keeper.sock`.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) fd: OwnedFd,
    pub(crate) decoder: Decoder,
}

impl NodePart {
    /// When all places are taken, the one who has waited longest without asking has to go.
    fn make_room(&mut self, poller: &Poller) {
        if self.askers.len() < MOST_ASKERS {
            return;
        }
        let waits = self.check.as_ref().and_then(Check::asker);
        let oldest = self.askers.keys().copied().find(|id| Some(*id) != waits);
        if let Some(asker) = oldest.and_then(|id| self.askers.remove(&id)) {
            poller.remove(&asker.fd);
        }
    }
}

impl Keeper {
    pub(crate) fn accept_asker(&mut self) {
        loop {
            let Keeper { part: Part::Node(node), poller, reserve, ground, .. } = self else {
                return;
            };
            let fd = match reserve.accept(&node.means.socket, ground.table()) {
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
            if poller.add(&fd, Kind::KeeperClient, self.next_id, Interest::Read).is_ok() {
                node.askers.insert(self.next_id, Asker { fd, decoder: Decoder::default() });
            }
        }
    }

    pub(crate) fn asker_ready(&mut self, id: u64) {
        let Some(asker) = self.node().and_then(|node| node.askers.get_mut(&id)) else { return };
        let mut bytes = [0; 4096];
        let count = match rustix::io::read(&asker.fd, &mut bytes) {
            Ok(count) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return,
            Err(_) => 0,
        };
        asker.decoder.push(&bytes[..count]);
        match asker.decoder.next::<KeeperAsk>() {
            Ok(Some(KeeperAsk::Upgrade { binary })) => {
                self.begin_upgrade(binary, Wanting::Asker(id))
            }
            Ok(Some(KeeperAsk::Stop)) => {
                self.answer(id, &KeeperAnswer::Done { version: crate::VERSION.to_owned() });
                self.signalled(Signal::TERM.number());
            }
            Ok(Some(KeeperAsk::Figures)) => {
                let figures = self.figures();
                self.answer(id, &KeeperAnswer::Figures(figures));
            }
            Ok(None) if count > 0 => {}
            Ok(None) | Err(_) => self.drop_asker(id),
        }
    }

    /// Says one thing and closes. An answer fits into the buffer of a socket.
    pub(crate) fn answer(&mut self, id: u64, answer: &KeeperAnswer) {
        if let Some(asker) = self.node().and_then(|node| node.askers.get(&id))
            && let Ok(bytes) = frame::encode(answer)
        {
            let _ = rustix::io::write(&asker.fd, &bytes);
        }
        self.drop_asker(id);
    }

    fn drop_asker(&mut self, id: u64) {
        let Keeper { part: Part::Node(node), poller, .. } = self else { return };
        if let Some(asker) = node.askers.remove(&id) {
            poller.remove(&asker.fd);
        }
    }
}
