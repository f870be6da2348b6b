//! The agent's side of service discovery: what the node wants told becomes registrations, what
//! comes back becomes inputs.
//!
//! Nothing here decides or waits. A job has at most one entry; its id is remembered, so that an
//! entry under another name is removed when the plan gives it a new one. A backend that is
//! exchanged is given a while to remove what it holds.

use mainstay_core::{
    discovery::{Backend, Query, Registration, Standing},
    interface::{NoAddress, choose},
    name::Name,
    node::Input,
    plan::{Advertise, JobPlan, Plan, WatchPlan, Watched},
};
use mainstay_discovery::{About, Catalogue, Documents, Report, addresses};
use mainstay_wire::api::Announcement;
use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep_until, timeout},
};

/// How often an address is looked for that was not there.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// For so long the addresses of this host are taken for what they were.
const SAME_ADDRESSES: Duration = Duration::from_millis(100);
/// How long a backend that is no longer used may take to remove what it holds.
const FAREWELL: Duration = Duration::from_secs(5);

pub(crate) struct Discovery {
    node: String,
    open: Option<Open>,
    documents: Documents,
    about_documents: UnboundedReceiver<Report>,
    entries: BTreeMap<Name, Entry>,
    /// Removals under way, by id.
    leaving: BTreeMap<String, Name>,
    watches: BTreeMap<Name, WatchPlan>,
    trouble: BTreeMap<About, String>,
    /// When to look again for an address that some entry is without.
    look_again: Option<Instant>,
    /// The addresses of this host, and when they were looked up.
    here: Option<(Instant, Arc<Here>)>,
}

struct Open {
    backend: Backend,
    catalogue: Catalogue,
    reports: UnboundedReceiver<Report>,
}

/// What is told about a job.
#[derive(Debug)]
struct Entry {
    advertise: Advertise,
    standing: Standing,
    note: String,
    /// Or why there is none.
    registration: Result<Arc<Registration>, NotRegistered>,
}

impl Discovery {
    pub(crate) fn new() -> Discovery {
        let (documents, about_documents) = Documents::new();
        Discovery {
            documents,
            about_documents,
            node: String::new(),
            open: None,
            entries: BTreeMap::new(),
            leaving: BTreeMap::new(),
            watches: BTreeMap::new(),
            trouble: BTreeMap::new(),
            look_again: None,
            here: None,
        }
    }

    /// A plan is in force: another backend, other watches. Those that are no more.
    pub(crate) fn apply(&mut self, plan: &Plan) -> Vec<Name> {
        if self.open.as_ref().map(|open| &open.backend) != plan.discovery.as_ref() {
            self.exchange(plan.discovery.clone());
        }
        self.node.clone_from(&plan.node.name);
        self.register_anew();
        let wanted: BTreeMap<Name, WatchPlan> =
            plan.watches.iter().map(|watch| (watch.name.clone(), watch.clone())).collect();
        let before = std::mem::take(&mut self.watches);
        let gone = before.keys().filter(|name| !wanted.contains_key(*name));
        let gone: Vec<Name> = gone.cloned().collect();
        gone.iter().for_each(|name| self.unwatch(name));
        for (name, watch) in wanted.iter().filter(|(name, it)| before.get(*name) != Some(*it)) {
            // What it was before may have been of the other kind.
            self.look_away(name);
            self.watch(name, watch);
        }
        self.watches = wanted;
        gone
    }

    /// The node may have another name, and with it most entries; and the host other addresses.
    fn register_anew(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let here = Here::look();
        for (job, entry) in &mut self.entries {
            let now = register(job, &self.node, &entry.advertise, &here);
            if now == entry.registration {
                continue;
            }
            let before = std::mem::replace(&mut entry.registration, now);
            if entry.registration.is_err() {
                self.look_again = Some(Instant::now() + LOOK_AGAIN);
            }
            let Some(open) = &mut self.open else { continue };
            let before = before.ok().filter(|before| Some(before.id.as_str()) != entry.id());
            before.into_iter().for_each(|before| open.catalogue.withdraw(&before.id));
            open.announce(entry);
        }
    }

    fn exchange(&mut self, backend: Option<Backend>) {
        // Another way to the same catalogue takes everything over: removed by the old one, what the
        // new one announces would be gone.
        let stays = matches!((&self.open, &backend),
            (Some(open), Some(backend)) if backend.is_same_place(&open.backend));
        if let Some(old) = self.open.take().filter(|_| !stays) {
            let ids = self.entries.values().filter_map(|it| it.registration.as_ref().ok());
            let leaving = std::mem::take(&mut self.leaving).into_keys();
            tokio::spawn(old.say_farewell(ids.map(|it| it.id.clone()).chain(leaving).collect()));
        }
        self.trouble.clear();
        self.open = backend.map(|backend| {
            let (catalogue, reports) = Catalogue::open(backend.clone());
            Open { backend, catalogue, reports }
        });
        // Asked and told again, of whoever answers now.
        self.watches.clear();
        let Some(open) = &mut self.open else { return };
        for entry in self.entries.values() {
            open.announce(entry);
        }
        for id in self.leaving.keys() {
            open.catalogue.withdraw(id);
        }
    }

