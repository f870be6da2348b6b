//! The API as its clients see it.

mod described;
mod driven;
mod remote;
mod rollout;
mod routes;
mod xmlrpc;
