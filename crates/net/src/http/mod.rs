//! The HTTP client: a request on a connection of its own, or over a few that are kept open.
//!
//! | who | how |
//! |---|---|
//! | a check, the command | [`Server::connect`], then one [`Connection::send`] |
//! | a catalogue | [`Client::send`]: so many connections and no more, each used again |
//!
//! Nothing is followed: a redirect is an answer like any other. Time limits are the user's, one for
//! each request, but for connecting, where each address may get its own.

mod client;
mod connection;
mod error;
mod server;

pub use bytes::Bytes;
pub use client::{Client, Terms};
pub use connection::{Answer, Connection, request};
pub use error::HttpError;
pub use hyper::{
    Method, Request, Response, StatusCode, Uri, Version,
    header::{self, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue},
    http::uri::InvalidUri,
};
pub use server::Server;
