//! Units of systemd by D-Bus.
//!
//! A job is waited for by its own path, subscribed to before it is queued: the signal of its end may
//! come before the answer that names it. `done` says that systemd is content; what the unit made of
//! it is read afterwards. Reading needs no right.

use super::{
    children,
    dbus::{JobRemovedStream, ManagerProxy, ServiceProxy, UnitProxy},
    names::{instance_unit, unit_name},
    signal_files::{SignalFiles, Verb},
};
use futures_util::StreamExt;
use mainstay_core::{
    plan::ReloadMethod,
    rollout::{InstanceNumber, ServiceAction, ServiceFacts},
    signal::Signal,
};
use std::{collections::BTreeSet, io, time::Duration};
use thiserror::Error;
use tokio::{sync::Mutex, time::timeout};
use zbus::{Connection, OwnedObjectPath, connection::Builder, fdo, proxy::CacheProperties};

/// Queue it, in place of what contradicts it.
const MODE: &str = "replace";
/// For an answer that needs no job.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub enum UnitError {
    #[error("systemd does not answer: {0}")]
    Unreachable(zbus::Error),
    #[error("systemd does not answer within {0:?}")]
    Silent(Duration),
    #[error("there is no unit {0}")]
    NotFound(String),
    #[error("the rights to tell {0} are missing")]
    Denied(String),
    #[error("systemd refuses {unit}: {source}")]
    Refused { unit: String, source: zbus::Error },
    #[error("the job for {unit} ended with '{result}'{why}")]
    Job { unit: String, result: String, why: String },
    #[error("{unit} {why}")]
    Unit { unit: String, why: String },
    #[error("it is not done within {limit:?}: {unit} is {state}")]
    Late { unit: String, limit: Duration, state: String },
    #[error("cannot write a signal file: {0}")]
    SignalFile(#[from] io::Error),
}

/// What systemd says of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    /// `active`, `reloading`, `inactive`, `failed`, `activating`, `deactivating`, …
    pub active: String,
    pub main_pid: Option<u32>,
    /// Another one with each start.
    pub invocation: Vec<u8>,
    /// Of its last run.
    pub result: String,
    /// Of its last reload.
    pub reload_result: String,
}

impl UnitFacts {
    /// It has a process, or gets one by itself.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading" | "activating" | "refreshing")
    }

    fn is_gone(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }
}

/// systemd, connected to when it is first needed, and again after it has died.
#[derive(Debug)]
pub struct Units {
    /// `None`: that of the system.
    address: Option<String>,
    signal_files: Option<SignalFiles>,
    connection: Mutex<Option<Connection>>,
}

impl Units {
    /// With signal files where rights are missing.
    #[must_use]
    pub fn new(signal_files: Option<SignalFiles>) -> Units {
        Units { address: None, signal_files, connection: Mutex::default() }
    }

    /// At another address than that of the system's bus.
    #[must_use]
    pub fn at(address: &str, signal_files: Option<SignalFiles>) -> Units {
        Units { address: Some(address.to_owned()), ..Units::new(signal_files) }
    }

    /// How a service is.
    ///
    /// # Errors
    /// When systemd does not answer, or has no such unit.
    pub async fn inspect(
        &self,
        unit: &str,
        reload: &ReloadMethod,
    ) -> Result<ServiceFacts, UnitError> {
        if *reload != ReloadMethod::FlipFlop {
            let facts = self.facts(&unit_name(unit)).await?;
            return Ok(service_facts(&facts, BTreeSet::new()));
        }
        let one = self.facts(&instance_unit(unit, InstanceNumber::One)).await?;
        let two = self.facts(&instance_unit(unit, InstanceNumber::Two)).await?;
        let both = [(InstanceNumber::One, &one), (InstanceNumber::Two, &two)];
        let instances: BTreeSet<InstanceNumber> =
            both.iter().filter(|(_, facts)| facts.is_running()).map(|(it, _)| *it).collect();
        let shown = if instances.contains(&InstanceNumber::Two) { &two } else { &one };
        Ok(service_facts(shown, instances))
    }

