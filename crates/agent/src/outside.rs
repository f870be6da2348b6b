//! What the plan in force wants to have open besides the API, for whoever opens it.

use mainstay_core::plan::{Listen, Plan};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// Where telemetry is shown.
    pub telemetry: Option<Listen>,
    /// The socket that speaks as ContainerPilot's does.
    pub pilot: Option<PathBuf>,
}

impl Outside {
    pub(crate) fn of(plan: &Plan) -> Outside {
        Outside {
            telemetry: plan.telemetry.as_ref().map(|telemetry| telemetry.listen.clone()),
            pilot: plan.containerpilot.as_ref().and_then(|pilot| pilot.socket.clone()),
        }
    }
}
