//! The commands of Supvisors' plugin: what they are told by a real Supvisors and by Mainstay.

mod script;
mod sides;
