//! The thread of the mesh: one socket, one half, and nothing that waits for anybody else.

use super::{Clock, SharedStatus};
use crate::mesh::{Mesh, MeshEvent};
use mainstay_sys::latency;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{read, write},
};
use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    time::Duration,
};
use tokio::sync::{mpsc as tokio_mpsc, oneshot};

/// Longer than any of ours: what is cut off was too long anyway.
const LONGEST: usize = 2048;
/// So many are taken before time passes.
const AT_ONCE: usize = 1024;

/// What the mesh is told.
#[derive(Debug)]
pub(crate) enum MeshCommand {
    Addresses(Vec<SocketAddr>),
    Say {
        version: u64,
        hash: u64,
    },
    /// Told when all are.
    Leave(oneshot::Sender<()>),
}

/// The way to the thread. Dropped, the thread ends.
#[derive(Debug)]
pub(crate) struct MeshHandle {
    commands: Option<Sender<MeshCommand>>,
    wake: Arc<OwnedFd>,
}

impl MeshHandle {
    pub(crate) fn tell(&self, command: MeshCommand) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
            self.wake();
        }
    }

    fn wake(&self) {
        // Full is awake.
        let _ = write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for MeshHandle {
    fn drop(&mut self) {
        self.commands = None;
        self.wake();
    }
}

/// What the thread needs.
#[derive(Debug)]
pub(crate) struct MeshThread {
    mesh: Mesh,
    socket: UdpSocket,
    clock: Clock,
    commands: Receiver<MeshCommand>,
    wake: Arc<OwnedFd>,
    events: tokio_mpsc::UnboundedSender<MeshEvent>,
    status: Arc<SharedStatus>,
}

impl MeshThread {
    pub(crate) fn new(
        mesh: Mesh,
        socket: UdpSocket,
        clock: Clock,
        status: Arc<SharedStatus>,
    ) -> io::Result<(MeshThread, MeshHandle, tokio_mpsc::UnboundedReceiver<MeshEvent>)> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, commands) = mpsc::channel();
        let (events, receiver) = tokio_mpsc::unbounded_channel();
        let handle = MeshHandle { commands: Some(sender), wake: wake.clone() };
        Ok((MeshThread { mesh, socket, clock, commands, wake, events, status }, handle, receiver))
    }

    /// Until nobody has anything to tell it any more.
    pub(crate) fn run(mut self) {
        // Somebody waits for its answer, and takes it for dead without one.
        latency::ask_for_short_slices();
        loop {
            self.receive();
            self.mesh.pass(self.clock.now());
            let over = self.obey();
            self.speak();
            let idle = match over {
                Some(Over { left: Some(left) }) => {
                    // Whoever asked may have lost its patience.
                    let _ = left.send(());
                    return;
                }
                Some(Over { left: None }) => return,
                None => self.mesh.idle_for(),
            };
            self.sleep(idle);
        }
    }

    /// All that has come goes before any time passes.
    fn receive(&mut self) {
        let mut buffer = [0; LONGEST];
        for _ in 0..AT_ONCE {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.mesh.take(from, &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nothing more, or something about a datagram that nobody has taken.
                Err(_) => return,
            }
        }
    }

    fn obey(&mut self) -> Option<Over> {
        loop {
            match self.commands.try_recv() {
                Ok(MeshCommand::Addresses(addresses)) => {
                    self.mesh.set_addresses(addresses);
                    self.mesh.pass(self.clock.now());
                }
                Ok(MeshCommand::Say { version, hash }) => self.mesh.say(version, hash),
                Ok(MeshCommand::Leave(told)) => {
                    self.mesh.leave();
                    return Some(Over { left: Some(told) });
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => return Some(Over { left: None }),
            }
        }
    }

    fn speak(&mut self) {
        for (to, datagram) in self.mesh.take_sends() {
            // As good as lost on its way, and that happens.
            if let Err(error) = self.socket.send_to(&datagram, to) {
                tracing::debug!("mesh: nothing can be sent to {to}: {error}");
            }
        }
        for event in self.mesh.take_events() {
            let _ = self.events.send(event);
        }
        self.status.lock().drops.clone_from(self.mesh.drops());
    }

    fn sleep(&self, idle: Duration) {
        let mut descriptors =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)];
        let idle = Timespec::try_from(idle).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // Interrupted is as good as woken.
        let _ = poll(&mut descriptors, Some(&idle));
        let mut count = [0; 8];
        let _ = read(&*self.wake, &mut count);
    }
}

/// Why the thread ends, and who wants to know.
struct Over {
    left: Option<oneshot::Sender<()>>,
}
