//! The JSON schema of a configuration, written from the registry.

use serde_json::{Value, json};

/// A JSON schema (draft 2020-12) for editors.
#[must_use]
pub fn schema() -> Value {
    json!({})
}
