//! Waiting for a goal: what a path names is asked for something, and waited for until it got there.

use crate::{
    RouterState,
    extract::flag,
    passing::{Hop, PassedAnswer, Question, pass_on},
    placed,
    problem::Problem,
};
use axum::Json;
use futures_util::future::join_all;
use mainstay_config::nearest;
use mainstay_core::{
    job::{Desired, Phase},
    name::{Name, stands_for},
    node::{Refusal, Request},
};
use mainstay_net::percent::segment;
use mainstay_wire::api::{
    FleetStatus, Goal, Incarnations, JobAnswer, JobInstances, JobList, JobStatus, PATIENCE,
    Selection,
};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How long to wait, as the query says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitQuery {
    wait: Option<String>,
    /// On this node alone, whatever the fleet says.
    #[serde(default, deserialize_with = "flag")]
    pub(crate) here: bool,
}

/// Who is asked about a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This node alone.
    Here,
    /// The node where it runs; this one if it runs nowhere.
    Home,
    /// The fleet, from here; only what this node does not know is asked of one that does.
    Fleet,
}

impl Scope {
    pub(crate) fn or_here(self, here: bool) -> Scope {
        if here { Scope::Here } else { self }
    }
}

impl WaitQuery {
    /// So long; zero: not at all.
    pub(crate) fn lasting(patience: Duration) -> WaitQuery {
        WaitQuery { wait: Some(format!("{}s", patience.as_secs())), here: false }
    }

    /// Zero: not at all.
    pub(crate) fn patience(&self) -> Result<Duration, Problem> {
        match &self.wait {
            Some(text) => {
                mainstay_config::duration(text).map_err(|no| Problem::bad_request(no.to_string()))
            }
            None => Ok(PATIENCE),
        }
    }

    /// As another node is to be asked.
    pub(crate) fn passed_on(&self) -> String {
        self.wait.as_ref().map_or_else(String::new, |wait| format!("wait={}", segment(wait)))
    }
}

/// What is asked for something: a job, all instances of one, or an app.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Each of them is asked, here.
    asked: Vec<Name>,
    /// These are asked of other nodes.
    elsewhere: BTreeMap<Name, Vec<Name>>,
    shape: Shape,
    jobs: Selection,
    /// Those that a start waits for: what does not start with its app is not among them.
    started: Selection,
}

/// What the answer looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    One,
    /// The name in the file, where a job has instances.
    InstancesOf(String),
    /// Several names were given.
    List,
}

impl Subject {
    /// The job of this name, or the instances of the job that is written under it; or several such
    /// names with commas between them. All of them have to be there.
    pub(crate) async fn of_job(
        state: &RouterState,
        names: &str,
        scope: Scope,
    ) -> Result<Subject, Problem> {
        let (mut all, mut shape) = (Vec::new(), Shape::One);
        for name in names.split(',') {
            let found = find(state, name, scope).await?;
            shape = match found.as_slice() {
                [] => return Err(no_such_job(state, name).await?),
                [job] if job.name.as_str() == name => Shape::One,
                [..] => Shape::InstancesOf(name.to_owned()),
            };
            all.extend(found);
        }
        if names.contains(',') {
            let mut seen = BTreeSet::new();
            all.retain(|it| seen.insert(it.name.clone()));
            shape = Shape::List;
        }
        let (mut asked, mut elsewhere) = (Vec::new(), BTreeMap::<Name, Vec<Name>>::new());
        for FoundJob { name, node } in all {
            match node {
                None => asked.push(name),
                Some(node) => elsewhere.entry(node).or_default().push(name),
            }
        }
        let jobs = Selection::These(asked.clone());
        Ok(Subject { asked, elsewhere, shape, started: jobs.clone(), jobs })
    }

    /// The other node that has all of it; `None`: this one has.
    pub(crate) fn only_node(&self) -> Result<Option<&Name>, Problem> {
        match (self.elsewhere.len(), self.is_here()) {
            (0, _) => Ok(None),
            (1, false) => Ok(self.elsewhere.keys().next()),
            (_, _) => {
                let why = "it runs on several nodes: ask for one of its instances, or the fleet";
                Err(Problem::conflict(why))
            }
        }
    }

