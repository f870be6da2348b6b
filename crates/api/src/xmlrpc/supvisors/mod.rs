//! The calls of the namespace `supvisors`: what Supvisors answers about a fleet, and does to it.
//!
//! Each is let in by how far the fleet is (fault 101 otherwise), as there.

mod control;
mod info;
pub(super) mod methods;
mod rules;
mod stage;
mod view;

use super::{
    fault::{Code, Fault},
    supervisor::Supervisor,
    value::{Params, XmlValue},
};
use crate::{
    RouterState, placed,
    wait::{Subject, WaitQuery},
};
use control::{AppAction, Steering, arguments, listed, patience};
use mainstay_core::{
    fleet::{Conciliation, FleetRequest},
    name::stands_for,
    node::Request,
    plan::AppPlan,
};
use mainstay_wire::api::{Goal, PATIENCE, PlannedStart};
use methods::FleetCall;
use stage::{CONCILIATIONS, STRATEGIES, Stage};
use view::{UnitedProcess, View};

/// Answers as Supvisors would.
#[derive(Debug, Clone)]
pub(crate) struct Supvisors {
    state: RouterState,
    /// For what concerns this node alone.
    supervisor: Supervisor,
}

/// Levels of Supervisor's log.
const LEVELS: [&str; 7] = ["blather", "trace", "debug", "info", "warn", "error", "critical"];

impl Supvisors {
    pub(super) fn new(state: RouterState, supervisor: Supervisor) -> Supvisors {
        Supvisors { state, supervisor }
    }

