//! What the holder of a catalogue sees: wishes go in, reports come out, and nothing waits.

use crate::{
    consul::ConsulDriver,
    driver::Driver,
    file::FileDriver,
    service::{Desired, Service, Wanted},
    watch_task,
};
use mainstay_core::discovery::{Backend, InstanceList, Query, Registration, Standing};
use std::{collections::BTreeMap, fmt, sync::Arc};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

/// The way to one catalogue. Dropped, it ends its tasks.
#[derive(Debug)]
pub struct Catalogue {
    driver: AnyDriver,
    services: BTreeMap<String, Kept>,
    watches: BTreeMap<String, Task>,
    reports: mpsc::UnboundedSender<Report>,
}

/// What has become of a service or a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The service is in the catalogue, with the standing that was asked for. Said again when it
    /// had been lost there and is back.
    Announced { id: String },
    /// The service is out of the catalogue; or `done` is false, the first try has failed, and it
    /// goes on in the background: then this is said again with `done` if that succeeds.
    Withdrawn { id: String, done: bool },
    /// All passing instances: the first answer, and each one that differs from the last. One that
    /// was on its way may still come after the watch has ended.
    Instances { watch: String, instances: InstanceList },
    /// Something does not work, and is tried again. Said when it begins, and when the error changes.
    Trouble { about: About, error: String },
    /// It works again.
    Well { about: About },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// By id.
    Service(String),
    /// By the name of the watch.
    Watch(String),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Service(id) => write!(f, "service {id}"),
            About::Watch(name) => write!(f, "watch {name}"),
        }
    }
}

#[derive(Debug, Clone)]
enum AnyDriver {
    Consul(Arc<ConsulDriver>),
    File(Arc<FileDriver>),
}

#[derive(Debug)]
struct Kept {
    wanted: watch::Sender<Wanted>,
    _task: Task,
}

/// Ends with its handle.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Catalogue {
    /// Opens the way to it. Must be called on a tokio runtime, which does the work.
    #[must_use]
    pub fn open(backend: Backend) -> (Catalogue, mpsc::UnboundedReceiver<Report>) {
        let (reports, told) = mpsc::unbounded_channel();
        let driver = match backend {
            Backend::Consul(consul) => AnyDriver::Consul(Arc::new(ConsulDriver::new(&consul))),
            Backend::File(file) => AnyDriver::File(Arc::new(FileDriver::new(&file))),
        };
        let catalogue =
            Catalogue { driver, services: BTreeMap::new(), watches: BTreeMap::new(), reports };
        (catalogue, told)
    }

    /// Wants a service to be there with this standing. It is told at once, and from then on by
    /// heartbeats.
    pub fn announce(&mut self, registration: Arc<Registration>, standing: Standing, note: String) {
        let id = registration.id.clone();
        self.want(&id, Desired::There { registration, standing, note: note.into() });
    }

    /// Wants a service not to be there, whoever announced it.
    pub fn withdraw(&mut self, id: &str) {
        self.services.retain(|_, kept| !kept.wanted.borrow().is_finished());
        let service = self.services.get(id).and_then(|kept| kept.wanted.borrow().service());
        self.want(id, Desired::Gone { service });
    }

    /// Wants to know the passing instances. A watch of the same name is replaced, and its first
    /// answer told anew.
    pub fn watch(&mut self, name: &str, query: Query) {
        let (name, reports) = (name.to_owned(), self.reports.clone());
        let task = match &self.driver {
            AnyDriver::Consul(driver) => {
                spawn(watch_task::run(driver.clone(), name.clone(), query, reports))
            }
            AnyDriver::File(driver) => {
                spawn(watch_task::run(driver.clone(), name.clone(), query, reports))
            }
        };
        self.watches.insert(name, task);
    }

    pub fn unwatch(&mut self, name: &str) {
        self.watches.remove(name);
    }

    fn want(&mut self, id: &str, desired: Desired) {
        let desired = match self.services.get(id) {
            None => desired,
            Some(kept) => match Wanted::set(&kept.wanted, desired) {
                Ok(()) => return,
                Err(desired) => desired,
            },
        };
        let wanted = Wanted::new(desired);
        let task = match &self.driver {
            AnyDriver::Consul(driver) => self.keep(driver, id, &wanted),
            AnyDriver::File(driver) => self.keep(driver, id, &wanted),
        };
        self.services.insert(id.to_owned(), Kept { wanted, _task: task });
    }

    fn keep<D: Driver>(&self, driver: &Arc<D>, id: &str, wanted: &watch::Sender<Wanted>) -> Task {
        let service = Service::new(driver.clone(), id, wanted.clone(), self.reports.clone());
        spawn(service.keep())
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Task {
    Task(tokio::spawn(work).abort_handle())
}
