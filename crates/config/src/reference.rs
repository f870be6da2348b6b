//! The reference page, written from the registry.

/// Every key with its type, default, reload and meaning, as Markdown.
#[must_use]
pub fn reference() -> String {
    String::new()
}
