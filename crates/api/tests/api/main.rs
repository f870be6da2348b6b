//! The API as its clients see it.

mod described;
mod driven;
mod remote;
mod routes;
mod xmlrpc;
