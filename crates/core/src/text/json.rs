//! JSON that is made once, and written as it stands from then on.

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// The JSON of something large. Whoever makes that makes this as well, outside of any loop: in
/// another JSON it costs no more than its bytes.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// # Errors
    /// As the value says: a map whose keys are no texts, for one.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Json> {
        Ok(Json(to_raw_value(value)?.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
