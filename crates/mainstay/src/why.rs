//! `mainstay why JOB`

use crate::{
    args::WhyArgs,
    client::Client,
    control::escaped,
    dirs,
    failure::Failure,
    term::{print, print_json},
};

pub(crate) fn why(args: &WhyArgs) -> Result<i32, Failure> {
    let client = Client::new(dirs::run_dir(args.node.run_dir.as_deref())?);
    let body = client.get(&format!("/v1/jobs/{}/why", escaped(&args.job)))?.into_result()?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    for line in body["lines"].as_array().into_iter().flatten().filter_map(|line| line.as_str()) {
        print(&format!("{line}\n"))?;
    }
    Ok(0)
}
