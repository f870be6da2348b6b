//! From a job's plan to what the keeper needs: every name looked up, every default filled in.

use crate::effects::env::Env;
use mainstay_core::{
    clock::Mono,
    name::Name,
    plan::{CheckOutput, ForwardFormat, JobPlan, Log, Probe, Reload},
    task::{Bytes, TaskId, TaskKind, TaskOwner, TaskSpec},
    text::bytes,
};
use mainstay_pool::Unserved;
use mainstay_sys::user::{User, lookup_group, lookup_user};
use mainstay_wire::{
    link::{Exec, Identity, LiveSettings, Spawn, ToKeeper},
    task::{RunTask, TaskKey},
};
use rustix::process::{getegid, geteuid};
use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Why a name could not be turned into a number.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("unknown user '{0}'")]
    NoUser(String),
    #[error("unknown group '{0}'")]
    NoGroup(String),
    #[error("cannot look up '{0}': {1}")]
    Failed(String, io::Error),
    #[error("users and groups cannot be looked up: {0}")]
    Unserved(#[from] Unserved),
}

/// What is to be run for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    Incarnation { incarnation: u64, args: Vec<String> },
    Task { id: TaskId, deadline: Mono },
}

/// What is to be run for the node itself.
#[derive(Debug)]
pub(crate) struct NodeTask {
    pub(crate) id: TaskId,
    pub(crate) deadline: Mono,
    pub(crate) spec: Box<TaskSpec>,
    pub(crate) env: Env,
}

/// May a lookup be needed, which can be slow?
pub(crate) fn needs_lookup(plan: &JobPlan) -> bool {
    plan.user.is_some() || plan.group.is_some() || plan.groups.is_some()
}

/// The message that starts it. Looks names up: not for the loop if [`needs_lookup`].
pub(crate) fn message(
    plan: &JobPlan,
    run: &Run,
    env: Env,
    now: Mono,
) -> Result<ToKeeper, LookupError> {
    match run {
        Run::Incarnation { incarnation, args } => {
            let exec = exec(plan, &[program(plan), args.clone()].concat(), env)?;
            Ok(ToKeeper::Spawn(Box::new(spawn(plan, *incarnation, exec))))
        }
        Run::Task { id, deadline } => {
            let argv = command(plan, &id.owner);
            Ok(ToKeeper::RunTask(Box::new(RunTask {
                id: TaskKey::from(id),
                job: Some(plan.name.clone()),
                ends_with: ends_with(&id.owner),
                exec: exec(plan, argv, env)?,
                input: Bytes::default(),
                timeout_ms: millis(deadline.since(now)),
                forward: forward(plan, &id.owner).map(Box::new),
            })))
        }
    }
}

/// The same for a task of the node itself. Looks names up, too.
pub(crate) fn node_message(task: NodeTask, now: Mono) -> Result<ToKeeper, LookupError> {
    let NodeTask { id, deadline, spec, env: Env { set: mut env, unset } } = task;
    let user = spec.user.as_deref().map(user).transpose()?;
    if let Some(user) = &user {
        env.extend(of_user(user));
    }
    env.extend(spec.env.iter().cloned());
    let identity = user.map(|User { uid, gid, groups, .. }| Identity { uid, gid, groups });
    let own = (geteuid().as_raw(), getegid().as_raw());
    let exec = Exec {
        argv: spec.exec.clone(),
        env,
        unset,
        cwd: spec.cwd.clone(),
        // Only root may change it, and nobody has to change it to what it is.
        identity: identity.filter(|it| own.0 == 0 || (it.uid, it.gid) != own),
        umask: None,
        nice: None,
    };
    Ok(ToKeeper::RunTask(Box::new(RunTask {
        id: TaskKey::from(&id),
        job: None,
        ends_with: None,
        exec,
        input: spec.input,
        timeout_ms: millis(deadline.since(now)),
        forward: None,
    })))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A check is of no use without the run that it is about.
fn ends_with(owner: &TaskOwner) -> Option<(Name, u64)> {
    match owner {
        TaskOwner::Job { job, incarnation, kind: TaskKind::Check(_) } => {
            Some((job.clone(), *incarnation))
        }
        TaskOwner::Job { kind: TaskKind::StopExec | TaskKind::Reload, .. }
        | TaskOwner::Node { .. }
        | TaskOwner::Rollout { .. } => None,
    }
}

/// What the job executes. One that is only announced has a process that does nothing: our own
/// program, from where the keeper that forks it has it.
fn program(plan: &JobPlan) -> Vec<String> {
    match plan.exec.is_empty() {
        true => ["/proc/self/exe", "__pause"].map(str::to_owned).to_vec(),
        false => plan.exec.clone(),
    }
}

/// What a task of the job executes.
fn command<'a>(plan: &'a JobPlan, owner: &TaskOwner) -> &'a [String] {
    let TaskOwner::Job { kind, .. } = owner else { return &[] };
    match *kind {
        TaskKind::StopExec => plan.stop.exec.as_deref().unwrap_or_default(),
        TaskKind::Reload => match &plan.reload {
            Some(Reload::Exec(command)) => command,
            Some(Reload::Signal(_)) | None => &[],
        },
        TaskKind::Check(check) => match plan.checks.get(check).map(|check| &check.probe) {
            Some(Probe::Exec(command)) => command,
            _ => &[],
        },
    }
}

/// How what a task writes is forwarded; `None`: it is not.
fn forward(plan: &JobPlan, owner: &TaskOwner) -> Option<Log> {
    let TaskOwner::Job { kind: TaskKind::Check(check), .. } = owner else { return None };
    match plan.checks.get(*check)?.output {
        CheckOutput::Event => None,
        CheckOutput::Forward => plan.log.forward.then(|| plan.log.clone()),
        CheckOutput::Raw => Some(Log { format: ForwardFormat::Raw, ..Log::default() }),
    }
}

