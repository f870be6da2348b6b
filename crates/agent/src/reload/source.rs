//! What an agent is started with.

use mainstay_config::{Context, Errors};
use mainstay_core::{
    environ::Environ,
    plan::{Plan, Written},
};
use mainstay_import::Format;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Options {
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    pub source: Source,
}

/// Where the plan of a fresh run comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file or directory; `None`: wherever configurations are looked for.
    Config(Option<PathBuf>),
    /// One command, without a file.
    Command { command: Vec<String>, restart: Option<String> },
    /// What another supervisor reads.
    Import { format: Format, file: PathBuf },
}

/// A configuration that was found valid.
#[derive(Debug)]
pub struct Loaded {
    pub plan: Plan,
    /// Ready to be printed; empty if there are none.
    pub warnings: String,
}

/// A configuration that cannot be used: the diagnostics, ready to be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl From<String> for Invalid {
    fn from(diagnostics: String) -> Invalid {
        Invalid(diagnostics)
    }
}

impl Source {
    /// Reads it, as it is now, in the environment as users have changed it. May take as long as a
    /// disk does: not for the loop.
    ///
    /// # Errors
    /// The diagnostics, ready to be printed.
    pub fn load(&self, environ: &Environ) -> Result<Loaded, Invalid> {
        let mut context = context();
        environ.lay_over(&mut context.env);
        match self {
            Source::Command { command, restart } => {
                let plan = mainstay_config::single(command, restart.as_deref(), &context)?;
                Ok(Loaded { plan, warnings: String::new() })
            }
            Source::Import { format, file } => {
                let invalid = |errors: Errors| errors.render(false);
                let imported =
                    mainstay_import::import_file(*format, file, &context).map_err(invalid)?;
                let name = format!("{} (as imported)", file.display());
                let loaded =
                    mainstay_config::parse(&name, &imported.toml, &context).map_err(invalid)?;
                let notes = imported.notes.iter().map(|note| format!("mainstay: {note}\n"));
                Ok(Loaded { plan: located(loaded), warnings: notes.collect() })
            }
            Source::Config(path) => {
                let path = mainstay_config::find(path.as_deref(), &context)?;
                let loaded = mainstay_config::load(&path, &context).map_err(|errors| {
                    format!("the configuration is invalid\n{}", errors.render(false))
                })?;
                let warnings = loaded.warnings.iter();
                let warnings = warnings.map(|warning| warning.render(false) + "\n").collect();
                Ok(Loaded { plan: located(loaded), warnings })
            }
        }
    }
}

/// The plan, with each job knowing where it is written.
pub(crate) fn located(loaded: mainstay_config::Loaded) -> Plan {
    let mainstay_config::Loaded { mut plan, places, .. } = loaded;
    for (job, place) in plan.jobs.iter_mut().zip(places) {
        if job.name == place.job {
            job.written = Some(Written { at: place.at, when: place.when });
        }
    }
    plan
}

/// What a configuration may refer to: this process's host name and environment.
#[must_use]
pub fn context() -> Context {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    Context {
        host_name: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        env: std::env::vars_os().map(|(key, value)| (text(key), text(value))).collect(),
        unlimited: !mainstay_sys::cgroup::may_limit(),
    }
}
