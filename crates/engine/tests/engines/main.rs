//! Whole engines in one process, on ports of 127.0.0.1.

mod fixture;
mod stories;
mod versions;
