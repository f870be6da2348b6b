//! What is rolled out, as far as it can be checked without a version of any profile: do the templates
//! compile, and is what they use in their scope?

use mainstay_config::{Diagnostic, Loaded, nearest};
use mainstay_core::plan::TemplatePlan;
use mainstay_rollout::{
    renderer::Renderer,
    template::{Cause, OWN, TemplateError},
};
use std::{collections::BTreeSet, path::Path};

/// Of a template that is none: an error. Of a file that is not here, and of a name that is in no
/// scope, which a template may ask for on purpose: a warning.
pub(super) fn diagnostics(loaded: &Loaded) -> Vec<Diagnostic> {
    let templates = loaded.plan.rollout.iter().flat_map(|it| &it.templates);
    // Of a directory each file is a template: which ones there are is known when it is rendered.
    let files: Vec<&TemplatePlan> = templates.filter(|it| !it.src.is_dir()).collect();
    let sources = files.iter().map(|it| (it.name.clone(), it.src.clone()));
    match Renderer::of_this_program().compile(sources) {
        Ok(compiled) => {
            files.into_iter().zip(compiled).flat_map(|(it, names)| of_template(it, names)).collect()
        }
        Err(error) => vec![Diagnostic::warning(format!("cannot look at the templates: {error}"))],
    }
}

fn of_template(
    plan: &TemplatePlan,
    variables: Result<BTreeSet<String>, TemplateError>,
) -> Vec<Diagnostic> {
    match variables {
        Err(error) => vec![not_compiled(&error, &plan.src)],
        Ok(variables) => {
            let in_scope = |name: &str| {
                OWN.contains(&name) || plan.profiles.iter().any(|it| it.as_str() == name)
            };
            let unknown = variables.iter().filter(|name| !in_scope(name));
            unknown.map(|name| not_in_scope(plan, name)).collect()
        }
    }
}

fn not_compiled(error: &TemplateError, path: &Path) -> Diagnostic {
    match &error.cause {
        Cause::Unreadable(why) => {
            let message = format!("templates.{}: {why}", error.template);
            let help = "make it, or correct src; an update would fail here";
            Diagnostic::warning(message).help(help)
        }
        Cause::Refused(_)
        | Cause::Endless { .. }
        | Cause::TooLarge { .. }
        | Cause::Memory { .. }
        | Cause::Slow { .. }
        | Cause::Deep => Diagnostic::error(error.to_string()).file(path.display().to_string()),
    }
}

fn not_in_scope(plan: &TemplatePlan, name: &str) -> Diagnostic {
    let message = format!("template '{}' uses '{name}', which is none of its profiles", plan.name);
    let profiles = plan.profiles.iter().map(|it| it.as_str());
    let help = match nearest(name, profiles.chain(OWN)) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("name it in the profiles of templates.{}", plan.name),
    };
    Diagnostic::warning(message).file(plan.src.display().to_string()).help(help)
}
