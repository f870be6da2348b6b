//! A catalogue in the hands of a test: what it reports is waited for with a deadline.

use mainstay_discovery::{
    About, Backend, Catalogue, Consul, Instance, InstanceList, Query, Registration, Report,
    Standing,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc::channel},
    thread,
    time::Duration,
};
use tokio::{
    runtime::{Builder, Handle},
    sync::{mpsc, oneshot},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(30);

/// With a thread of its own for the catalogue, so that a test can ask the server meanwhile.
pub(crate) struct Told {
    pub(crate) catalogue: Catalogue,
    reports: mpsc::UnboundedReceiver<Report>,
    /// Everything reported so far.
    pub(crate) heard: Vec<Report>,
    runtime: Handle,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

pub(crate) fn consul(server: &mainstay_tests::Consul) -> Backend {
    Backend::Consul(Consul { address: server.address(), ..Consul::default() })
}

pub(crate) fn registration(id: &str, service: &str) -> Registration {
    Registration {
        id: id.to_owned(),
        service: service.to_owned(),
        address: "10.1.2.3".to_owned(),
        port: 8080,
        tags: vec!["blue".to_owned()],
        meta: BTreeMap::from([("version".to_owned(), "2".to_owned())]),
        // Beyond the patience of any test.
        ttl: Duration::from_secs(120),
        heartbeat: Duration::from_millis(300),
        deregister_critical_after: None,
        enable_tag_override: false,
    }
}

pub(crate) fn query(service: &str) -> Query {
    Query {
        service: service.to_owned(),
        tag: None,
        dc: None,
        interval: Duration::from_secs(60),
        debounce: Duration::from_millis(100),
    }
}

impl Told {
    pub(crate) fn new(backend: Backend) -> Told {
        let ((give, take), (end, ended)) = (channel(), oneshot::channel());
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            give.send(runtime.handle().clone()).expect("the test waits");
            let _ = runtime.block_on(ended);
        });
        let runtime = take.recv().expect("the thread has begun");
        let (catalogue, reports) = {
            let _inside = runtime.enter();
            Catalogue::open(backend)
        };
        Told { catalogue, reports, heard: Vec::new(), runtime, _end: end }
    }

    pub(crate) fn announce(&mut self, registration: Registration, standing: Standing, note: &str) {
        let _inside = self.runtime.enter();
        self.catalogue.announce(Arc::new(registration), standing, note.to_owned());
    }

    pub(crate) fn withdraw(&mut self, id: &str) {
        let _inside = self.runtime.enter();
        self.catalogue.withdraw(id);
    }

    pub(crate) fn watch(&mut self, name: &str, query: Query) {
        let _inside = self.runtime.enter();
        self.catalogue.watch(name, query);
    }

    /// The next report for which there is an answer.
    pub(crate) fn next<T>(&mut self, what: &str, ask: impl Fn(&Report) -> Option<T>) -> T {
        let heard = &mut self.heard;
        let reports = &mut self.reports;
        let listen = async {
            loop {
                let report = reports.recv().await.expect("the catalogue is open");
                let answer = ask(&report);
                heard.push(report);
                if let Some(answer) = answer {
                    return answer;
                }
            }
        };
        let waited = self.runtime.block_on(async { timeout(PATIENCE, listen).await });
        waited.unwrap_or_else(|_| panic!("waited in vain: {what}; heard {:#?}", self.heard))
    }

    pub(crate) fn announced(&mut self, id: &str) {
        self.next(&format!("{id} is announced"), |report| {
            (*report == Report::Announced { id: id.to_owned() }).then_some(())
        });
    }

    pub(crate) fn withdrawn(&mut self, id: &str) -> bool {
        self.next(&format!("{id} is withdrawn"), |report| match report {
            Report::Withdrawn { id: of, done } if of == id => Some(*done),
            _ => None,
        })
    }

    pub(crate) fn trouble(&mut self, about: &About) -> String {
        self.next(&format!("trouble about {about}"), |report| match report {
            Report::Trouble { about: of, error } if of == about => Some(error.clone()),
            _ => None,
        })
    }

    pub(crate) fn instances(&mut self, watch: &str) -> Vec<Instance> {
        self.next(&format!("instances of {watch}"), |report| match report {
            Report::Instances { watch: of, instances } if of == watch => Some(list(instances)),
            _ => None,
        })
    }

    /// The ids of the next list.
    pub(crate) fn ids(&mut self, watch: &str) -> Vec<String> {
        self.instances(watch).into_iter().map(|instance| instance.id).collect()
    }

    /// Waits until the list is this one.
    pub(crate) fn until_ids(&mut self, watch: &str, ids: &[&str]) {
        self.next(&format!("{watch} has {ids:?}"), |report| match report {
            Report::Instances { watch: of, instances } if of == watch => {
                list(instances).iter().map(|instance| &instance.id).eq(ids).then_some(())
            }
            _ => None,
        });
    }
}

/// One by one.
pub(crate) fn list(instances: &InstanceList) -> Vec<Instance> {
    serde_json::from_str(instances.as_json()).expect("a list of instances")
}

pub(crate) fn service(id: &str) -> About {
    About::Service(id.to_owned())
}

pub(crate) fn watch(name: &str) -> About {
    About::Watch(name.to_owned())
}
