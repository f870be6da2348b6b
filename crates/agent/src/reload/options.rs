//! What an agent is started with.

use mainstay_config::Context;
use mainstay_core::environ::Environ;
use mainstay_import::{Loaded, PlanSource};
use mainstay_rollout::{renderer::Renderer, switch::source_digest};
use mainstay_wire::{api::Invalid, run_dir::Dirs};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Options {
    pub dirs: Dirs,
    pub source: PlanSource,
    /// What a configuration may refer to, as it is whenever one is read.
    pub context: fn() -> Context,
    /// By which templates are rendered, in a process of its own.
    pub renderer: Renderer,
}

impl Options {
    /// Reads the configuration, as it is now, in the environment as users have changed it. May take
    /// as long as a disk does: not for the loop.
    pub(crate) fn load(&self, environ: &Environ) -> Result<Loaded, Invalid> {
        let mut context = (self.context)();
        environ.lay_over(&mut context.env);
        let mut loaded = self.source.load(&context).map_err(Invalid)?;
        if let Some(rollout) = &mut loaded.plan.rollout {
            for template in &mut Arc::make_mut(rollout).templates {
                template.source = source_digest(&template.src);
            }
        }
        Ok(loaded)
    }
}
