//! `mainstay why JOB`, and of what is rolled out `why profile.NAME`

use crate::{
    args::WhyArgs,
    client::{Client, read},
    commands::jobs::control::several,
    failure::Failure,
    term::{Page, print_json},
};
use mainstay_net::percent::segment;
use mainstay_wire::api::RolloutWhy;

pub(crate) fn why(args: &WhyArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    if ["profile.", "template.", "service."].iter().any(|it| args.job.starts_with(it)) {
        return why_rolled_out(&client, args);
    }
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

fn why_rolled_out(client: &Client, args: &WhyArgs) -> Result<i32, Failure> {
    let path = format!("/v1/rollout/why/{}", segment(&args.job));
    let body = client.get(&path)?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
        return Ok(0);
    }
    let why: RolloutWhy = read(&body)?;
    let mut page = Page::new();
    why.lines.iter().for_each(|line| page.line(line));
    page.show()?;
    Ok(0)
}
