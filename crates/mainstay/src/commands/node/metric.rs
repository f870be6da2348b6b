//! `mainstay metric`: feeds what `[telemetry] metrics` declares.

use crate::{
    args::MetricArgs,
    client::{Client, PROMPT},
    failure::{Failure, USAGE},
    term::print_json,
};
use serde_json::{Map, Value};

pub(crate) fn metric(args: &MetricArgs) -> Result<i32, Failure> {
    let mut values = Map::new();
    for (name, value) in &args.values {
        if values.insert(name.clone(), Value::from(*value)).is_some() {
            let text = format!("{name} is given twice: one value at a time");
            return Err(Failure::new(USAGE, text));
        }
    }
    let client = Client::of(&args.node)?;
    let body =
        client.post("/v1/metrics", &Value::Object(values), PROMPT)?.or_told(args.json.json)?;
    if args.json.json {
        print_json(&body)?;
    }
    Ok(0)
}
