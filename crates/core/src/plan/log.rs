//! What becomes of output: `[log]`, and `log` of a job.

use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// What becomes of the output of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// On to the node's own output as well.
    pub forward: bool,
    pub format: ForwardFormat,
    #[serde(default, skip_serializing_if = "ForwardTo::is_stdout")]
    pub output: ForwardTo,
    pub file: FileFormat,
    pub keep: Keep,
}

/// How forwarded lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardFormat {
    Prefix,
    Json,
    Raw,
    /// Time, job, pid, text.
    Stamped,
    /// `time= level= msg= job= pid=`
    Logfmt,
    /// The same fields as JSON.
    Logrus,
}

/// Where forwarded lines go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardTo {
    #[default]
    Stdout,
    Stderr,
    /// What comes from stderr to stderr, the rest to stdout.
    Same,
    /// Into the file of the node.
    File,
}

impl ForwardTo {
    fn is_stdout(&self) -> bool {
        *self == ForwardTo::Stdout
    }
}

/// `[log]`, as far as it is about the node and not about its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLog {
    /// The file that lines are forwarded into.
    #[serde(default, with = "crate::text::path", skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How our own log is forwarded; `None`: as plain lines on stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Log>,
}

impl NodeLog {
    pub(super) fn is_default(&self) -> bool {
        *self == NodeLog::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    Cri,
    Raw,
    None,
}

/// When a log file is closed, and how many closed ones stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    pub size: u64,
    pub age: Duration,
    pub files: u32,
    pub compress: bool,
}

impl Default for Log {
    fn default() -> Log {
        Log {
            forward: true,
            format: ForwardFormat::Prefix,
            output: ForwardTo::Stdout,
            file: FileFormat::Cri,
            keep: Keep::default(),
        }
    }
}

impl Default for Keep {
    fn default() -> Keep {
        Keep { size: 10 << 20, age: Duration::from_secs(7 * 24 * 3600), files: 5, compress: false }
    }
}
