//! Text that is not just text: bytes that are none, what others have said, secrets, large values.
//!
//! | what | where it is one |
//! |---|---|
//! | bytes that are not UTF-8 | arguments, environment and paths are a `String` everywhere between the call that brought them and exec ([`bytes`]); paths in what is stored or sent are written with [`path`] |
//! | what a job or another machine has said | as it is in JSON and files; [`visible`] where a person sees it beside what we say |
//! | secrets | [`Secret`] |
//! | maps whose keys are no text | in what is sent, lists of pairs: [`pairs`] |
//! | numbers of things | [`counted`] |
//! | large values | [`Json`], made by whoever makes the value |

pub mod bytes;
mod counted;
mod json;
pub mod pairs;
mod parse;
pub mod path;
mod secret;
mod visible;

pub use counted::counted;
pub use json::Json;
pub(crate) use parse::parse;
pub use secret::Secret;
pub use visible::visible;
