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
    let here = if args.here { "?here=true" } else { "" };
    let path = format!("/v1/jobs/{}/why{here}", segment(&args.job));
    let body = client.get(&path)?.or_told(args.json.json)?;
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