    pub(super) async fn call(&self, call: FleetCall, params: &Params) -> Result<XmlValue, Fault> {
        let view = View::look(&self.state).await?;
        gate(call, view.stage())?;
        let text = |at| params.text(at);
        match call {
            FleetCall::ApiVersion => Ok(XmlValue::text(info::VERSION)),
            FleetCall::State => Ok(view.fleet_state()),
            FleetCall::AllStateModes => Ok(view.all_state_modes()),
            FleetCall::StateModes => {
                let member = view.member(text(0)?)?;
                Ok(XmlValue::Array(vec![view.state_of(member.name.as_str())]))
            }
            FleetCall::MasterName => Ok(XmlValue::text(view.master().unwrap_or_default())),
            FleetCall::Master => Ok(view.master_info()),
            FleetCall::Core => Ok(view.core()),
            FleetCall::Strategies => Ok(view.strategies()),
            FleetCall::StatisticsStatus => Ok(no_statistics()),
            FleetCall::NodeInfo => Ok(view.node_once(&view.member(text(0)?)?)),
            FleetCall::InstanceInfo => {
                Ok(XmlValue::Array(vec![view.node(&view.member(text(0)?)?)]))
            }
            FleetCall::AllInstancesInfo => {
                Ok(XmlValue::Array(view.members().iter().map(|it| view.node(it)).collect()))
            }
            FleetCall::NetworkInfo => {
                Ok(XmlValue::Array(vec![info::network(&view.member(text(0)?)?)]))
            }
            FleetCall::ApplicationInfo => Ok(info::application(&view.application(text(0)?)?)),
            FleetCall::AllApplicationsInfo => {
                Ok(XmlValue::Array(view.applications().iter().map(info::application).collect()))
            }
            FleetCall::ApplicationRules => Ok(view.application_rules(&view.application(text(0)?)?)),
            FleetCall::ProcessInfo => Ok(each(view.named(text(0)?)?, info::process)),
            FleetCall::AllProcessInfo => Ok(each(view.processes.iter(), info::process)),
            FleetCall::ProcessRules => {
                Ok(each(view.named(text(0)?)?, |process| view.process_rules(process)))
            }
            FleetCall::LocalProcessInfo => self.local_process(&view, text(0)?).await,
            FleetCall::AllLocalProcessInfo => {
                let all = self.supervisor.all_local_info(&view.status.jobs).await?;
                Ok(XmlValue::Array(all))
            }
            FleetCall::InnerProcessInfo => self.inner(&view, text(0)?, Some(text(1)?)).await,
            FleetCall::AllInnerProcessInfo => self.inner(&view, text(0)?, None).await,
            FleetCall::Conflicts => Ok(view.conflicts()),
            FleetCall::StartApplication => {
                strategy(params)?;
                self.application(&view, AppAction::Start, text(1)?, params.truth_or(2, true)?).await
            }
            FleetCall::StopApplication => {
                self.application(&view, AppAction::Stop, text(0)?, params.truth_or(1, true)?).await
            }
            FleetCall::RestartApplication => {
                strategy(params)?;
                let wait = params.truth_or(2, true)?;
                self.application(&view, AppAction::Restart, text(1)?, wait).await
            }
            FleetCall::TestStartApplication => {
                strategy(params)?;
                self.test_application(&view, text(1)?).await
            }
            FleetCall::TestStartProcess => {
                strategy(params)?;
                self.test_process(&view, text(1)?).await
            }
            FleetCall::StartArgs => {
                let args = arguments(text(1)?)?;
                self.start_args(&view, text(0)?, args, params.truth_or(2, true)?).await
            }
            FleetCall::StartProcess => {
                strategy(params)?;
                let (args, wait) = (extra_args(params)?, params.truth_or(3, true)?);
                self.start_process(&view, text(1)?, &args, wait).await
            }
            FleetCall::StartAnyProcess => {
                strategy(params)?;
                let (args, wait) = (extra_args(params)?, params.truth_or(3, true)?);
                self.start_any(&view, text(1)?, &args, wait).await
            }
            FleetCall::RestartProcess => {
                strategy(params)?;
                let (args, wait) = (extra_args(params)?, params.truth_or(3, true)?);
                self.restart_process(&view, text(1)?, &args, wait).await
            }
            FleetCall::StopProcess => {
                self.stop_process(&view, text(0)?, params.truth_or(1, true)?).await
            }
            FleetCall::UpdateNumprocs => {
                program(&view, text(0)?)?;
                let text = format!("numprocs not applicable to program={}", text(0)?);
                Err(Fault::about(Code::NotApplicable, text))
            }
            FleetCall::Enable => self.enable(&view, text(0)?).await,
            FleetCall::Disable => self.disable(&view, text(0)?, params.truth_or(1, true)?).await,
            FleetCall::Conciliate => self.conciliate(params).await,
            FleetCall::RestartSequence => {
                self.restart_sequence(&view, params.truth_or(0, true)?).await
            }
            FleetCall::Restart => self.end(&view, true).await,
            FleetCall::Shutdown => self.end(&view, false).await,
            FleetCall::EndSync => {
                Err(Fault::about(Code::NotApplicable, "USER expected in synchro_options"))
            }
            FleetCall::LogLevel => log_level(params),
            FleetCall::Statistics => {
                Err(Fault::about(Code::NotInstalled, "statistics are metrics: [telemetry] listen"))
            }
        }
    }

    async fn local_process(&self, view: &View, namespec: &str) -> Result<XmlValue, Fault> {
        let known = super::supervisor::groups::process(&view.status.jobs, namespec)?;
        let all = self.supervisor.all_local_info(std::slice::from_ref(known)).await?;
        all.into_iter().next().ok_or_else(|| Fault::about(Code::BadName, namespec))
    }

    /// What is known of the processes of a node, this one or another.
    async fn inner(
        &self,
        view: &View,
        identifier: &str,
        namespec: Option<&str>,
    ) -> Result<XmlValue, Fault> {
        let member = view.member(identifier)?;
        let meant = match namespec {
            Some(namespec) => view.named(namespec)?,
            None => view.processes.iter().collect(),
        };
        let all = match member.name.as_str() == view.me() {
            true => {
                let here = view.status.jobs.iter();
                let here = here.filter(|job| meant.iter().any(|it| it.name == job.name));
                let here: Vec<_> = here.cloned().collect();
                self.supervisor.all_local_info(&here).await?
            }
            false => {
                let there = |it: &&&UnitedProcess| it.nodes.contains(&member.name);
                meant.iter().filter(there).map(|it| info::process(it)).collect()
            }
        };
        match (namespec, all.is_empty()) {
            (Some(namespec), true) => {
                let text = format!("{namespec} unknown on {identifier}");
                Err(Fault::about(Code::Failed, text))
            }
            (Some(_) | None, _) => Ok(XmlValue::Array(all)),
        }
    }

