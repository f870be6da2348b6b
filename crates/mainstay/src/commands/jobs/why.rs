//! `mainstay why JOB`

use crate::{
    args::WhyArgs,
    client::Client,
    commands::jobs::control::several,
    failure::Failure,
    term::{Page, print_json},
};
use mainstay_net::percent::segment;

pub(crate) fn why(args: &WhyArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let body =
        client.get(&format!("/v1/jobs/{}/why", segment(&args.job)))?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let lines = several(&body).iter().filter_map(|job| job["lines"].as_array()).flatten();
    let mut page = Page::new();
    lines.filter_map(|line| line.as_str()).for_each(|line| page.line(line));
    page.show()?;
    Ok(0)
}
