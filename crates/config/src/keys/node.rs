//! `[node]`: the node as a whole.

use crate::{
    Context,
    keys::{
        Kind,
        Reload::{Live, NewRun},
        Table, key,
    },
    reader::Place,
};
use mainstay_core::plan::{ExitRule, NodePlan, USUAL_SHUTDOWN};

/// What `[node]` and `[log] level` say.
pub(crate) struct Node {
    pub(crate) plan: NodePlan,
    /// `None`: follows from the jobs. With where it was said.
    pub(crate) exit: Option<(ExitRule, Place)>,
    /// Where it is written; `None`: it follows from the jobs.
    pub(crate) stop_timeout: Option<Place>,
    /// Where the name is written; `None`: it is that of the host.
    pub(crate) name: Option<Place>,
}

pub(crate) static NODE: Table<Node> = Table {
    keys: &[
        key(
            "name",
            Kind::Text,
            "",
            Live,
            "Name of the node; default: the host name.",
            |node, v, r| {
                let name = r.filled(v)?;
                if !is_name(&name) {
                    let help =
                        "use letters, digits, '.', '_' or '-', starting with a letter or digit";
                    return r.wrong(v.span, format!("'{name}' is not a name for a node"), help);
                }
                node.plan.name = name;
                node.name = Some(r.here(v.span));
                Some(())
            },
        ),
        key(
            "stop_timeout",
            Kind::Duration,
            "",
            Live,
            "How long a shutdown may take before everything is killed; default: 8s, or what the stop \
             times of the jobs add up to where some are written.",
            |node, v, r| {
                node.stop_timeout = Some(r.here(v.span));
                r.duration(v).map(|it| node.plan.stop_timeout = it)
            },
        ),
        key(
            "exit",
            Kind::OneOf(&["main", "all", "any", "any-failure", "never"]),
            "",
            Live,
            "When the node ends by itself: with a main job, with its last job, with the first that \
             ends, with the first that fails (else with the last), or never; default: main if some \
             job is main, never with [fleet] or [api] listen, else all.",
            |node, v, r| {
                let rule = r.one_of(v)?;
                node.exit = Some((rule, r.here(v.span)));
                Some(())
            },
        ),
        key(
            "machine",
            Kind::Text,
            "",
            NewRun,
            "The machine that it runs on, where a fleet is to know: nodes of one machine share its \
             load; default: the kernel's boot id.",
            |node, v, r| {
                let machine = r.filled(v)?;
                if !r.in_fleet {
                    r.lonely(v.span);
                }
                node.plan.machine = Some(machine);
                Some(())
            },
        ),
    ],
    later: &[],
    refused: &[],
};

pub(crate) fn default(ctx: &Context) -> NodePlan {
    // A host without a usable name must not keep its jobs from running.
    let name = Some(ctx.host_name.as_str()).filter(|name| is_name(name)).unwrap_or("localhost");
    NodePlan {
        name: name.to_owned(),
        stop_timeout: USUAL_SHUTDOWN,
        exit: ExitRule::All,
        log_level: "info".to_owned(),
        machine: None,
    }
}

/// A host name, with dots and all.
fn is_name(text: &str) -> bool {
    text.len() <= 253
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
