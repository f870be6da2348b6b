//! `mainstay ps`: all nodes of the user, one a line.

use crate::{
    args::PsArgs,
    client::{Client, read},
    dirs::{self, Presence, UserEnv},
    failure::Failure,
    term::{Page, Tint, print_json},
};
use mainstay_core::{node::NodePhase, text::path};
use mainstay_wire::{api::NodeStatus, run_dir::RunFile};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A node, as far as it can be told.
#[derive(Debug, Serialize)]
struct FoundNode {
    state: FoundState,
    /// `null`: only its agent knows.
    node: Option<String>,
    pid: Option<u32>,
    version: Option<String>,
    jobs: Option<usize>,
    /// The directory of its configuration.
    #[serde(with = "path")]
    project: Option<PathBuf>,
    #[serde(with = "path")]
    run_dir: PathBuf,
    #[serde(with = "path")]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FoundState {
    Starting,
    Running,
    Maintenance,
    Stopping,
    /// It runs, and no agent answers.
    Silent,
    /// It was killed, or the machine was.
    Dead,
    Ended,
}

pub(crate) fn ps(args: &PsArgs) -> Result<i32, Failure> {
    let env = UserEnv::of_process()?;
    let dirs = dirs::run_dirs_of_user(&env).into_iter();
    let mut nodes: Vec<FoundNode> = dirs.filter_map(FoundNode::in_dir).collect();
    nodes.retain(|node| args.all || node.state != FoundState::Ended);
    if args.json.json {
        print_json(&nodes)?;
    } else {
        page(&nodes).show()?;
    }
    Ok(0)
}

fn page(nodes: &[FoundNode]) -> Page {
    let mut page = Page::new();
    if nodes.is_empty() {
        page.line("no node of yours runs");
        return page;
    }
    let shown = |path: &Option<PathBuf>| path.as_deref().map_or("-".to_owned(), show);
    let rows: Vec<_> = nodes
        .iter()
        .map(|it| {
            let (word, tint) = it.state.shown();
            let plain = |text: String| (text, Tint::Plain);
            let number = |number: Option<String>| plain(number.unwrap_or("-".to_owned()));
            vec![
                number(it.node.clone()),
                (word.to_owned(), tint),
                number(it.pid.map(|pid| pid.to_string())),
                number(it.jobs.map(|jobs| jobs.to_string())),
                plain(shown(&it.project)),
                plain(show(&it.run_dir)),
            ]
        })
        .collect();
    page.table(&["NODE", "STATE", "PID", "JOBS", "PROJECT", "RUN DIRECTORY"], &rows);
    page
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

impl FoundNode {
    fn in_dir(run_dir: PathBuf) -> Option<FoundNode> {
        let presence = Presence::of(&run_dir)?;
        let run = RunFile::read(&run_dir);
        let mut found = FoundNode {
            state: FoundState::Ended,
            node: None,
            pid: run.as_ref().map(|run| run.pid),
            version: run.map(|run| run.version),
            jobs: None,
            project: dirs::project_in(&run_dir),
            state_dir: dirs::state_dir_of(&run_dir),
            run_dir,
        };
        match presence {
            Presence::Running => found.ask(),
            Presence::Dead => found.state = FoundState::Dead,
            Presence::Ended => {}
        }
        Some(found)
    }

    fn ask(&mut self) {
        let answer = Client::local(self.run_dir.clone()).get("/v1/status");
        let status = answer.and_then(|it| it.into_result()).and_then(|body| read(&body));
        let Ok(NodeStatus { node, version, state, jobs, .. }) = status else {
            self.state = FoundState::Silent;
            return;
        };
        self.state = state.into();
        (self.node, self.version, self.jobs) = (Some(node), Some(version), Some(jobs.len()));
    }
}

impl From<NodePhase> for FoundState {
    fn from(phase: NodePhase) -> FoundState {
        match phase {
            NodePhase::Starting => FoundState::Starting,
            NodePhase::Running => FoundState::Running,
            NodePhase::Maintenance => FoundState::Maintenance,
            NodePhase::Stopping => FoundState::Stopping,
        }
    }
}

impl FoundState {
    fn shown(self) -> (&'static str, Tint) {
        match self {
            FoundState::Starting => ("starting", Tint::Yellow),
            FoundState::Running => ("running", Tint::Green),
            FoundState::Maintenance => ("maintenance", Tint::Yellow),
            FoundState::Stopping => ("stopping", Tint::Yellow),
            FoundState::Silent => ("silent", Tint::Red),
            FoundState::Dead => ("dead", Tint::Red),
            FoundState::Ended => ("ended", Tint::Dim),
        }
    }
}
