//! `mainstay upgrade`: asks the keeper, which needs no agent for it.

use crate::{
    args::{DirArgs, UpgradeArgs},
    dirs,
    failure::{Failure, NO_AGENT},
    keeper,
    term::{Page, print_json},
};
use mainstay_wire::link::{KeeperRequest, KeeperResponse};
use serde_json::json;
use std::time::Duration;

/// The new binary is tried out first.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn upgrade(args: &UpgradeArgs) -> Result<i32, Failure> {
    let version = match ask(args) {
        Ok(version) => version,
        Err(failure) if args.json.json => {
            print_json(&json!({ "version": null, "error": failure.text() }))?;
            return Ok(failure.code);
        }
        Err(failure) => return Err(failure),
    };
    match args.json.json {
        true => print_json(&json!({ "version": version }))?,
        false => {
            let mut page = Page::new();
            page.line(format!("the node runs on mainstay {version} now"));
            page.show()?;
        }
    }
    Ok(0)
}

/// The version that the node runs on afterwards.
fn ask(args: &UpgradeArgs) -> Result<String, Failure> {
    let run_dir = dirs::run_dir(&args.node)?;
    let binary = args.binary.as_deref().map(dirs::made_absolute).transpose()?;
    match keeper::ask(&run_dir, &KeeperRequest::Upgrade { binary }, PATIENCE) {
        Ok(KeeperResponse::Done { version }) => Ok(version),
        Ok(KeeperResponse::Refused { error }) => {
            Err(Failure::failed(format!("not upgraded, the node runs on as it was: {error}")))
        }
        Ok(KeeperResponse::Figures(_)) => {
            Err(Failure::failed("the keeper answered something else; look at `mainstay status`"))
        }
        Err(error) => Err(Failure::new(
            NO_AGENT,
            format!("no keeper answers in {}: {error}", run_dir.display()),
        )),
    }
}

/// `mainstay __check`: can this binary take over what the running keeper would hand it?
pub(crate) fn check_handover(args: &DirArgs) -> Result<i32, Failure> {
    let run_dir = dirs::run_dir(args)?;
    mainstay_agent::check(&run_dir).map_err(|error| Failure::failed(error.to_string()))?;
    mainstay_keeper::check().map_err(|error| Failure::failed(error.to_string()))?;
    Ok(0)
}
