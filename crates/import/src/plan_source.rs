//! Where a plan comes from: files of ours, one command, or what another supervisor reads.

use crate::{Format, Imported, import_files};
use mainstay_config::{Context, Errors};
use mainstay_core::{
    plan::{Plan, Written},
    text::bytes,
};
use std::{path::PathBuf, sync::Arc};

/// Where the plan of a fresh run comes from.
#[derive(Debug, Clone)]
pub enum PlanSource {
    /// A file or directory; `None`: wherever configurations are looked for.
    Config(Option<PathBuf>),
    /// One command, without a file.
    Command { command: Vec<String>, restart: Option<String> },
    /// What another supervisor reads.
    Import { format: Format, file: PathBuf, others: Vec<PathBuf> },
}

/// A configuration that was found valid.
#[derive(Debug)]
pub struct Loaded {
    pub plan: Plan,
    /// Ready to be printed; empty if there are none.
    pub warnings: String,
}

impl PlanSource {
    /// Reads it, as it is now.
    ///
    /// # Errors
    /// The diagnostics, ready to be printed.
    pub fn load(&self, context: &Context) -> Result<Loaded, String> {
        match self {
            PlanSource::Command { command, restart } => {
                let plan = mainstay_config::single(command, restart.as_deref(), context)?;
                Ok(Loaded { plan, warnings: String::new() })
            }
            PlanSource::Import { format, file, others } => {
                let invalid = |errors: Errors| errors.render(false);
                let imported = import_files(*format, file, others, context).map_err(invalid)?;
                let name = bytes::from_os(file.as_os_str());
                if !imported.files.is_empty() {
                    return Err(format!(
                        "{name}: its templates have to be translated first\n  help: mainstay import \
                         {format} {name} --out DIR writes them, then mainstay run -c DIR\n"
                    ));
                }
                let loaded =
                    mainstay_config::parse(&name, &imported.toml, context).map_err(invalid)?;
                let notes = imported.notes.iter().map(|note| format!("mainstay: {note}\n"));
                let mut plan = located(loaded);
                for job in &mut plan.jobs {
                    let job = Arc::make_mut(job);
                    job.written = job.written.take().map(|it| imported.original(&name, &it));
                }
                Ok(Loaded { plan, warnings: notes.collect() })
            }
            PlanSource::Config(path) => {
                let path = mainstay_config::find(path.as_deref(), context)?;
                let loaded = mainstay_config::load(&path, context).map_err(|errors| {
                    format!("the configuration is invalid\n{}", errors.render(false))
                })?;
                let warnings = loaded.warnings.iter();
                let warnings = warnings.map(|warning| warning.render(false) + "\n").collect();
                Ok(Loaded { plan: located(loaded), warnings })
            }
        }
    }
}

impl Imported {
    /// Where a job is written in the original. Where that is not known it is the file: nobody can
    /// look at lines of what was made of it.
    fn original(&self, file: &str, made: &Written) -> Written {
        let original = |made: &String| {
            let line = made.rsplit_once(':').and_then(|(_, line)| line.parse::<usize>().ok());
            let known = self.places.iter().rev().find(|(at, _)| line.is_some_and(|it| *at <= it));
            known.map_or_else(|| file.to_owned(), |(_, original)| original.clone())
        };
        Written { at: original(&made.at), when: made.when.as_ref().map(original) }
    }
}

/// The plan, with each job knowing where it is written.
#[must_use]
pub fn located(loaded: mainstay_config::Loaded) -> Plan {
    let mainstay_config::Loaded { mut plan, places, .. } = loaded;
    for (job, place) in plan.jobs.iter_mut().zip(places) {
        if job.name == place.job {
            Arc::make_mut(job).written = Some(Written { at: place.at, when: place.when });
        }
    }
    plan
}
