//! What the node listens at.

pub(crate) mod socket_file;