/// What may change while it runs.
pub(crate) fn live_settings(plan: &JobPlan) -> LiveSettings {
    LiveSettings {
        main: plan.main,
        log: plan.log.clone(),
        stop_signal: plan.stop.signal,
        stop_to: plan.stop.to,
        stop_timeout_ms: u64::try_from(plan.stop.timeout.as_millis()).unwrap_or(u64::MAX),
    }
}

fn spawn(plan: &JobPlan, incarnation: u64, exec: Exec) -> Spawn {
    Spawn {
        job: plan.name.clone(),
        incarnation,
        exec,
        limits: plan.limits.clone(),
        sockets: plan.sockets.clone(),
        notify: plan.notify || plan.checks.iter().any(|check| check.probe == Probe::Notify),
        watchdog_us: plan
            .checks
            .iter()
            .find_map(|check| check.watchdog)
            .and_then(|every| u64::try_from(every.as_micros()).ok()),
        ready_fd: plan.checks.iter().find_map(|check| match check.probe {
            Probe::Fd(number) => i32::try_from(number).ok(),
            _ => None,
        }),
        stderr: plan.stderr,
        session: plan.session,
        stdin: plan.stdin.clone(),
        tty: plan.tty,
        settings: live_settings(plan),
        fence_at: None,
    }
}

fn exec(plan: &JobPlan, argv: &[String], env: Env) -> Result<Exec, LookupError> {
    let user = plan.user.as_deref().map(user).transpose()?;
    // What comes later wins.
    let Env { set: mut env, unset } = env;
    if let Some(user) = &user {
        env.extend(of_user(user));
    }
    env.extend(plan.env.iter().cloned());
    Ok(Exec {
        argv: argv.to_vec(),
        env,
        unset,
        cwd: plan.cwd.clone(),
        identity: identity(plan, user.as_ref())?,
        umask: plan.umask,
        nice: plan.nice,
    })
}

/// The variables by which a user's home and name are known.
fn of_user(user: &User) -> impl Iterator<Item = (String, String)> {
    let all = [("HOME", &user.home), ("USER", &user.name), ("LOGNAME", &user.name)];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| (name.to_owned(), bytes::from_os(value)))
}

/// `None`: it runs as we do, and nothing has to be changed (which only root may).
fn identity(plan: &JobPlan, user: Option<&User>) -> Result<Option<Identity>, LookupError> {
    if !needs_lookup(plan) {
        return Ok(None);
    }
    let (own_uid, own_gid) = (geteuid().as_raw(), getegid().as_raw());
    let uid = user.map_or(own_uid, |user| user.uid);
    let gid = match &plan.group {
        Some(name) => group(name)?,
        None => user.map_or(own_gid, |user| user.gid),
    };
    if plan.groups.is_none() && own_uid != 0 && (uid, gid) == (own_uid, own_gid) {
        return Ok(None);
    }
    let groups = match &plan.groups {
        Some(names) => names.iter().map(|name| group(name)).collect::<Result<_, _>>()?,
        None => user.map_or_else(|| vec![gid], |user| user.groups.clone()),
    };
    Ok(Some(Identity { uid, gid, groups }))
}

/// Users who were found, and when: a thousand jobs of one user ask a slow directory once.
static FOUND: Mutex<BTreeMap<String, (Instant, User)>> = Mutex::new(BTreeMap::new());
const FRESH: Duration = Duration::from_secs(1);

fn user(name: &str) -> Result<User, LookupError> {
    let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found().retain(|_, (at, _)| at.elapsed() < FRESH);
    if let Some((_, user)) = found().get(name) {
        return Ok(user.clone());
    }
    match lookup_user(name) {
        Ok(Some(user)) => {
            found().insert(name.to_owned(), (Instant::now(), user.clone()));
            Ok(user)
        }
        Ok(None) => Err(LookupError::NoUser(name.to_owned())),
        Err(error) => Err(LookupError::Failed(name.to_owned(), error)),
    }
}

fn group(name: &str) -> Result<u32, LookupError> {
    match lookup_group(name) {
        Ok(found) => found.ok_or_else(|| LookupError::NoGroup(name.to_owned())),
        Err(error) => Err(LookupError::Failed(name.to_owned(), error)),
    }
}

/// The job that a message is about.
pub(crate) fn job_of(message: &ToKeeper) -> Option<&Name> {
    match message {
        ToKeeper::Spawn(spawn) => Some(&spawn.job),
        ToKeeper::RunTask(task) => task.job.as_ref(),
        ToKeeper::Stop { job, .. }
        | ToKeeper::Kill { job, .. }
        | ToKeeper::Signal { job, .. }
        | ToKeeper::Extend { job, .. }
        | ToKeeper::UpdateSettings { job, .. }
        | ToKeeper::Rest { job, .. }
        | ToKeeper::Remember { job, .. }
        | ToKeeper::Forget { job } => Some(job),
        ToKeeper::Hello { .. }
        | ToKeeper::Ready { .. }
        | ToKeeper::NodeLog(_)
        | ToKeeper::Reloaded
        | ToKeeper::Ack { .. }
        | ToKeeper::TaskTaken { .. }
        | ToKeeper::Taken { .. }
        | ToKeeper::Told(_)
        | ToKeeper::Inspect { .. }
        | ToKeeper::Upgrade { .. }
        | ToKeeper::Exit { .. } => None,
    }
}
