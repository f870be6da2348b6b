//! The room that the journal keeps in reserve: with the state of many jobs it needs more.

use super::Journal;
use std::io;

/// Room for changes, and for the state of each job, which is about half of that.
pub(super) const ROOM: u64 = 1 << 20;
const JOB_ROOM: u64 = 1 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Kept(u64),
    /// The disk is full; it is tried again.
    Missing(u64),
    /// The file system keeps none.
    Unsupported,
}

impl Journal {
    /// Keeps room for a node of so many jobs, whatever else fills the disk.
    pub(crate) fn keep_room(&mut self, jobs: usize) {
        let room = ROOM + JOB_ROOM * jobs as u64;
        match self.room {
            Room::Kept(kept) if kept >= room => {}
            Room::Kept(_) | Room::Missing(_) | Room::Unsupported => self.want_room(room),
        }
    }

    /// Tries again to get the room that is missing.
    pub(crate) fn retry_room(&mut self) {
        if let Room::Missing(room) = self.room {
            self.want_room(room);
        }
    }

    pub(super) fn want_room(&mut self, room: u64) {
        let Some(file) = &mut self.file else { return };
        let before = self.room;
        if before == Room::Kept(room) || before == Room::Unsupported {
            return;
        }
        self.room = match file.keep_room(room) {
            Ok(()) => Room::Kept(room),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Room::Unsupported,
            Err(_) => Room::Missing(room),
        };
        match (before, self.room) {
            (Room::Missing(_), Room::Missing(_)) | (_, Room::Kept(_)) => {}
            (_, Room::Missing(_) | Room::Unsupported) => tracing::warn!(
                "no room can be kept in reserve in {}: should the disk be full when the agent dies, \
                 the next one knows less",
                self.run_dir.display()
            ),
        }
    }
}