    /// Some of it is asked here.
    pub(crate) fn is_here(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Asks the other nodes about what is theirs; `question` is told which path names them. All are
    /// asked, also when one refuses.
    pub(crate) async fn jobs_elsewhere(
        &self,
        state: &RouterState,
        hop: Hop,
        question: impl Fn(String) -> Question,
    ) -> Result<Vec<JobStatus>, Problem> {
        let asked = self.elsewhere.iter().map(|(node, jobs)| {
            let names: Vec<String> = jobs.iter().map(|job| segment(job.as_str())).collect();
            pass_on(state, hop, node, question(format!("/v1/jobs/{}", names.join(","))))
        });
        let mut jobs = Vec::new();
        for answer in join_all(asked).await {
            jobs.extend(answer?.read::<JobAnswer>().await?.into_jobs());
        }
        Ok(jobs)
    }

    /// As [`Subject::jobs_elsewhere`], a question for each job.
    pub(crate) async fn ask_elsewhere(
        &self,
        state: &RouterState,
        hop: Hop,
        question: impl Fn(String) -> Question,
    ) -> Result<Vec<PassedAnswer>, Problem> {
        let each = self.elsewhere.iter().flat_map(|(node, jobs)| {
            jobs.iter().map(move |job| (node, format!("/v1/jobs/{}", segment(job.as_str()))))
        });
        let asked = each.map(|(node, path)| pass_on(state, hop, node, question(path)));
        join_all(asked).await.into_iter().collect()
    }

    /// One request that concerns them all; instances are asked one by one, and one that cannot does
    /// not keep the others from it.
    pub(crate) fn together(&self, request: impl Fn(Vec<Name>) -> Request) -> Vec<Request> {
        match self.shape {
            Shape::InstancesOf(_) => self.each(|job| request(vec![job])),
            Shape::One | Shape::List => vec![request(self.asked.clone())],
        }
    }

    /// A request for each.
    pub(crate) fn each(&self, request: impl Fn(Name) -> Request) -> Vec<Request> {
        self.asked.iter().cloned().map(request).collect()
    }

    /// Several stop in their order.
    pub(crate) fn stops(&self) -> Vec<Request> {
        match self.asked.as_slice() {
            [] => Vec::new(),
            [job] => vec![Request::Stop { job: job.clone() }],
            jobs => vec![Request::StopInOrder { jobs: jobs.to_vec() }],
        }
    }

    pub(crate) fn of_app(app: &Name) -> Subject {
        Subject {
            asked: vec![app.clone()],
            elsewhere: BTreeMap::new(),
            shape: Shape::One,
            jobs: Selection::OfApp(app.clone()),
            started: Selection::StartedWith(app.clone()),
        }
    }

    /// Whom a goal is for.
    fn concerned(&self, goal: Goal) -> Selection {
        match goal {
            Goal::Up { .. }
            | Goal::Anew
            | Goal::Started { .. }
            | Goal::StartedAnew
            | Goal::Launched => self.started.clone(),
            Goal::Down | Goal::Begun => self.jobs.clone(),
        }
    }

    /// The name of the job that has instances, if it is one.
    pub(crate) fn instances_of(&self) -> Option<&str> {
        match &self.shape {
            Shape::InstancesOf(name) => Some(name),
            Shape::One | Shape::List => None,
        }
    }

    /// One job as it is, instances in a list.
    pub(crate) fn answer(&self, mut jobs: Vec<JobStatus>) -> Result<Json<JobAnswer>, Problem> {
        Ok(Json(match &self.shape {
            Shape::InstancesOf(name) => {
                JobAnswer::Instances(JobInstances { instances_of: name.clone(), jobs })
            }
            Shape::List => JobAnswer::List(JobList { jobs }),
            // It may have left the plan meanwhile.
            Shape::One => JobAnswer::Job(Box::new(jobs.pop().ok_or_else(|| self.not_there())?)),
        }))
    }

    pub(crate) fn not_there(&self) -> Problem {
        Problem::no_such_job(self.asked.first().map_or("", Name::as_str), None)
    }

    /// Those of them that the fleet places.
    pub(crate) async fn placed(&self, state: &RouterState) -> Result<Vec<Name>, Problem> {
        let placed = self.jobs(state).await?.into_iter().filter(|job| job.placed.is_some());
        let elsewhere = self.elsewhere.values().flatten().cloned();
        Ok(placed.map(|job| job.name).chain(elsewhere).collect())
    }

    pub(crate) async fn jobs(&self, state: &RouterState) -> Result<Vec<JobStatus>, Problem> {
        Ok(state.handle.jobs(self.jobs.clone()).await?)
    }

    /// Asks, and is done when that is taken.
    pub(crate) async fn ask(
        &self,
        state: &RouterState,
        request: impl Fn(Name) -> Request,
    ) -> Result<Vec<JobStatus>, Problem> {
        let refused = send(state, self.asked.iter().cloned().map(request)).await?.1;
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }

    /// Lets each reload in its own way, and waits for the commands that this takes.
    pub(crate) async fn reload(
        &self,
        state: &RouterState,
        wait: &WaitQuery,
    ) -> Result<Vec<JobStatus>, Problem> {
        let mut waiter = state.handle.wait(wait.patience()?);
        let (mut begun, mut refused) = (Vec::new(), None);
        for job in &self.asked {
            match state.handle.request(Request::Reload { job: job.clone() }).await? {
                Ok(accepted) => begun.extend(accepted.task.map(|task| (job, task))),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        for (job, task) in begun {
            waiter.wait_for_task(job, task).await?;
        }
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }

    /// Asks, and waits until every job has got to its goal, one cannot, or time is over.
    pub(crate) async fn ask_and_wait(
        &self,
        state: &RouterState,
        requests: Vec<Request>,
        goal: Goal,
        wait: &WaitQuery,
    ) -> Result<Vec<JobStatus>, Problem> {
        let patience = wait.patience()?;
        let fleet = if wait.here { None } else { state.handle.fleet().await? };
        let requests = match &fleet {
            Some(fleet) => self.ask_fleet(state, fleet, requests, goal, patience).await?,
            None => requests,
        };
        if requests.is_empty() {
            return self.jobs(state).await;
        }
        let elsewhere = |job: &JobStatus| fleet.is_some() && job.placed.is_some();
        let waiter = state.handle.wait(patience);
        let jobs = self.jobs(state).await?;
        let (before, ended) = (incarnations(&jobs), ended(jobs));
        let (accepted, refused) = send(state, requests.into_iter()).await?;
        // Who was refused goes nowhere: only the others are waited for.
        let refused_all = refused.is_some() && accepted.is_empty();
        let taken = |job: &JobStatus| refused.is_none() || accepted.contains_key(&job.name);
        let before: Incarnations = before.into_iter().chain(accepted.clone()).collect();
        if !refused_all {
            let concerned = self.concerned(goal);
            let counts = |job: &JobStatus| taken(job) && !elsewhere(job);
            // Its app may not have come to it yet: that it failed before says nothing.
            let ended_before = |job: &JobStatus| ended.get(&job.name) == Some(&job.since);
            let goal = |job: &JobStatus| match goal.after(&before, job)? {
                _ if !counts(job) => None,
                goal if goal.needs_a_start() && ended_before(job) => Some(Goal::Launched),
                goal => Some(goal),
            };
            waiter.wait(concerned, goal).await?;
        }
        match refused {
            Some(refusal) => Err(refusal.into()),
            None => self.jobs(state).await,
        }
    }
}

impl Subject {
    /// What the fleet places is asked of its master, and waited for. What is this node's own comes
    /// back.
    async fn ask_fleet(
        &self,
        state: &RouterState,
        fleet: &FleetStatus,
        requests: Vec<Request>,
        goal: Goal,
        patience: Duration,
    ) -> Result<Vec<Request>, Problem> {
        let (theirs, ours) = placed::divide(fleet, requests);
        if theirs.is_empty() {
            return Ok(ours);
        }
        for request in theirs {
            placed::ask(state, request, patience).await?;
        }
        let concerned = state.handle.jobs(self.concerned(goal)).await?;
        let placed = concerned.into_iter().filter(|job| job.placed.is_some());
        let mut jobs: BTreeSet<Name> = placed.map(|job| job.name).collect();
        jobs.extend(self.unknown_members(state, goal).await?);
        placed::wait(state, fleet, &jobs, goal, patience).await?;
        Ok(ours)
    }
}

impl Subject {
    /// The jobs of an app that only other nodes know, as far as the fleet wants them to get there.
    async fn unknown_members(&self, state: &RouterState, goal: Goal) -> Result<Vec<Name>, Problem> {
        let Selection::OfApp(app) = &self.jobs else { return Ok(Vec::new()) };
        let known = self.jobs(state).await?;
        let Some(fleet) = state.handle.fleet().await? else { return Ok(Vec::new()) };
        let unknown = fleet.jobs.into_iter().filter(|job| {
            let wanted = goal == Goal::Down || job.desired == Desired::Run;
            job.app == *app && wanted && known.iter().all(|it| it.name != job.job)
        });
        Ok(unknown.map(|job| job.job).collect())
    }
}

/// A job that a name stands for.
#[derive(Debug, Clone)]
struct FoundJob {
    name: Name,
    /// The node to ask; `None`: this one.
    node: Option<Name>,
}

/// The job of this name, or the instances of what is written under it.
async fn find(state: &RouterState, name: &str, scope: Scope) -> Result<Vec<FoundJob>, Problem> {
    let known = state.handle.jobs(Selection::Named(name.to_owned())).await?;
    if known.is_empty() && scope != Scope::Here {
        return find_unknown(state, name).await;
    }
    let me = state.handle.node_name();
    let home = |job: &JobStatus| {
        let home = job.placed.as_ref().filter(|_| scope == Scope::Home)?.home()?;
        Some(home.node.clone()).filter(|node| Some(node) != me)
    };
    Ok(known.into_iter().map(|job| FoundJob { node: home(&job), name: job.name }).collect())
}

/// What only other nodes know: asked where it runs, else of the first that knows it.
async fn find_unknown(state: &RouterState, name: &str) -> Result<Vec<FoundJob>, Problem> {
    let Some(fleet) = state.handle.fleet().await? else { return Ok(Vec::new()) };
    let meant = fleet.jobs.iter().filter(|job| stands_for(name, job.job.as_str()));
    let found = meant.filter_map(|job| {
        let home = job.home().map(|copy| &copy.node);
        let node = home.or(job.known_by.first())?.clone();
        Some(FoundJob { name: job.job.clone(), node: Some(node) })
    });
    Ok(found.collect())
}

/// With the name that may have been meant.
pub(crate) async fn no_such_job(state: &RouterState, name: &str) -> Result<Problem, Problem> {
    let status = state.handle.status().await?;
    let here = status.jobs.iter().flat_map(|job| [Some(&job.name), job.instance_of.as_ref()]);
    let placed = status.fleet.iter().flat_map(|fleet| &fleet.jobs).map(|job| &job.job);
    let names = here.flatten().chain(placed).map(Name::as_str);
    Ok(Problem::no_such_job(name, nearest(name, names)))
}

fn incarnations(jobs: &[JobStatus]) -> Incarnations {
    jobs.iter().map(|job| (job.name.clone(), job.incarnation)).collect()
}

/// Since when those that may be started have been at their end.
fn ended(jobs: Vec<JobStatus>) -> BTreeMap<Name, String> {
    let ended = |job: &JobStatus| match (job.state, job.desired) {
        (_, Desired::Disabled) => false,
        (Phase::Exited | Phase::Fatal, Desired::Run | Desired::Rest) => true,
        (
            Phase::Stopped
            | Phase::Starting
            | Phase::Running
            | Phase::Backoff
            | Phase::Stopping
            | Phase::Unknown,
            Desired::Run | Desired::Rest,
        ) => false,
    };
    jobs.into_iter().filter(ended).map(|job| (job.name, job.since)).collect()
}

/// Sends all, also when one is refused: the others are no worse for it. The incarnations before,
/// and the first refusal.
async fn send(
    state: &RouterState,
    requests: impl Iterator<Item = Request>,
) -> Result<(Incarnations, Option<Refusal>), Problem> {
    let (mut before, mut refused) = (Incarnations::new(), None);
    for request in requests {
        let job = request.job().cloned();
        match (state.handle.request(request).await?, job) {
            (Ok(accepted), Some(job)) => drop(before.insert(job, accepted.before)),
            (Ok(_), None) => {}
            (Err(refusal), _) => refused = refused.or(Some(refusal)),
        }
    }
    Ok((before, refused))
}