    fn watch(&mut self, name: &Name, watch: &WatchPlan) {
        let (interval, debounce) = (watch.interval, watch.debounce);
        match (&watch.of, &mut self.open) {
            (Watched::File(path), _) => {
                self.documents.watch(name.as_str(), path, interval, debounce);
            }
            (Watched::Service { service, tag, dc }, Some(open)) => {
                let (service, tag, dc) = (service.clone(), tag.clone(), dc.clone());
                let query = Query { service, tag, dc, interval, debounce };
                open.catalogue.watch(name.as_str(), query);
            }
            (Watched::Service { .. }, None) => {}
        }
    }

    fn unwatch(&mut self, name: &Name) {
        self.look_away(name);
        self.trouble.remove(&About::Watch(name.to_string()));
    }

    fn look_away(&mut self, name: &Name) {
        self.documents.unwatch(name.as_str());
        if let Some(open) = &mut self.open {
            open.catalogue.unwatch(name.as_str());
        }
    }

    /// Tells about a job, from now on.
    pub(crate) fn announce(&mut self, plan: &JobPlan, standing: Standing, note: String) {
        let Some(advertise) = plan.advertise.as_deref() else { return };
        let here = self.here();
        let registration = register(&plan.name, &self.node, advertise, &here);
        if let Err(why) = &registration {
            tracing::warn!("{} cannot be announced: {why}", plan.name);
            self.look_again = Some(Instant::now() + LOOK_AGAIN);
        }
        let entry = Entry { advertise: advertise.clone(), standing, note, registration };
        let before = self.entries.get(&plan.name).and_then(Entry::id).map(str::to_owned);
        // One that cannot be announced may have been by an earlier agent.
        let unsaid = entry.registration.is_err() && !self.entries.contains_key(&plan.name);
        let before = before.or_else(|| unsaid.then(|| id(&plan.name, &self.node, advertise)));
        if let Some(open) = &mut self.open {
            if let Some(id) = before.filter(|id| Some(id.as_str()) != entry.id()) {
                open.catalogue.withdraw(&id);
            }
            open.announce(&entry);
        }
        self.leaving.retain(|id, _| Some(id.as_str()) != entry.id());
        self.entries.insert(plan.name.clone(), entry);
    }

    /// The addresses of this host: many jobs may be announced in one step, and look once.
    fn here(&mut self) -> Arc<Here> {
        let recent = self.here.take().filter(|(at, _)| at.elapsed() < SAME_ADDRESSES);
        let (at, here) = recent.unwrap_or_else(|| (Instant::now(), Arc::new(Here::look())));
        self.here = Some((at, here.clone()));
        here
    }

    /// Removes what was told about a job. `Some`: there is nothing to wait for.
    pub(crate) fn withdraw(&mut self, job: &Name, plan: Option<&JobPlan>) -> Option<Input> {
        // An earlier agent may have told it.
        let told = self.entries.remove(job).map(|entry| entry.advertise);
        let advertise = told.as_ref().or(plan.and_then(|plan| plan.advertise.as_deref()));
        let id = advertise.map(|advertise| id(job, &self.node, advertise));
        match (id, &mut self.open) {
            (Some(id), Some(open)) => {
                open.catalogue.withdraw(&id);
                self.leaving.insert(id, job.clone());
                None
            }
            (None, _) | (_, None) => Some(Input::Withdrawn { job: job.clone() }),
        }
    }

    /// What comes back. May be dropped at any time.
    pub(crate) async fn next_input(&mut self) -> Input {
        loop {
            let report = tokio::select! {
                Some(report) = next(self.open.as_mut()) => report,
                Some(report) = self.about_documents.recv() => report,
                () = due(self.look_again) => {
                    self.look_for_addresses();
                    continue;
                }
            };
            if let Some(input) = self.take(report) {
                return input;
            }
        }
    }

    fn take(&mut self, report: Report) -> Option<Input> {
        match report {
            Report::Announced { id } => {
                tracing::debug!("{id} is announced");
                None
            }
            Report::Withdrawn { id, done } => {
                let job = self.leaving.remove(&id);
                match done {
                    true => self.recover(&About::Service(id)),
                    // Nobody misses it any more, and nothing works because of that.
                    false => drop(self.trouble.remove(&About::Service(id))),
                }
                job.map(|job| Input::Withdrawn { job })
            }
            Report::Instances { watch, instances } => {
                // It may have come too late.
                let (watch, _) = self.watches.get_key_value(watch.as_str())?;
                Some(Input::Instances { watch: watch.clone(), instances })
            }
            Report::Trouble { about, error } => {
                self.suffer(about, error);
                None
            }
            Report::Well { about } => {
                self.recover(&about);
                None
            }
        }
    }

