//! What is made of the registry of keys: a schema for editors, a page for people.

mod reference;
mod schema;

pub use reference::reference;
pub use schema::schema;
