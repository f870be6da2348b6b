//! What a profile holds: bytes of a format, the version that they are, and what templates see.
//!
//! ```text
//!  Document (format, bytes, label) ─► read: JSON, YAML, TOML or text, within bounds ─► secret refs
//!           └─► Content and Version, once its secrets are resolved
//! ```

mod data;
mod document;
mod json;
mod secret_ref;

pub(crate) use data::place;
pub use data::{DataError, read};
pub use document::{
    Document, LARGEST, UnknownType, content_type, digest, format_of_header, format_of_path,
    is_content_of,
};
pub use secret_ref::{BadSecretRef, SecretPlace, SecretRef, SecretVersion, secret_refs};
