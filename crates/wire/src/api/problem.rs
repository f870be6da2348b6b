//! What is answered when something is not done: RFC 9457 problem documents.

use super::{job::JobStatus, reload::Changes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `type` is left out: it is "about:blank", and `title` says what the status means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemDocument {
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// The job as it is now, where that explains the matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<JobStatus>>,
    /// What was brought into force all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Box<Changes>>,
    /// The node of the fleet that says so, or cannot be asked, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
