//! Health checks that are asked over the network: outside the loop, each in a task of its own.
//!
//! A check has at most one question under way; it is answered at its deadline at the latest, and
//! dropped with the incarnation that it was about. What an exec check says comes from the keeper;
//! one that the keeper cannot end by its deadline has failed, and fails again each time it is to be
//! asked, until its process is gone. What a probe needs (a compiled expression, certificates) is made once
//! and kept for as long as the plan says the same.

mod http;
mod verdict;

use crate::clock;
use http::HttpProbe;
use mainstay_core::{
    clock::Mono,
    name::Name,
    node::Input,
    plan::{Http, Probe},
    rollout::Trouble,
};
use mainstay_pool::CONFIGURATION;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{sleep, timeout},
};

pub(crate) use verdict::of_task;

/// Between the end of a check's time, when the keeper kills it, and what the keeper then says.
const GRACE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Checks {
    under_way: HashMap<(Name, usize), UnderWay>,
    /// Processes that did not end in time, by the incarnation that they were about.
    overdue: HashMap<(Name, usize), u64>,
    prepared: HashMap<(Name, usize), Prepared>,
    answers: mpsc::UnboundedReceiver<Answer>,
    report: mpsc::UnboundedSender<Answer>,
}

#[derive(Debug)]
enum Answer {
    Checked(Input),
    /// The time of an exec check that was begun then is up.
    TimeUp {
        job: Name,
        check: usize,
        incarnation: u64,
        since: Mono,
    },
}

/// What is to be done about a check whose time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    Ask,
    /// An answer about this incarnation is still to come.
    UnderWay,
    /// Its last process has outlived its time.
    Overdue,
}

#[derive(Debug)]
struct UnderWay {
    incarnation: u64,
    since: Mono,
    /// Asks, or waits for the end of its time.
    task: Option<AbortHandle>,
}

/// Ready to be asked again and again.
#[derive(Debug, Clone)]
struct Prepared {
    probe: Probe,
    ready: Ready,
}

#[derive(Debug, Clone)]
enum Ready {
    Tcp(Arc<str>),
    Http(Arc<HttpProbe>),
    /// Cannot be asked, and why.
    Broken(Arc<str>),
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) passed: bool,
    /// For people.
    pub(crate) output: String,
}

impl Verdict {
    fn passed(output: impl Into<String>) -> Verdict {
        Verdict { passed: true, output: output.into() }
    }

    fn failed(output: impl Into<String>) -> Verdict {
        Verdict { passed: false, output: output.into() }
    }
}

impl Checks {
    pub(crate) fn new() -> Checks {
        let (report, answers) = mpsc::unbounded_channel();
        let (under_way, overdue, prepared) = (HashMap::new(), HashMap::new(), HashMap::new());
        Checks { under_way, overdue, prepared, answers, report }
    }

    /// Whether a check is to be asked now.
    pub(crate) fn begin(&mut self, job: &Name, incarnation: u64, check: usize) -> Begin {
        let key = (job.clone(), check);
        match self.under_way.get(&key) {
            Some(earlier) if earlier.incarnation >= incarnation => return Begin::UnderWay,
            Some(_) | None => {}
        }
        if self.overdue.get(&key) == Some(&incarnation) {
            return Begin::Overdue;
        }
        let begun = UnderWay { incarnation, since: clock::mono(), task: None };
        if let Some(earlier) = self.under_way.insert(key, begun) {
            earlier.abort();
        }
        Begin::Ask
    }

    /// The keeper runs a check that has begun: it is answered by its deadline all the same.
    pub(crate) fn expect(&mut self, job: &Name, check: usize, deadline: Mono) {
        let Some(under_way) = self.under_way.get_mut(&(job.clone(), check)) else { return };
        let UnderWay { incarnation, since, .. } = *under_way;
        let (job, report) = (job.clone(), self.report.clone());
        let task = tokio::spawn(async move {
            sleep(deadline.since(clock::mono()) + GRACE).await;
            // Nobody listens only when the agent is gone.
            let _ = report.send(Answer::TimeUp { job, check, incarnation, since });
        });
        under_way.task = Some(task.abort_handle());
    }

    /// Asks a check that has begun.
    pub(crate) fn ask(
        &mut self,
        job: &Name,
        incarnation: u64,
        check: usize,
        probe: &Probe,
        deadline: Mono,
    ) {
        let key = (job.clone(), check);
        let ready = self.prepare(&key, probe);
        let (job, report) = (job.clone(), self.report.clone());
        let task = tokio::spawn(async move {
            let Verdict { passed, output } = ready.ask(deadline).await;
            // Nobody listens only when the agent is gone.
            let checked = Input::Checked { job, incarnation, check, passed, output };
            let _ = report.send(Answer::Checked(checked));
        });
        if let Some(under_way) = self.under_way.get_mut(&key) {
            under_way.task = Some(task.abort_handle());
        }
    }

    fn prepare(&mut self, key: &(Name, usize), probe: &Probe) -> Ready {
        match self.prepared.get(key) {
            Some(prepared) if prepared.probe == *probe => prepared.ready.clone(),
            Some(_) | None => {
                let ready = Ready::new(probe);
                let prepared = Prepared { probe: probe.clone(), ready: ready.clone() };
                self.prepared.insert(key.clone(), prepared);
                ready
            }
        }
    }

