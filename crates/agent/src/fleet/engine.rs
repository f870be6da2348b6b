//! The seam to what a fleet stands on: commands in, events out. Whatever is behind it has threads of
//! its own.

use mainstay_core::fleet::{EngineCommand, EngineEvent};
use mainstay_engine::{Engine, Roster};
use std::{fmt, sync::Arc};
use tokio::sync::mpsc;

pub(crate) struct Carrier {
    way: Way,
    pub(super) events: mpsc::Receiver<EngineEvent>,
}

enum Way {
    Mesh(Arc<Engine>),
    /// In the same process.
    #[cfg(test)]
    Memory(Box<dyn Fn(EngineCommand) + Send>),
}

impl Carrier {
    pub(crate) fn mesh(engine: Arc<Engine>, events: mpsc::Receiver<EngineEvent>) -> Carrier {
        Carrier { way: Way::Mesh(engine), events }
    }

    #[cfg(test)]
    pub(super) fn memory(
        command: impl Fn(EngineCommand) + Send + 'static,
        events: mpsc::Receiver<EngineEvent>,
    ) -> Carrier {
        Carrier { way: Way::Memory(Box::new(command)), events }
    }

    /// Never waits.
    pub(super) fn command(&self, command: EngineCommand) {
        match &self.way {
            Way::Mesh(engine) => engine.command(command),
            #[cfg(test)]
            Way::Memory(take) => take(command),
        }
    }

    /// Others are to be looked for.
    pub(super) fn look_for(&self, roster: Roster) {
        match &self.way {
            Way::Mesh(engine) => engine.set_roster(roster),
            #[cfg(test)]
            Way::Memory(_) => {}
        }
    }

    /// For a farewell once the loop has ended.
    pub(super) fn engine(&self) -> Option<Arc<Engine>> {
        match &self.way {
            Way::Mesh(engine) => Some(engine.clone()),
            #[cfg(test)]
            Way::Memory(_) => None,
        }
    }
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carrier").finish_non_exhaustive()
    }
}
