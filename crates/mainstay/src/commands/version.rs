//! `mainstay version`

use crate::{
    args::VersionArgs,
    failure::Failure,
    term::{print, print_json},
};
use mainstay_wire::format::NUMBER;
use serde_json::json;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn version(args: &VersionArgs) -> Result<i32, Failure> {
    match args.json.json {
        true => print_json(&json!({ "version": VERSION, "format": NUMBER }))?,
        false => print(&format!("mainstay {VERSION}\n"))?,
    }
    Ok(0)
}
