//! Templates: from the profiles that they may use to the bytes of a file, within bounds.
//!
//! ```text
//!  Content ─► ProfileScope ─┐
//!             node facts ───┴─► Scope ─► Template::render ─► Rendered
//! ```
//!
//! In scope are each profile by its name and in `profiles`, the facts of the `node`, and `secrets`.
//! What is not there is an error. For `plan` and `diff` the scope has names in place of secrets.

mod error;
mod mask;
mod render;
mod scope;
pub(crate) mod source;
#[cfg(test)]
mod tests;

pub use error::{Cause, TemplateError};
pub use mask::Mask;
pub(crate) use render::{LARGEST_OUTPUT, Rendered, Template};
pub use scope::{OWN, ProfileScope, Scope, ScopeError, ShowSecrets};
