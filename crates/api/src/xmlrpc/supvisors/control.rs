//! Starting and stopping applications and processes, wherever they run.
//!
//! What the fleet places is asked of its master, the rest of this node. A call that waits is over
//! when all it asked for has come to an end; how that is then is what it is judged by.

use super::{
    Supvisors,
    view::{UnitedProcess, View},
};
use crate::{
    placed,
    problem::Problem,
    wait::{Subject, WaitQuery},
    xmlrpc::{
        fault::{Code, Fault},
        value::XmlValue,
    },
};
use mainstay_config::shell_words;
use mainstay_core::{fleet::FleetRequest, name::Name, node::Request};
use mainstay_wire::api::{Goal, Incarnations, Selection};
use regex::RegexBuilder;
use std::{collections::BTreeSet, time::Duration};

/// As long as the client waits.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Of a pattern for names.
const LARGEST_PATTERN: usize = 1 << 20;

/// What is asked of processes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Steering<'a> {
    Start(&'a [String]),
    Stop,
    Restart(&'a [String]),
}

/// What is asked of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppAction {
    Start,
    Stop,
    Restart,
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault::about(Code::Failed, problem.into_parts().1)
    }
}

/// `['a', 'b']`, as Python writes it.
pub(super) fn listed<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = words.into_iter().map(|it| format!("'{}'", it.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

/// The arguments in a text, split as a shell would.
pub(super) fn arguments(text: &str) -> Result<Vec<String>, Fault> {
    let wrong = |why: &dyn std::fmt::Display| Fault::about(Code::IncorrectParameters, why);
    if text.contains('\0') {
        return Err(wrong(&"an argument holds a NUL character"));
    }
    let words = shell_words::split(text).map_err(|open| wrong(&open.what()))?;
    Ok(words.into_iter().map(|word| word.text).collect())
}

/// How long a call waits.
pub(super) fn patience(wait: bool) -> Duration {
    if wait { PATIENCE } else { Duration::ZERO }
}

impl Supvisors {
    pub(super) async fn application(
        &self,
        view: &View,
        action: AppAction,
        name: &str,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let application = view.application(name)?;
        let app = Name::new(name).ok().filter(|_| application.managed);
        let Some(app) = app else { return Err(Fault::about(Code::NotManaged, name)) };
        let stopped = application.state().1 == "STOPPED";
        let runs = application.processes.iter().any(|process| process.is_running());
        let (request, goal) = match action {
            AppAction::Start if !stopped => return Err(Fault::about(Code::AlreadyStarted, name)),
            AppAction::Stop if !runs => {
                return Err(Fault::about(Code::NotRunning, format!("failed to stop {name}")));
            }
            AppAction::Start => {
                (Request::StartApp { app: app.clone() }, Goal::Started { beyond: 0 })
            }
            AppAction::Stop => (Request::StopApp { app: app.clone() }, Goal::Down),
            AppAction::Restart => {
                (Request::RestartApp { app: app.clone(), wave: None }, Goal::StartedAnew)
            }
        };
        if action != AppAction::Stop && !self.has_something_to_start(&app).await? {
            let verb = if action == AppAction::Start { "start" } else { "restart" };
            return Err(Fault::about(
                Code::AbnormalTermination,
                format!("failed to {verb} {name}"),
            ));
        }
        let query = WaitQuery::lasting(patience(wait));
        let subject = Subject::of_app(&app);
        let asked = subject.ask_and_wait(&self.state, vec![request], goal, &query).await;
        if !wait {
            return asked.map(|_| XmlValue::Bool(true)).map_err(Fault::from);
        }
        let after = View::look(&self.state).await?;
        let state = after.application(name)?.state().1;
        match (action, state) {
            (AppAction::Stop, "STOPPED") => Ok(XmlValue::Bool(true)),
            (AppAction::Stop, _) => Err(Fault::about(Code::StillRunning, name)),
            (AppAction::Start | AppAction::Restart, "RUNNING") => Ok(XmlValue::Bool(true)),
            (AppAction::Start | AppAction::Restart, _) => Err(Fault::about(Code::NotRunning, name)),
        }
    }

    /// Whether a start of the app would find a home for one of its jobs.
    async fn has_something_to_start(&self, app: &Name) -> Result<bool, Fault> {
        let plan = self.state.handle.plan_start(app).await?;
        // Why it is refused is told when it is asked for.
        Ok(plan.map_or(true, |plan| plan.jobs.iter().any(|job| job.node.is_some())))
    }

    pub(super) async fn start_process(
        &self,
        view: &View,
        namespec: &str,
        args: &[String],
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let processes = view.named(namespec)?;
        if let Some(up) = processes.iter().find(|process| process.is_running()) {
            return Err(Fault::about(Code::AlreadyStarted, up.namespec()));
        }
        if processes.iter().all(|process| process.disabled) {
            let text = format!("failed to start {namespec}");
            return Err(Fault::about(Code::AbnormalTermination, text));
        }
        self.steer(view, &processes, Steering::Start(args), wait).await?;
        match wait {
            true => self.judge_up(&processes, namespec).await,
            false => Ok(XmlValue::Bool(true)),
        }
    }

    pub(super) async fn restart_process(
        &self,
        view: &View,
        namespec: &str,
        args: &[String],
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let processes = view.named(namespec)?;
        self.steer(view, &processes, Steering::Restart(args), wait).await?;
        match wait {
            true => self.judge_up(&processes, namespec).await,
            false => Ok(XmlValue::Bool(true)),
        }
    }

    pub(super) async fn stop_process(
        &self,
        view: &View,
        namespec: &str,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let processes = view.named(namespec)?;
        let up: Vec<&UnitedProcess> = processes.into_iter().filter(|it| it.is_running()).collect();
        if up.is_empty() {
            return Err(Fault::about(Code::NotRunning, format!("{namespec} already stopped")));
        }
        self.steer(view, &up, Steering::Stop, wait).await?;
        if wait {
            let after = View::look(&self.state).await?;
            let left = still(&after, &up, UnitedProcess::is_running);
            if !left.is_empty() {
                let text = format!("processes={}", listed(left));
                return Err(Fault::about(Code::StillRunning, text));
            }
        }
        Ok(XmlValue::Bool(true))
    }

    /// The first that is stopped, matches, and finds a home.
    pub(super) async fn start_any(
        &self,
        view: &View,
        regex: &str,
        args: &[String],
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let built = RegexBuilder::new(regex).size_limit(LARGEST_PATTERN).build();
        let pattern = built.map_err(|_| Fault::about(Code::IncorrectParameters, regex))?;
        let matching =
            view.processes.iter().filter(|it| it.is_stopped() && pattern.is_match(&it.namespec()));
        for process in matching.filter(|process| !process.disabled) {
            let namespec = process.namespec();
            match self.start_process(view, &namespec, args, wait).await {
                Ok(_) => return Ok(XmlValue::Text(namespec)),
                // It has no home now.
                Err(fault) if fault.code == Code::AbnormalTermination => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::about(Code::Failed, format!("no candidate process matching \"{regex}\"")))
    }

    /// Whether all are up after a wait: one without a home never began to.
    async fn judge_up(
        &self,
        processes: &[&UnitedProcess],
        namespec: &str,
    ) -> Result<XmlValue, Fault> {
        let after = View::look(&self.state).await?;
        let down = still(&after, processes, UnitedProcess::is_stopped);
        if down.is_empty() {
            return Ok(XmlValue::Bool(true));
        }
        let homeless = |process: &UnitedProcess| {
            process.reason.as_ref().is_some_and(|why| why.starts_with("not placed"))
        };
        if still(&after, processes, homeless).len() == processes.len() {
            let text = format!("failed to start {namespec}");
            return Err(Fault::about(Code::AbnormalTermination, text));
        }
        Err(Fault::about(Code::NotRunning, format!("processes={}", listed(down))))
    }

    /// Asks for something, and waits until nothing more comes of it.
    pub(super) async fn steer(
        &self,
        view: &View,
        processes: &[&UnitedProcess],
        what: Steering<'_>,
        wait: bool,
    ) -> Result<(), Fault> {
        let names = |placed: bool| -> Vec<Name> {
            let those = processes.iter().filter(|process| process.placed == placed);
            those.map(|process| process.name.clone()).collect()
        };
        let (theirs, ours) = (names(true), names(false));
        let waiter = self.state.handle.wait(patience(wait));
        let mut before = Incarnations::new();
        for job in &ours {
            let accepted = self.state.handle.request(what.of_node(job.clone())).await??;
            before.insert(job.clone(), accepted.before);
        }
        for job in &theirs {
            placed::ask(&self.state, what.of_fleet(job.clone()), patience(wait)).await?;
        }
        let goal = what.goal();
        // How it ended is looked at afterwards.
        if let (Some(fleet), false) = (&view.fleet, theirs.is_empty()) {
            let jobs: BTreeSet<Name> = theirs.into_iter().collect();
            let _ = placed::wait(&self.state, fleet, &jobs, goal, patience(wait)).await;
        }
        if !ours.is_empty() {
            let _ = waiter.wait(Selection::These(ours), |job| goal.after(&before, job)).await;
        }
        Ok(())
    }
}

impl Steering<'_> {
    fn of_node(self, job: Name) -> Request {
        match self {
            Steering::Start(args) => {
                Request::Start { jobs: vec![job], args: Some(args.to_vec()), now: false }
            }
            Steering::Stop => Request::Stop { job },
            Steering::Restart(args) => {
                Request::Restart { jobs: vec![job], args: Some(args.to_vec()) }
            }
        }
    }

    fn of_fleet(self, job: Name) -> FleetRequest {
        match self {
            Steering::Start(args) => FleetRequest::StartJob { job, args: Some(args.to_vec()) },
            Steering::Stop => FleetRequest::StopJob { job },
            Steering::Restart(args) => FleetRequest::RestartJob { job, args: Some(args.to_vec()) },
        }
    }

    fn goal(self) -> Goal {
        match self {
            Steering::Start(_) => Goal::Up { beyond: 0 },
            Steering::Stop => Goal::Down,
            Steering::Restart(_) => Goal::Anew,
        }
    }
}

/// Those of which something holds now.
fn still(
    after: &View,
    processes: &[&UnitedProcess],
    holds: impl Fn(&UnitedProcess) -> bool,
) -> Vec<String> {
    let now = |process: &&&UnitedProcess| {
        let known = after.processes.iter().find(|it| it.name == process.name);
        known.is_some_and(&holds)
    };
    processes.iter().filter(now).map(|process| process.namespec()).collect()
}
