//! Every promise of Mainstay, seen from outside: one folder a capability.

mod control;
mod crash;
mod hold;
mod life;
mod link;
mod torture;
