//! `mainstay environ`: variables for whatever is started from now on.

use crate::{
    args::EnvironArgs,
    client::{Client, PROMPT},
    failure::Failure,
    term::{Page, print_json},
};
use serde_json::{Map, Value};

const PATH: &str = "/v1/environ";

pub(crate) fn environ(args: &EnvironArgs) -> Result<i32, Failure> {
    let client = Client::of(&args.node)?;
    let set = args.set.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let unset = args.unset.iter().map(|name| (name.clone(), Value::Null));
    let changes: Map<String, Value> = set.chain(unset).collect();
    let show = changes.is_empty();
    let answer = match show {
        true => client.get(PATH)?,
        false => client.put(PATH, &Value::Object(changes), PROMPT)?,
    };
    let body = answer.into_result()?;
    if args.json.json {
        print_json(&body)?;
    } else if show {
        lines(&body).show()?;
    }
    Ok(0)
}

fn lines(body: &Value) -> Page {
    let mut page = Page::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(value) => page.line(format!("{name}={value}")),
            None => page.line(format!("{name} is unset")),
        }
    }
    if page.is_empty() {
        page.line("nothing has been changed");
    }
    page
}