    async fn test_application(&self, view: &View, name: &str) -> Result<XmlValue, Fault> {
        let application = view.application(name)?;
        let Some(app) = view.plan.app(name) else {
            return Err(Fault::about(Code::NotManaged, name));
        };
        if application.state().1 != "STOPPED" {
            return Err(Fault::about(Code::AlreadyStarted, name));
        }
        let planned = self.planned(app).await?;
        let jobs = planned.iter().filter_map(|start| {
            let process = application.processes.iter().find(|it| it.name == start.job)?;
            let node = start.node.as_ref().map(|node| node.as_str());
            Some(info::tested(process, ends(view, process), node, start.reason.as_deref()))
        });
        Ok(XmlValue::Array(jobs.collect()))
    }

    async fn test_process(&self, view: &View, namespec: &str) -> Result<XmlValue, Fault> {
        let processes = view.named(namespec)?;
        if let Some(up) = processes.iter().find(|process| process.is_running()) {
            return Err(Fault::about(Code::AlreadyStarted, up.namespec()));
        }
        let mut tested = Vec::new();
        for process in processes {
            let planned = match view.plan.app(&process.group) {
                Some(app) => self.planned(app).await?,
                None => Vec::new(),
            };
            let start = planned.iter().find(|start| start.job == process.name);
            let node = match start {
                Some(start) => start.node.as_ref().map(|node| node.as_str()),
                // What does not start with its app, or has none, is started here.
                None => Some(view.me()),
            };
            let reason = start.and_then(|start| start.reason.as_deref());
            tested.push(info::tested(process, false, node, reason));
        }
        Ok(XmlValue::Array(tested))
    }

    async fn planned(&self, app: &AppPlan) -> Result<Vec<PlannedStart>, Fault> {
        let plan = self.state.handle.plan_start(&app.name).await?;
        Ok(plan.map(|plan| plan.jobs).unwrap_or_default())
    }

    /// On this node alone, whatever the rules say.
    async fn start_args(
        &self,
        view: &View,
        namespec: &str,
        args: Vec<String>,
        wait: bool,
    ) -> Result<XmlValue, Fault> {
        let known = view.named(namespec)?;
        let [process] = known.as_slice() else {
            return Err(Fault::about(Code::BadName, namespec));
        };
        let job = view.status.jobs.iter().find(|job| job.name == process.name);
        let Some(job) = job else {
            let text = format!("namespec={namespec} unknown to Supervisor");
            return Err(Fault::about(Code::BadName, text));
        };
        if process.disabled {
            return Err(Fault::about(Code::Disabled, namespec));
        }
        self.supervisor.start_with(job, namespec, Some(args), wait).await?;
        Ok(XmlValue::Bool(true))
    }

    async fn enable(&self, view: &View, name: &str) -> Result<XmlValue, Fault> {
        for process in program(view, name)?.iter().filter(|process| process.disabled) {
            let request = Request::Enable { job: process.name.clone() };
            self.state.handle.request(request).await??;
        }
        Ok(XmlValue::Bool(true))
    }

    async fn disable(&self, view: &View, name: &str, wait: bool) -> Result<XmlValue, Fault> {
        let processes = program(view, name)?;
        let up: Vec<&UnitedProcess> =
            processes.iter().copied().filter(|it| it.is_running()).collect();
        self.steer(view, &up, Steering::Stop, wait).await?;
        for process in processes {
            let request = Request::Disable { job: process.name.clone() };
            self.state.handle.request(request).await??;
        }
        Ok(XmlValue::Bool(true))
    }