    /// The next answer. May be dropped at any time.
    pub(crate) async fn answered(&mut self) -> Input {
        loop {
            match self.answers.recv().await.expect("this struct holds a sender") {
                Answer::Checked(input) => return input,
                Answer::TimeUp { job, check, incarnation, since } => {
                    let key = (job, check);
                    let same = |it: &&UnderWay| (it.incarnation, it.since) == (incarnation, since);
                    if self.under_way.get(&key).filter(same).is_none() {
                        continue;
                    }
                    self.overdue.insert(key.clone(), incarnation);
                    return overdue(key.0, incarnation, check);
                }
            }
        }
    }

    /// What the keeper says of a check's process: whether it comes after its time, when the check
    /// has its answer already.
    pub(crate) fn has_ended(&mut self, job: &Name, incarnation: u64, check: usize) -> bool {
        let key = (job.clone(), check);
        let late = self.overdue.get(&key) == Some(&incarnation);
        if late {
            self.overdue.remove(&key);
        }
        late
    }

    /// The answer is in the node's hands. Says how long it took, if it was asked for here.
    pub(crate) fn finished(
        &mut self,
        job: &Name,
        incarnation: u64,
        check: usize,
    ) -> Option<Duration> {
        let key = (job.clone(), check);
        self.under_way.get(&key).filter(|asked| asked.incarnation == incarnation)?;
        let asked = self.under_way.remove(&key)?;
        asked.abort();
        Some(clock::mono().since(asked.since))
    }

    /// The incarnation has ended: nobody wants to know any more.
    pub(crate) fn cancel(&mut self, job: &Name, checks: usize, incarnation: u64) {
        for check in 0..checks {
            let key = (job.clone(), check);
            if self.overdue.get(&key).is_some_and(|about| *about <= incarnation) {
                self.overdue.remove(&key);
            }
            if self.under_way.get(&key).is_some_and(|asked| asked.incarnation <= incarnation)
                && let Some(asked) = self.under_way.remove(&key)
            {
                asked.abort();
            }
        }
    }

    /// The job is gone from the plan.
    pub(crate) fn forget(&mut self, job: &Name) {
        self.prepared.retain(|(name, _), _| name != job);
        self.overdue.retain(|(name, _), _| name != job);
        self.under_way.retain(|(name, _), asked| {
            let other = name != job;
            if !other {
                asked.abort();
            }
            other
        });
    }
}

impl UnderWay {
    fn abort(&self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

/// The answer of a check whose process has outlived its time.
pub(crate) fn overdue(job: Name, incarnation: u64, check: usize) -> Input {
    let output = "its time was up, and its process has not ended since".to_owned();
    Input::Checked { job, incarnation, check, passed: false, output }
}

impl Ready {
    fn new(probe: &Probe) -> Ready {
        match probe {
            Probe::Tcp(address) => Ready::Tcp(address.as_str().into()),
            Probe::Http(http) => match HttpProbe::new(http) {
                Ok(probe) => Ready::Http(Arc::new(probe)),
                Err(error) => Ready::Broken(error.to_string().into()),
            },
            Probe::Exec(_) | Probe::Notify | Probe::Fd(_) => {
                Ready::Broken("this check is not asked over the network".into())
            }
        }
    }

    async fn ask(&self, deadline: Mono) -> Verdict {
        let left = deadline.since(clock::mono());
        let asked = async {
            match self {
                Ready::Tcp(address) => tcp(address).await,
                Ready::Http(probe) => probe.ask().await,
                Ready::Broken(why) => Verdict::failed(why.as_ref()),
            }
        };
        match timeout(left, asked).await {
            Ok(verdict) => verdict,
            Err(_) => Verdict::failed(format!("no answer within {left:.1?}")),
        }
    }
}

/// Asks something over HTTP once.
pub(crate) async fn ask_once(http: Http, deadline: Mono) -> Result<(), Trouble> {
    // Certificates are read.
    let ready = CONFIGURATION.run(move || Ready::new(&Probe::Http(http))).await;
    let Verdict { passed, output } = ready.map_err(trouble)?.ask(deadline).await;
    if passed { Ok(()) } else { Err(Trouble(output)) }
}

/// The beginning of what something answers over HTTP, if that is well.
pub(crate) async fn fetch_once(http: Http, deadline: Mono) -> Result<Vec<u8>, Trouble> {
    let probe = CONFIGURATION.run(move || HttpProbe::new(&http)).await;
    let probe = probe.map_err(trouble)?.map_err(trouble)?;
    let left = deadline.since(clock::mono());
    match timeout(left, probe.fetch()).await {
        Ok(fetched) => fetched.map_err(|verdict| Trouble(verdict.output)),
        Err(_) => Err(Trouble(format!("no answer within {left:.1?}"))),
    }
}

fn trouble(error: impl std::error::Error) -> Trouble {
    Trouble(error.to_string())
}

async fn tcp(address: &str) -> Verdict {
    match mainstay_net::tcp(address).await {
        Ok(_) => Verdict::passed(format!("connected to {address}")),
        Err(error) => Verdict::failed(format!("cannot connect to {address}: {error}")),
    }
}

/// One http check against a server that says this, whatever it is asked, and closes.
#[cfg(feature = "fuzz")]
pub(crate) fn fuzz_http(answer: &[u8]) -> (bool, String) {
    http::fuzz_exchange(answer)
}

#[cfg(test)]
mod tests;
