//! Every promise of Mainstay, seen from outside: one folder a capability.

mod hold;
mod life;
mod node;