    async fn conciliate(&self, params: &Params) -> Result<XmlValue, Fault> {
        let rule = one_of(params, &CONCILIATIONS, "ConciliationStrategies")?;
        if rule == Conciliation::User {
            return Ok(XmlValue::Bool(false));
        }
        let request = FleetRequest::Conciliate { job: None, rule };
        placed::ask(&self.state, request, PATIENCE).await?;
        Ok(XmlValue::Bool(true))
    }

    /// One application after the other, by their sequence; several of one sequence as well.
    async fn restart_sequence(&self, view: &View, wait: bool) -> Result<XmlValue, Fault> {
        let busy = view.applications().iter().any(|it| matches!(it.state().0, 1 | 3));
        if busy {
            return Err(Fault::about(Code::BadSupvisorsState, "jobs in progress"));
        }
        let mut apps: Vec<&AppPlan> = view.plan.apps.iter().collect();
        apps.retain(|app| {
            let down = |job: &UnitedProcess| job.is_stopped() && !job.disabled && starts(view, job);
            let known = view.application(app.name.as_str());
            app.start_sequence > 0 && known.is_ok_and(|it| it.processes.iter().any(|job| down(job)))
        });
        apps.sort_by_key(|app| app.start_sequence);
        if apps.is_empty() {
            let text = "failed to trigger start sequence";
            return Err(Fault::about(Code::AbnormalTermination, text));
        }
        for app in apps {
            self.start_rest(app, wait).await;
        }
        Ok(XmlValue::Bool(true))
    }

    /// One that does not come up keeps none of the others from it.
    async fn start_rest(&self, app: &AppPlan, wait: bool) {
        let request = vec![Request::StartApp { app: app.name.clone() }];
        let (goal, query) = (Goal::Started { beyond: 0 }, WaitQuery::lasting(patience(wait)));
        let _ = Subject::of_app(&app.name).ask_and_wait(&self.state, request, goal, &query).await;
    }

    /// All nodes of the fleet, or this one if there is none.
    async fn end(&self, view: &View, again: bool) -> Result<XmlValue, Fault> {
        match (&view.fleet, again) {
            (Some(_), again) => {
                placed::ask(&self.state, FleetRequest::EndFleet { again }, PATIENCE).await?;
            }
            (None, true) => return self.supervisor.restart_all().await,
            (None, false) => {
                self.state.handle.request(Request::Shutdown).await??;
            }
        }
        Ok(XmlValue::Bool(true))
    }
}

fn ends(view: &View, process: &UnitedProcess) -> bool {
    view.plan.job(process.name.as_str()).is_some_and(|job| job.place.wait_exit)
}

fn starts(view: &View, process: &UnitedProcess) -> bool {
    let job = view.plan.job(process.name.as_str());
    job.is_some_and(|job| job.place.start_sequence > 0)
}

/// Lets a call in, or says in which states it would be.
fn gate(call: FleetCall, stage: Stage) -> Result<(), Fault> {
    let allowed: &[Stage] = match call {
        FleetCall::ApiVersion
        | FleetCall::State
        | FleetCall::AllStateModes
        | FleetCall::StateModes
        | FleetCall::MasterName
        | FleetCall::Master
        | FleetCall::Core
        | FleetCall::Strategies
        | FleetCall::StatisticsStatus
        | FleetCall::NodeInfo
        | FleetCall::InstanceInfo
        | FleetCall::AllInstancesInfo
        | FleetCall::NetworkInfo
        | FleetCall::LocalProcessInfo
        | FleetCall::AllLocalProcessInfo
        | FleetCall::InnerProcessInfo
        | FleetCall::AllInnerProcessInfo
        | FleetCall::StartArgs
        | FleetCall::LogLevel
        | FleetCall::Statistics => return Ok(()),
        FleetCall::ApplicationInfo
        | FleetCall::AllApplicationsInfo
        | FleetCall::ApplicationRules
        | FleetCall::ProcessInfo
        | FleetCall::AllProcessInfo
        | FleetCall::ProcessRules
        | FleetCall::Conflicts
        | FleetCall::Restart
        | FleetCall::Shutdown => &Stage::WORKING,
        FleetCall::StopApplication | FleetCall::StopProcess => {
            &[Stage::Operation, Stage::Conciliation]
        }
        FleetCall::StartApplication
        | FleetCall::TestStartApplication
        | FleetCall::RestartApplication
        | FleetCall::StartProcess
        | FleetCall::TestStartProcess
        | FleetCall::StartAnyProcess
        | FleetCall::RestartProcess
        | FleetCall::UpdateNumprocs
        | FleetCall::Enable
        | FleetCall::Disable
        | FleetCall::RestartSequence => &[Stage::Operation],
        FleetCall::Conciliate => &[Stage::Conciliation],
        FleetCall::EndSync => &[Stage::Initialization],
    };
    if allowed.contains(&stage) {
        return Ok(());
    }
    let expected = listed(allowed.iter().map(|it| it.today().1));
    let text =
        format!("invalid Supvisors state={} - state expected in {expected}", stage.today().1);
    Err(Fault::about(Code::BadSupvisorsState, text))
}

