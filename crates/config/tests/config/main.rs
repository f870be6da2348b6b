//! What a user of this crate can see: plans, diagnostics, and that nothing breaks it.
#![allow(clippy::unwrap_used)]

mod files;
mod fleet;
mod golden;
mod plans;
mod published;
mod rollout;
mod whatever;

use mainstay_config::{Context, Loaded};
use mainstay_core::plan::{JobPlan, Plan};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

fn context() -> Context {
    let env = [("GREETING", "hello world"), ("EMPTY", "")];
    Context {
        host_name: "host-1".to_owned(),
        env: env.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        ..Context::default()
    }
}

/// Every `testdata/*/NAME.toml`.
fn testdata() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata");
    let entries = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
    let files = entries(dir).flat_map(entries);
    files.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect()
}

fn loaded(text: &str) -> Loaded {
    match mainstay_config::parse("test.toml", text, &context()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

fn plan(text: &str) -> Plan {
    loaded(text).plan
}

/// The job made of these lines, which need not say what it runs.
fn job(lines: &str) -> JobPlan {
    let job = plan(&format!("[jobs.x]\nexec = \"true\"\n{lines}")).jobs.remove(0);
    Arc::unwrap_or_clone(job)
}

fn refused(text: &str) -> String {
    match mainstay_config::parse("test.toml", text, &context()) {
        Ok(loaded) => panic!("it was accepted: {:?}", loaded.plan),
        Err(errors) => errors.render(false),
    }
}

/// A plan whatever the way in which its jobs are written.
fn undefined(mut plan: Plan) -> Plan {
    plan.jobs.iter_mut().for_each(|job| Arc::make_mut(job).definition = 0);
    plan
}
