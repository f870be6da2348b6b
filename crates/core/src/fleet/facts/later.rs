//! Fields that a later version has added to a record which nodes hand on to each other: whoever does
//! not know them hands them on as they came.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaterFields(BTreeMap<String, Value>);
