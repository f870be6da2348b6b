//! The command line: exit codes, diagnostics, and streams that go on over an agent's death.

mod codes;
mod quoted;
mod rollout;
mod streams;
mod terminal;
