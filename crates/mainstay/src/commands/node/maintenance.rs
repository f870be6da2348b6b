//! `mainstay maintenance on|off`

use crate::{
    args::{MaintenanceArgs, Switch},
    client::{Client, PROMPT},
    failure::Failure,
    term::{print, print_json},
};
use mainstay_wire::api::MaintenanceRequest;
use serde_json::json;

pub(crate) fn maintenance(args: &MaintenanceArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let on = args.switch == Switch::On;
    let body =
        client.post("/v1/maintenance", &json!(MaintenanceRequest { on }), PROMPT)?.into_result()?;
    match args.json.json {
        true => print_json(&body)?,
        false if on => print("the node is in maintenance; `mainstay maintenance off` ends it\n")?,
        false => print("the node is not in maintenance\n")?,
    }
    Ok(0)
}