    /// A server that is away troubles all alike: that is told once.
    fn suffer(&mut self, about: About, error: String) {
        let wanted = match &about {
            About::Service(id) => self.entries.values().any(|it| it.id() == Some(id)),
            About::Watch(name) => self.watches.contains_key(name.as_str()),
        };
        if !wanted {
            tracing::debug!("discovery: {about}: {error}");
            return;
        }
        if !self.trouble.values().any(|known| *known == error) {
            tracing::warn!("discovery: {about}: {error}");
        }
        self.trouble.insert(about, error);
    }

    fn recover(&mut self, about: &About) {
        let over = self.trouble.remove(about);
        if over.is_some() && self.trouble.is_empty() {
            tracing::info!("discovery works again");
        }
    }

    fn look_for_addresses(&mut self) {
        self.look_again = None;
        let mut unregistered: Vec<(&Name, &mut Entry)> =
            self.entries.iter_mut().filter(|(_, it)| it.registration.is_err()).collect();
        if unregistered.is_empty() {
            return;
        }
        let here = Here::look();
        for (job, entry) in &mut unregistered {
            entry.registration = register(job, &self.node, &entry.advertise, &here);
            if let Some(open) = &mut self.open {
                open.announce(entry);
            }
        }
        if unregistered.iter().any(|(_, entry)| entry.registration.is_err()) {
            self.look_again = Some(Instant::now() + LOOK_AGAIN);
        }
    }

    /// Returns when every removal under way has come to an end.
    pub(crate) async fn withdrawals_done(&mut self) {
        while !self.leaving.is_empty() {
            let Some(open) = &mut self.open else { return };
            match open.reports.recv().await {
                Some(report) => drop(self.take(report)),
                None => return,
            }
        }
    }

    pub(crate) fn announced(&self, job: &str) -> Option<Announcement> {
        let (name, entry) = self.entries.get_key_value(job)?;
        let id = id(name, &self.node, &entry.advertise);
        let told = self.trouble.get(&About::Service(id.clone())).cloned();
        Some(Announcement {
            service: entry.advertise.service.clone(),
            address: entry.registration.as_ref().ok().map(|it| it.address.clone()),
            port: entry.advertise.port,
            standing: entry.standing,
            trouble: entry.registration.as_ref().err().map(ToString::to_string).or(told),
            id,
        })
    }

    /// What keeps a watch from being answered.
    pub(crate) fn watch_trouble(&self, watch: &Name) -> Option<&str> {
        self.trouble.get(&About::Watch(watch.to_string())).map(String::as_str)
    }

    /// What does not work; `None`: everything does.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.values().next().map(String::as_str)
    }
}

impl Entry {
    fn id(&self) -> Option<&str> {
        self.registration.as_ref().ok().map(|it| it.id.as_str())
    }
}

impl Open {
    fn announce(&mut self, entry: &Entry) {
        if let Ok(registration) = &entry.registration {
            self.catalogue.announce(registration.clone(), entry.standing, entry.note.clone());
        }
    }

    async fn say_farewell(mut self, mut ids: Vec<String>) {
        ids.iter().for_each(|id| self.catalogue.withdraw(id));
        let gone = async {
            while !ids.is_empty() {
                match self.reports.recv().await {
                    Some(Report::Withdrawn { id, done: true }) => ids.retain(|it| *it != id),
                    Some(_) => {}
                    None => return,
                }
            }
        };
        // What is left then is left to its ttl.
        let _ = timeout(FAREWELL, gone).await;
    }
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery").field("entries", &self.entries).finish_non_exhaustive()
    }
}

async fn next(open: Option<&mut Open>) -> Option<Report> {
    match open {
        Some(open) => open.reports.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns at that time; never if there is none.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn id(job: &Name, node: &str, advertise: &Advertise) -> String {
    advertise.id.clone().unwrap_or_else(|| format!("{job}-{node}"))
}

/// Why a job cannot be announced now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NotRegistered {
    #[error("cannot list this host's addresses: {0}")]
    Unlisted(String),
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
}

/// The addresses of this host, or why they are not known.
#[derive(Debug)]
struct Here(Result<Vec<(String, IpAddr)>, NotRegistered>);

impl Here {
    fn look() -> Here {
        Here(addresses().map_err(|error| NotRegistered::Unlisted(error.to_string())))
    }

    fn choose(&self, advertise: &Advertise) -> Result<IpAddr, NotRegistered> {
        let here = self.0.as_ref().map_err(Clone::clone)?;
        Ok(choose(&advertise.interfaces, here)?)
    }
}

fn register(
    job: &Name,
    node: &str,
    advertise: &Advertise,
    here: &Here,
) -> Result<Arc<Registration>, NotRegistered> {
    Ok(Arc::new(Registration {
        id: id(job, node, advertise),
        service: advertise.service.clone(),
        address: here.choose(advertise)?.to_string(),
        port: advertise.port,
        tags: advertise.tags.clone(),
        meta: advertise.meta.clone(),
        ttl: advertise.ttl,
        heartbeat: advertise.heartbeat,
        deregister_critical_after: advertise.deregister_critical_after,
        enable_tag_override: advertise.enable_tag_override,
    }))
}
