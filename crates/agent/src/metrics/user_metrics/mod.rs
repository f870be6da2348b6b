//! What users measure themselves: `[telemetry] metrics`, fed from outside.
//!
//! Whoever feeds or reads is served here and not in the loop. Values outlive the agent in
//! `metrics.json` of the run directory, which is written at the first change and then at most once
//! a second. A reload keeps the values of what is measured as before.

mod file;
mod value;

use file::File;
use mainstay_core::plan::{MetricKind, MetricPlan, Plan};
use mainstay_pool::RUN_FILES;
use mainstay_wire::api::{FeedError, Hint, Reading};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::sleep};
use value::Value;

const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct UserMetrics {
    metrics: Mutex<Metrics>,
    file: File,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Metrics {
    /// In the order of the file.
    plans: Vec<MetricPlan>,
    values: BTreeMap<String, Value>,
    changed: bool,
}

impl UserMetrics {
    /// With what an earlier agent of this run has left.
    pub(crate) fn open(run_dir: &Path, run: &str, plan: &Plan) -> Arc<UserMetrics> {
        let file = File::new(run_dir, run);
        let metrics = Metrics { values: file.read(), ..Metrics::default() };
        let metrics = UserMetrics { metrics: Mutex::new(metrics), file, changed: Notify::new() };
        metrics.define(plan);
        Arc::new(metrics)
    }

    /// Writes changes down for as long as the runtime lives.
    pub(crate) fn keep_written(self: &Arc<UserMetrics>) {
        let metrics = self.clone();
        tokio::spawn(async move {
            loop {
                metrics.changed.notified().await;
                let writing = metrics.clone();
                if let Err(unserved) = RUN_FILES.run(move || writing.flush()).await {
                    tracing::warn!("metrics are not written: {unserved}");
                }
                sleep(PAUSE).await;
            }
        });
    }

    /// What a plan says is measured from now on.
    pub(crate) fn define(&self, plan: &Plan) {
        let plans = plan.telemetry.as_ref().map(|telemetry| telemetry.metrics.clone());
        let mut metrics = self.lock();
        metrics.plans = plans.unwrap_or_default();
        let mut before = std::mem::take(&mut metrics.values);
        metrics.values = metrics
            .plans
            .iter()
            .map(|plan| {
                let kept = before.remove(&plan.name).filter(|value| value.fits(&plan.kind));
                (plan.name.clone(), kept.unwrap_or_else(|| Value::new(&plan.kind)))
            })
            .collect();
    }

    /// Adds to counters, sets gauges, and lets histograms and summaries see: all, or nothing.
    ///
    /// # Errors
    /// The first value that cannot be taken.
    pub fn feed(&self, values: &BTreeMap<String, f64>) -> Result<(), FeedError> {
        let now = mainstay_sys::clock::monotonic();
        let mut metrics = self.lock();
        for (name, value) in values {
            match metrics.plans.iter().find(|plan| plan.name == *name) {
                None => return Err(FeedError::Unknown(name.clone(), metrics.hint(name))),
                Some(_) if !value.is_finite() => return Err(FeedError::NotFinite(name.clone())),
                Some(plan) if plan.kind == MetricKind::Counter && *value < 0.0 => {
                    return Err(FeedError::Negative(name.clone(), value.to_string()));
                }
                Some(_) => {}
            }
        }
        for (name, value) in values {
            if let Some(held) = metrics.values.get_mut(name) {
                held.take(*value, now);
            }
        }
        metrics.changed = true;
        drop(metrics);
        self.changed.notify_one();
        Ok(())
    }

    /// Everything that is measured, in the order of the file.
    #[must_use]
    pub fn read(&self) -> Vec<(MetricPlan, Reading)> {
        let now = mainstay_sys::clock::monotonic();
        let mut metrics = self.lock();
        let Metrics { plans, values, .. } = &mut *metrics;
        let reading = |plan: &MetricPlan| {
            let value = values.get_mut(&plan.name)?;
            Some((plan.clone(), value.read(&plan.kind, now)))
        };
        plans.iter().filter_map(reading).collect()
    }

    /// Writes what is not written yet: not for the loop.
    pub fn flush(&self) {
        let mut metrics = self.lock();
        if !std::mem::take(&mut metrics.changed) {
            return;
        }
        let values = metrics.values.clone();
        drop(metrics);
        self.file.write(&values);
    }

    fn lock(&self) -> MutexGuard<'_, Metrics> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics {
    fn hint(&self, name: &str) -> Hint {
        let known = self.plans.iter().map(|plan| plan.name.as_str());
        match mainstay_config::nearest(name, known) {
            Some(near) => Hint::Near(near.to_owned()),
            None if self.plans.is_empty() => Hint::NoneAtAll,
            None => Hint::None,
        }
    }
}

#[cfg(test)]
mod tests;
