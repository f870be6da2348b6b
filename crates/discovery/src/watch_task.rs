//! One watch: looks again and again, and tells what has changed.
//!
//! A look waits at the catalogue for news where it can, so that a change is told at once. After it
//! has been told there is a pause, the debounce: what happens meanwhile is found by the next look,
//! all at once. So a list that never rests is told at that pace, and its last state is never missed.

use crate::{
    backoff,
    catalogue::{About, Report},
    driver::Driver,
    trouble::Trouble,
};
use mainstay_core::discovery::{InstanceList, Query};
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, time::sleep};

/// Between two looks in any case: a catalogue may answer at once each time.
const SHORTEST: Duration = Duration::from_millis(20);

pub(crate) async fn run<D: Driver>(
    driver: Arc<D>,
    name: String,
    query: Query,
    reports: mpsc::UnboundedSender<Report>,
) {
    let mut trouble = Trouble::new(About::Watch(name.clone()), reports.clone());
    let mut backoff = backoff::between_tries(&name);
    let mut cursor = driver.cursor(&query);
    let mut told: Option<InstanceList> = None;
    loop {
        let pause = match driver.look(&mut cursor).await {
            Ok(instances) => {
                trouble.over();
                backoff.reset();
                if told.as_ref() == Some(&instances) {
                    SHORTEST
                } else {
                    told = Some(instances.clone());
                    let _ = reports.send(Report::Instances { watch: name.clone(), instances });
                    query.debounce.max(SHORTEST)
                }
            }
            Err(failure) => {
                trouble.met(failure.into_words());
                // What it remembered may be about a server that is no more.
                cursor = driver.cursor(&query);
                backoff.next_wait().min(query.interval.max(SHORTEST))
            }
        };
        sleep(pause).await;
    }
}