    /// Tells it, and waits for what comes of it.
    ///
    /// # Errors
    /// When it was not told, or it did not go well, or there is no end within the limit.
    pub async fn tell(
        &self,
        unit: &str,
        action: &ServiceAction,
        limit: Duration,
    ) -> Result<(), UnitError> {
        let (name, verb) = match action {
            ServiceAction::ReloadOrRestart => (unit_name(unit), Verb::Reload),
            ServiceAction::BringUp => (unit_name(unit), Verb::Start),
            ServiceAction::Start(number) => (instance_unit(unit, *number), Verb::Start),
            ServiceAction::Stop(number) => (instance_unit(unit, *number), Verb::Stop),
            ServiceAction::Signal(signal) => return self.signal(&unit_name(unit), *signal).await,
            ServiceAction::Exec => {
                let why = "is told by a command, not by systemd".to_owned();
                return Err(UnitError::Unit { unit: unit_name(unit), why });
            }
        };
        let telling = async {
            match (self.run(&name, verb).await, &self.signal_files) {
                (Err(UnitError::Denied(_)), Some(files)) => files.tell(self, &name, verb).await,
                (told, _) => told,
            }
        };
        let Ok(told) = timeout(limit, telling).await else {
            let state = self.facts(&name).await.map_or_else(|it| it.to_string(), |it| it.active);
            return Err(UnitError::Late { unit: name, limit, state });
        };
        told?;
        self.confirm(&name, verb).await
    }

    /// What systemd knows of a unit.
    ///
    /// # Errors
    /// When it does not answer, or has no such unit.
    pub async fn facts(&self, unit: &str) -> Result<UnitFacts, UnitError> {
        let asked = timeout(LIMIT, self.ask(unit)).await;
        let asked = asked.unwrap_or(Err(UnitError::Silent(LIMIT)));
        if matches!(asked, Err(UnitError::Unreachable(_) | UnitError::Silent(_))) {
            self.disconnect().await;
        }
        asked
    }

    async fn ask(&self, unit: &str) -> Result<UnitFacts, UnitError> {
        let connection = self.connection().await?;
        let manager = ManagerProxy::new(&connection).await.map_err(UnitError::Unreachable)?;
        let path = manager.load_unit(unit).await.map_err(|error| refused(unit, error))?;
        let proxy = UnitProxy::builder(&connection).cache_properties(CacheProperties::No);
        let proxy = proxy.path(path.clone()).build().await.map_err(UnitError::Unreachable)?;
        if proxy.load_state().await.map_err(UnitError::Unreachable)? == "not-found" {
            return Err(UnitError::NotFound(unit.to_owned()));
        }
        let active = proxy.active_state().await.map_err(UnitError::Unreachable)?;
        let invocation = proxy.invocation_id().await.map_err(UnitError::Unreachable)?;
        let (main_pid, result, reload_result) = service(&connection, path).await;
        Ok(UnitFacts { active, main_pid, invocation, result, reload_result })
    }

    async fn run(&self, unit: &str, verb: Verb) -> Result<(), UnitError> {
        // Nothing is loaded that is not there.
        self.facts(unit).await?;
        let ran = self.queue(unit, verb).await;
        if let Err(UnitError::Unreachable(_)) = ran {
            self.disconnect().await;
        }
        ran
    }

    async fn queue(&self, unit: &str, verb: Verb) -> Result<(), UnitError> {
        let connection = self.connection().await?;
        let manager = ManagerProxy::new(&connection).await.map_err(UnitError::Unreachable)?;
        let mut ends = manager.receive_job_removed().await.map_err(UnitError::Unreachable)?;
        manager.subscribe().await.or_else(|error| match &error {
            zbus::Error::MethodError(name, ..) if name.ends_with("AlreadySubscribed") => Ok(()),
            _ => Err(UnitError::Unreachable(error)),
        })?;
        let queued = match verb {
            Verb::Reload => manager.reload_or_try_restart_unit(unit, MODE).await,
            Verb::Start => {
                // It may have been started too often for systemd's taste. What was never tried is
                // refused, which means nothing.
                let _ = manager.reset_failed_unit(unit).await;
                manager.start_unit(unit, MODE).await
            }
            Verb::Stop => manager.stop_unit(unit, MODE).await,
        };
        let job = queued.map_err(|error| refused(unit, error))?;
        match end_of(&mut ends, &job).await?.as_str() {
            "done" => Ok(()),
            result => {
                let why = self.facts(unit).await.map_or_else(|_| String::new(), |it| why(&it));
                Err(UnitError::Job { unit: unit.to_owned(), result: result.to_owned(), why })
            }
        }
    }

