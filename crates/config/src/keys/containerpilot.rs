//! `[containerpilot]`: for jobs, scripts and dashboards that were made for ContainerPilot.

use crate::keys::{Kind, Reload::Live, Table, key};
use mainstay_core::plan::ContainerPilotPlan;

/// What a unix address can hold, less what a name beside it needs.
const LONGEST_PATH: usize = 103;

pub(crate) static CONTAINERPILOT: Table<ContainerPilotPlan> = Table {
    keys: &[key(
        "socket",
        Kind::Text,
        "",
        Live,
        "Path of a socket that answers /v3/* as ContainerPilot's control socket does.",
        |it, v, r| {
            let path = r.filled(v)?;
            if !path.starts_with('/') || path.ends_with('/') {
                let help = "write for example /var/run/containerpilot.socket";
                return r.wrong(v.span, format!("'{path}' is not an absolute path"), help);
            }
            if path.len() > LONGEST_PATH {
                let help = format!("use at most {LONGEST_PATH} bytes");
                return r.wrong(v.span, "the path is too long for a socket", help);
            }
            it.socket = Some(path.into());
            Some(())
        },
    )],
    later: &[],
    refused: &[],
};
