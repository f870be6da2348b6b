//! What the plan in force wants to have open besides the API, for whoever opens it.

use mainstay_core::plan::{Listen, Plan};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Where telemetry is shown.
    pub telemetry: Option<Listen>,
    /// The socket that speaks as ContainerPilot's does.
    pub containerpilot: Option<PathBuf>,
}

impl Listeners {
    pub(crate) fn of(plan: &Plan) -> Listeners {
        Listeners {
            telemetry: plan.telemetry.as_ref().map(|telemetry| telemetry.listen.clone()),
            containerpilot: plan.containerpilot.as_ref().and_then(|pilot| pilot.socket.clone()),
        }
    }
}
