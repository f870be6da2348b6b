//! `supervisorctl` and clients of XML-RPC: what they are told by a real supervisord and by Mainstay.

mod calls;
pub(super) mod compare;
mod script;
mod sides;