    /// A job may be done although the unit failed at it.
    async fn confirm(&self, unit: &str, verb: Verb) -> Result<(), UnitError> {
        let facts = self.facts(unit).await?;
        let well = match verb {
            Verb::Reload => facts.active != "failed" && facts.reload_result == "success",
            Verb::Start => facts.active == "active" || facts.active == "reloading",
            Verb::Stop => facts.is_gone(),
        };
        match well {
            true => Ok(()),
            false => {
                let why = format!("is {}{}", facts.active, why(&facts));
                Err(UnitError::Unit { unit: unit.to_owned(), why })
            }
        }
    }

    /// To its main process. One that has none is left alone.
    async fn signal(&self, unit: &str, signal: Signal) -> Result<(), UnitError> {
        if self.facts(unit).await?.main_pid.is_none() {
            return Ok(());
        }
        let connection = self.connection().await?;
        let manager = ManagerProxy::new(&connection).await.map_err(UnitError::Unreachable)?;
        let sent = timeout(LIMIT, manager.kill_unit(unit, "main", signal.number())).await;
        let sent = sent.map_err(|_| UnitError::Silent(LIMIT))?;
        sent.map_err(|error| refused(unit, error))
    }

    async fn connection(&self) -> Result<Connection, UnitError> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let connecting = async {
            match &self.address {
                None => Builder::system().build().await,
                Some(address) => Builder::address(address.as_str()).build().await,
            }
        };
        let connection = timeout(LIMIT, connecting).await.map_err(|_| UnitError::Silent(LIMIT))?;
        let connection = connection.map_err(UnitError::Unreachable)?;
        *kept = Some(connection.clone());
        Ok(connection)
    }

    async fn disconnect(&self) {
        *self.connection.lock().await = None;
    }
}

/// The result of that job; a bus that dies ends it, too.
async fn end_of(ends: &mut JobRemovedStream, job: &OwnedObjectPath) -> Result<String, UnitError> {
    while let Some(end) = ends.next().await {
        let args = end.args().map_err(UnitError::Unreachable)?;
        if args.job() == job {
            return Ok(args.result().clone());
        }
    }
    let died = io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended");
    Err(UnitError::Unreachable(died.into()))
}

/// Of a unit that is no service nothing of it is known.
async fn service(connection: &Connection, path: OwnedObjectPath) -> (Option<u32>, String, String) {
    let success = || "success".to_owned();
    let builder =
        ServiceProxy::builder(connection).cache_properties(CacheProperties::No).path(path);
    let Ok(proxy) = builder.build().await else { return (None, success(), success()) };
    let main_pid = proxy.main_pid().await.ok().filter(|pid| *pid != 0);
    let result = proxy.result().await.unwrap_or_else(|_| success());
    let reload_result = proxy.reload_result().await.unwrap_or_else(|_| success());
    (main_pid, result, reload_result)
}

fn service_facts(facts: &UnitFacts, instances: BTreeSet<InstanceNumber>) -> ServiceFacts {
    ServiceFacts {
        running: facts.is_running() || !instances.is_empty(),
        healthy: facts.active != "failed" && facts.result == "success",
        died: facts.active == "failed",
        instances,
        main_pid: facts.main_pid,
        children: facts.main_pid.map(children).unwrap_or_default(),
    }
}

fn refused(unit: &str, error: zbus::Error) -> UnitError {
    let unit = unit.to_owned();
    match &error {
        zbus::Error::MethodError(name, ..) => match name.as_str().rsplit('.').next() {
            Some("NoSuchUnit") => UnitError::NotFound(unit),
            Some("AccessDenied" | "InteractiveAuthorizationRequired" | "NotAuthorized") => {
                UnitError::Denied(unit)
            }
            Some(_) | None => UnitError::Refused { unit, source: error },
        },
        zbus::Error::FDO(standard) => match **standard {
            fdo::Error::AccessDenied(_)
            | fdo::Error::AuthFailed(_)
            | fdo::Error::InteractiveAuthorizationRequired(_) => UnitError::Denied(unit),
            fdo::Error::Disconnected(_)
            | fdo::Error::NoServer(_)
            | fdo::Error::NoReply(_)
            | fdo::Error::ServiceUnknown(_) => UnitError::Unreachable(error),
            _ => UnitError::Refused { unit, source: error },
        },
        _ => UnitError::Unreachable(error),
    }
}

fn why(facts: &UnitFacts) -> String {
    let UnitFacts { result, reload_result, .. } = facts;
    match (result.as_str(), reload_result.as_str()) {
        ("success", "success") => String::new(),
        ("success", reload) => format!(": its reload ended with '{reload}'"),
        (result, _) => format!(": it ended with '{result}'"),
    }
}