fn each<'a>(
    processes: impl IntoIterator<Item = &'a UnitedProcess>,
    value: impl Fn(&UnitedProcess) -> XmlValue,
) -> XmlValue {
    XmlValue::Array(processes.into_iter().map(value).collect())
}

/// The processes of a program: a job, or the instances of one.
fn program<'a>(view: &'a View, name: &str) -> Result<Vec<&'a UnitedProcess>, Fault> {
    let of: Vec<&UnitedProcess> =
        view.processes.iter().filter(|it| stands_for(name, it.name.as_str())).collect();
    match of.is_empty() {
        true => {
            let text = format!("program={name} unknown to Supvisors");
            Err(Fault::about(Code::BadName, text))
        }
        false => Ok(of),
    }
}

/// The strategy that a call names: it has to be one, and the rules' own counts.
fn strategy(params: &Params) -> Result<(), Fault> {
    one_of(params, &STRATEGIES, "StartingStrategies").map(|_| ())
}

/// By name or number.
fn one_of<T: Copy>(params: &Params, words: &[(&'static str, T)], class: &str) -> Result<T, Fault> {
    let wrong = |value: &str, expected: String| {
        let text = format!("invalid <enum '{class}'> value={value} - {expected}");
        Err(Fault::about(Code::IncorrectParameters, text))
    };
    match params.0.first() {
        Some(XmlValue::Text(text)) => match words.iter().find(|(word, _)| word == text) {
            Some((_, what)) => Ok(*what),
            None => {
                let known = listed(words.iter().map(|(word, _)| word));
                wrong(text, format!("string expected in {known}"))
            }
        },
        Some(XmlValue::Int(number)) => {
            let at = usize::try_from(*number).ok();
            match at.and_then(|at| words.get(at)) {
                Some((_, what)) => Ok(*what),
                None => {
                    let known: Vec<String> = (0..words.len()).map(|it| it.to_string()).collect();
                    let expected = format!("integer expected in [{}]", known.join(", "));
                    wrong(&number.to_string(), expected)
                }
            }
        }
        Some(_) | None => Err(Fault::of(Code::IncorrectParameters)),
    }
}

fn extra_args(params: &Params) -> Result<Vec<String>, Fault> {
    match params.0.get(2) {
        None => Ok(Vec::new()),
        Some(_) => arguments(params.text(2)?),
    }
}

fn no_statistics() -> XmlValue {
    XmlValue::pairs([
        ("host_stats", XmlValue::Bool(false)),
        ("process_stats", XmlValue::Bool(false)),
        ("collecting_period", XmlValue::Double(0.0)),
    ])
}

/// A level is checked; but it is the configuration that has it.
fn log_level(params: &Params) -> Result<XmlValue, Fault> {
    let known = match params.0.first() {
        Some(XmlValue::Text(text)) => LEVELS.contains(&text.to_ascii_lowercase().as_str()),
        Some(XmlValue::Int(number)) => (5..=50).contains(number),
        Some(_) | None => false,
    };
    match known {
        true => {
            Err(Fault::about(Code::NotApplicable, "the level is in [log] of the configuration"))
        }
        false => Err(Fault::of(Code::IncorrectParameters)),
    }
}
