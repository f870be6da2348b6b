//! What jobs write: in files, in order, whole, bounded; and on our own stdout.

mod files;
mod forwarded;
mod rotation;
