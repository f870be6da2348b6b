//! The API as its clients see it.

mod driven;
mod remote;
mod routes;
