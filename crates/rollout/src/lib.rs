//! Everything of a rollout that touches the world, and nothing that decides.
//!
//! ```text
//!  source ─► profile (content, version, secrets) ─► template ─► switch (staged, recorded, renamed)
//!                          │                                      │
//!                          └──────────► store ◄───────────────────┘      service, check
//! ```
//!
//! Each piece is told one thing and gives a typed outcome. Which comes next, what a failure means
//! and when to try again is `core::rollout`'s affair.
#![forbid(unsafe_code)]

mod crash;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod profile;
pub mod renderer;
pub mod service;
pub mod source;
pub mod store;
pub mod switch;
pub mod template;
#[cfg(test)]
mod test_dir;
