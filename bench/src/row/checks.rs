//! What a thousand http checks a second cost the node: processor time of keeper and agent. The
//! server that answers them is the harness, and counts them: too few, and there is no figure.
//!
//! And the same with jobs that are announced in a real Consul, while it answers and while it is
//! frozen: checks go on at the same pace.

use std::fmt::Write as _;
use std::time::Duration;

use super::supervised::{SETTLE, Supervised};
use super::{Scene, or_gap, register};
use crate::consul::Consul;
use crate::failure::{Failure, Result};
use crate::figure::{Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::{Configured, Mainstay};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::web::Server;

const RATE: f64 = 1000.0;
/// By then every request that was under way when the server froze has met its time limit.
const NOTICED: Duration = Duration::from_secs(6);

/// Processor seconds a minute.
#[derive(Debug, Clone, Copy)]
struct Spent {
    agent: f64,
    keeper: f64,
}

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let (mut agent, mut keeper) =
        (figure(scene, "checks", "agent"), figure(scene, "checks-keeper", "keeper"));
    let alone = Server::start().and_then(|server| {
        let supervised = start(scene, mainstay, watch, &server, None)?;
        spent(scene, &supervised, &server)
    });
    let alone = or_gap(Who::Mainstay, alone);
    agent.set(Who::Mainstay, alone.map(|spent| spent.agent));
    keeper.set(Who::Mainstay, alone.map(|spent| spent.keeper));
    vec![agent, keeper]
}

pub(crate) fn measure_announced(
    scene: &Scene,
    mainstay: &Mainstay,
    watch: &mut Watch,
) -> Vec<Figure> {
    let mut answers = figure(scene, "checks-announced", "agent, all in Consul");
    let mut frozen = figure(scene, "checks-frozen", "agent, Consul frozen");
    let outcome = Server::start().and_then(|server| {
        let consul = Consul::start(&scene.place("consul")?)?;
        let supervised = start(scene, mainstay, watch, &server, Some(&consul))?;
        consul.wait_for_passing(scene.options.jobs)?;
        let agent =
            || or_gap(Who::Mainstay, spent(scene, &supervised, &server)).map(|spent| spent.agent);
        answers.set(Who::Mainstay, agent());
        consul.freeze();
        std::thread::sleep(NOTICED);
        frozen.set(Who::Mainstay, agent());
        consul.thaw();
        Ok(())
    });
    or_gap(Who::Mainstay, outcome);
    vec![answers, frozen]
}

fn figure(scene: &Scene, id: &'static str, who: &str) -> Figure {
    let jobs = scene.options.jobs;
    let work = format!("{RATE} http checks a second, {jobs} jobs, CPU a minute ({who})");
    Figure::new(id, work, Unit::Seconds)
}

fn start(
    scene: &Scene,
    mainstay: &Mainstay,
    watch: &mut Watch,
    server: &Server,
    consul: Option<&Consul>,
) -> Result<Supervised> {
    let work = scene.work(scene.options.jobs);
    let interval = work.jobs as f64 / RATE;
    let mut text = consul.map(Consul::table).unwrap_or_default();
    for (name, command) in work.commands() {
        let _infallible = write!(
            text,
            "\n[jobs.{name}]\nexec = {command:?}\n\
             health = {{ http = \"{}\", interval = {interval}, timeout = \"5s\" }}\n",
            server.url()
        );
        if consul.is_some() {
            let _infallible = writeln!(text, "{}", register::ADVERTISE);
        }
    }
    let peer = Configured::new(mainstay, text);
    let supervised = Supervised::start(scene, watch, &peer, &work)?;
    // Until the first checks, which come faster than the others, are over.
    std::thread::sleep(SETTLE);
    Ok(supervised)
}

fn spent(scene: &Scene, supervised: &Supervised, server: &Server) -> Result<Spent> {
    let agent =
        Mainstay::agent(supervised.root).ok_or_else(|| Failure::new("there is no agent"))?;
    let span = Duration::from_secs(if scene.options.rounds > 1 { 60 } else { 10 });
    let used = || Spent { agent: tree::processor(agent), keeper: tree::processor(supervised.root) };
    let (begun, answered, before) = (Instant::now(), server.answered(), used());
    std::thread::sleep(span);
    let (after, answered) = (used(), server.answered() - answered);
    let lasted = Instant::now().seconds_since(begun);
    let rate = answered as f64 / lasted;
    if rate < RATE * 0.95 {
        return Err(Failure::new(format!("only {rate:.0} checks a second came")));
    }
    let a_minute = |spent: f64| spent * 60.0 / lasted;
    Ok(Spent {
        agent: a_minute(after.agent - before.agent),
        keeper: a_minute(after.keeper - before.keeper),
    })
}
