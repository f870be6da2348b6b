//! What a reload changes, or would change.

use super::schema::{ChangeWord, EffectWord};
use mainstay_core::{name::Name, node::Effect, plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What applying a plan changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    #[schemars(with = "Vec<String>")]
    pub added: Vec<Name>,
    #[schemars(with = "Vec<String>")]
    pub removed: Vec<Name>,
    pub changed: Vec<Change>,
    /// Every job that is touched: those above, and those that are the same and follow another one,
    /// run because it stops, or have waited for it.
    #[serde(default)]
    pub jobs: Vec<Change>,
    /// Nothing is left to run for: the node ends.
    #[serde(default)]
    pub ends: bool,
    /// Keys of the node that differ, and tables that are its own.
    pub node: Vec<String>,
    /// Keys of the API that differ.
    #[serde(default)]
    pub api: Vec<String>,
    /// The apps themselves differ.
    pub apps: bool,
    /// The watches differ.
    #[serde(default)]
    pub watches: bool,
    /// The catalogue of service discovery differs.
    #[serde(default)]
    pub discovery: bool,
    /// Of the configuration, ready to be printed.
    #[serde(default)]
    pub warnings: String,
}

/// A job that is touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    #[schemars(with = "String")]
    pub job: Name,
    #[schemars(with = "ChangeWord")]
    pub change: plan::Change,
    pub keys: Vec<String>,
    /// What becomes of the job, if all goes well.
    #[schemars(with = "EffectWord")]
    pub effect: Effect,
    /// What moves it, if not its own change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What it will wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
}
