//! What peers say to each other over TCP with mutual TLS: facts, and what is sent to one node.

pub(crate) mod certificate;
pub(crate) mod exchange;
pub(crate) mod frame;
mod leadership;
pub(crate) mod outbox;

pub use certificate::CertificateMaking;

#[cfg(test)]
mod tests;
