//! What is answered about a job, the instances of one, or the jobs of an app.

use super::fleet::PlacedStatus;
use super::schema::{
    DesiredWord, ExitSchema, HealthWord, PhaseWord, StandingWord, TreeWord, UsageSchema,
    VerdictWord,
};
use crate::link::{LogFigures, TreeKind};
use mainstay_core::{
    discovery::Standing,
    exit::{Exit, Usage},
    explain,
    job::{Desired, Health, Phase, Verdict},
    name::Name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// How far the start of a job that runs has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartStage {
    /// It does not run, or its checks have not passed yet.
    #[default]
    Waiting,
    /// It has no checks, and counts as started when it has lived for so much longer.
    Young(Duration),
    Started,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct JobStatus {
    #[schemars(with = "String")]
    pub name: Name,
    /// The node that this is said of, in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub node: Option<Name>,
    #[schemars(with = "PhaseWord")]
    pub state: Phase,
    #[schemars(with = "DesiredWord")]
    pub desired: Desired,
    #[schemars(with = "HealthWord")]
    pub health: Health,
    /// It runs as it should and no check speaks against it, or it rests and its last run ended as
    /// it should.
    pub as_desired: bool,
    pub checks: Vec<CheckStatus>,
    pub pid: Option<u32>,
    pub incarnation: u64,
    pub restarts: u64,
    /// How the latest run ended.
    #[schemars(with = "Option<ExitSchema>")]
    pub exit: Option<Exit>,
    /// What that run had used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<UsageSchema>")]
    pub usage: Option<Usage>,
    /// When it entered its state.
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    pub waiting: Vec<Waiting>,
    pub app: Option<String>,
    /// The job in the file that it is an instance of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub instance_of: Option<Name>,
    pub args: Vec<String>,
    #[schemars(with = "Option<TreeWord>")]
    pub tree: Option<TreeKind>,
    /// Limits that this machine cannot enforce.
    pub unenforced: Vec<String>,
    /// The latest of what it said by sd_notify.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notify: BTreeMap<String, String>,
    pub log: Option<LogFigures>,
    /// What others are told about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<Announcement>,
    /// Where the fleet has it, if it is the fleet's to place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedStatus>,
    /// For whoever waits for it; not told.
    #[serde(skip)]
    #[schemars(skip)]
    pub start: StartStage,
}

impl JobStatus {
    /// It has ended, as it should.
    #[must_use]
    pub fn ended_well(&self) -> bool {
        self.state == Phase::Exited && self.as_desired
    }

    /// It runs, and is healthy or has lived for a while.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.start == StartStage::Started
    }

    /// What its failing checks said.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let failing = self.checks.iter().filter(|check| check.state == Verdict::Failing);
        failing.map(|check| format!("{}: {}", check.name, check.output)).collect()
    }

    /// What it waits for, as `explain` tells it.
    #[must_use]
    pub fn waits_for(&self) -> Vec<explain::Waiting> {
        let told = |Waiting { source, event, reason, .. }: &Waiting| explain::Waiting {
            source: source.clone(),
            event: event.clone(),
            reason: reason.clone(),
        };
        self.waiting.iter().map(told).collect()
    }
}

/// A check of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct CheckStatus {
    pub name: String,
    /// unknown: not answered often enough yet.
    #[schemars(with = "VerdictWord")]
    pub state: Verdict,
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// Its last output.
    pub output: String,
}

/// One thing that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    pub source: String,
    pub event: String,
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// Why it can never come, if so.
    pub reason: Option<String>,
}

/// The entry of a job in service discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Announcement {
    pub service: String,
    pub id: String,
    /// `null`: the host has none that fits.
    pub address: Option<String>,
    pub port: u16,
    #[schemars(with = "StandingWord")]
    pub standing: Standing,
    /// What keeps it from being told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The answer about a job: itself, or its instances where it has several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum JobAnswer {
    Job(Box<JobStatus>),
    Instances(JobInstances),
    List(JobList),
}

impl JobAnswer {
    /// Those that it is about.
    #[must_use]
    pub fn into_jobs(self) -> Vec<JobStatus> {
        match self {
            JobAnswer::Job(job) => vec![*job],
            JobAnswer::Instances(JobInstances { jobs, .. }) | JobAnswer::List(JobList { jobs }) => {
                jobs
            }
        }
    }
}

/// Several jobs that were asked for by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobList {
    pub jobs: Vec<JobStatus>,
}

/// The instances of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Jobs")]
pub struct JobInstances {
    pub instances_of: String,
    pub jobs: Vec<JobStatus>,
}

/// Why a job is as it is: for programs, and in lines for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    #[schemars(with = "String")]
    pub job: Name,
    #[schemars(with = "PhaseWord")]
    pub state: Phase,
    #[schemars(with = "DesiredWord")]
    pub desired: Desired,
    #[schemars(with = "HealthWord")]
    pub health: Health,
    pub as_desired: bool,
    /// When it entered its state.
    #[schemars(extend("format" = "date-time"))]
    pub since: String,
    /// What it waits for, and what of that can never come.
    pub waiting: Vec<Waiting>,
    /// The checks that fail.
    pub failing: Vec<CheckStatus>,
    /// How the latest run ended.
    #[schemars(with = "Option<ExitSchema>")]
    pub exit: Option<Exit>,
    /// The same in words, five at most.
    pub lines: Vec<String>,
}

impl Why {
    #[must_use]
    pub fn new(job: JobStatus, lines: Vec<String>) -> Why {
        let fails = |check: &CheckStatus| check.state == Verdict::Failing;
        Why {
            job: job.name,
            state: job.state,
            desired: job.desired,
            health: job.health,
            as_desired: job.as_desired,
            since: job.since,
            waiting: job.waiting,
            failing: job.checks.into_iter().filter(fails).collect(),
            exit: job.exit,
            lines,
        }
    }
}

/// The answer to why: of the job itself, or of each of its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum WhyAnswer {
    Job(Box<Why>),
    Instances(WhyInstances),
}

impl WhyAnswer {
    /// Those that it is about.
    #[must_use]
    pub fn into_jobs(self) -> Vec<Why> {
        match self {
            WhyAnswer::Job(job) => vec![*job],
            WhyAnswer::Instances(WhyInstances { jobs, .. }) => jobs,
        }
    }
}

/// Why the instances of a job are as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Whys")]
pub struct WhyInstances {
    pub instances_of: String,
    pub jobs: Vec<Why>,
}

/// One line that a job has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Line")]
pub struct LogLine {
    /// `null`, as `stream`, in files of the format `raw`.
    pub time: Option<String>,
    pub job: String,
    pub stream: Option<String>,
    pub text: String,
}

#[cfg(feature = "logs")]
impl LogLine {
    #[must_use]
    pub fn of(job: &str, entry: &crate::logs::Entry) -> LogLine {
        LogLine {
            time: entry.time.clone(),
            job: job.to_owned(),
            stream: entry.stream.map(str::to_owned),
            text: String::from_utf8_lossy(&entry.text).into_owned(),
        }
    }

    /// On one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
