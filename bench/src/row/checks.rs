//! What a thousand http checks a second cost the node: processor time of keeper and agent. The
//! server that answers them is the harness, and counts them: too few, and there is no figure.

use std::fmt::Write as _;
use std::time::Duration;

use super::crowd::{Crowd, SETTLE};
use super::{Scene, or_gap};
use crate::failure::{Failure, Result};
use crate::figure::{Figure, Unit};
use crate::peer::Who;
use crate::peer::mainstay::{Configured, Mainstay};
use crate::process::watch::Watch;
use crate::process::{Instant, tree};
use crate::web::Server;

const RATE: f64 = 1000.0;

pub(crate) fn measure(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Vec<Figure> {
    let jobs = scene.options.jobs;
    let figure = |id, who: &str| {
        let work = format!("{RATE} http checks a second, {jobs} jobs, CPU a minute ({who})");
        Figure::new(id, work, Unit::Seconds)
    };
    let (mut agent, mut keeper) = (figure("checks", "agent"), figure("checks-keeper", "keeper"));
    let spent = or_gap(Who::Mainstay, spent(scene, mainstay, watch));
    agent.set(Who::Mainstay, spent.map(|(agent, _)| agent));
    keeper.set(Who::Mainstay, spent.map(|(_, keeper)| keeper));
    vec![agent, keeper]
}

/// Processor seconds a minute of agent and keeper.
fn spent(scene: &Scene, mainstay: &Mainstay, watch: &mut Watch) -> Result<(f64, f64)> {
    let server = Server::start()?;
    let work = scene.work(scene.options.jobs);
    let interval = work.jobs as f64 / RATE;
    let mut text = String::new();
    for (name, command) in work.commands() {
        let _infallible = write!(
            text,
            "\n[jobs.{name}]\nexec = {command:?}\n\
             health = {{ http = \"{}\", interval = {interval}, timeout = \"5s\" }}\n",
            server.url()
        );
    }
    let peer = Configured { mainstay: mainstay.clone(), text };
    let crowd = Crowd::start(scene, watch, &peer, &work)?;
    // Until the first checks, which come faster than the others, are over.
    std::thread::sleep(SETTLE);
    let agent = Mainstay::agent(crowd.root).ok_or_else(|| Failure::new("there is no agent"))?;
    let span = Duration::from_secs(if scene.options.rounds > 1 { 60 } else { 10 });
    let used = || (tree::processor(agent), tree::processor(crowd.root));
    let (begun, answered, before) = (Instant::now(), server.answered(), used());
    std::thread::sleep(span);
    let (after, answered) = (used(), server.answered() - answered);
    let lasted = Instant::now().seconds_since(begun);
    let rate = answered as f64 / lasted;
    if rate < RATE * 0.95 {
        return Err(Failure::new(format!("only {rate:.0} checks a second came")));
    }
    let a_minute = |spent: f64| spent * 60.0 / lasted;
    Ok((a_minute(after.0 - before.0), a_minute(after.1 - before.1)))
}
