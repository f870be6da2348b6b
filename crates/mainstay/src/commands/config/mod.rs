//! Commands about configurations.

pub(crate) mod check;
pub(crate) mod import;
pub(crate) mod reload;
