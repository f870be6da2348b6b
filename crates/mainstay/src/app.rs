//! `mainstay app`: the jobs of an app, together.

use crate::{
    args::AppArgs,
    client::{Client, PROMPT},
    control::escaped,
    dirs,
    failure::Failure,
    term::{print, print_json},
};
use serde_json::json;

pub(crate) fn app(args: &AppArgs) -> Result<i32, Failure> {
    let client = Client::new(dirs::run_dir(args.node.run_dir.as_deref())?);
    let wait = args.wait.patience();
    let (deed, app) = (args.deed.word(), escaped(&args.app));
    let path = format!("/v1/apps/{app}/{deed}?wait={}ms", wait.as_millis());
    let body = client.post(&path, &json!({}), wait + PROMPT)?.into_result()?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    for job in body["jobs"].as_array().into_iter().flatten() {
        let name = job["name"].as_str().unwrap_or("?");
        print(&format!("{name}: {}\n", crate::control::line(job)))?;
    }
    Ok(0)
}
