//! Commands about configurations.

pub(crate) mod check;
pub(crate) mod import;
mod machine;
pub(crate) mod reload;
mod templates;
mod units;
