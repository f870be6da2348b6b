//! Where figures go: the table to stdout; after a full run also to `docs/` as table, chart and JSON.

mod chart;
mod table;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::failure::{Doing, Failure, Result};
use crate::figure::Figure;
use crate::machine::{self, Machine};
use crate::options::Options;

const BEGIN: &str = "<!-- figures: written by bench/run -->\n";
const END: &str = "<!-- end of figures -->";

pub(crate) fn publish(options: &Options, machine: &Machine, figures: &[Figure]) -> Result<()> {
    let table = table::draw(figures);
    println!("{table}");
    println!("{machine}; {:.2} at the end", machine::load());
    let Some(docs) = options.docs.as_deref().filter(|_| options.publish) else { return Ok(()) };
    let keep = |name: &str, text: &str| {
        let path = docs.join(name);
        fs::write(&path, text).doing(format_args!("write {}", path.display()))
    };
    keep("performance.svg", &chart::draw(figures))?;
    keep("performance.json", &format!("{:#}\n", as_json(options, machine, figures)))?;
    insert(&docs.join("performance.md"), &format!("\n{table}\nMeasured on {machine}.\n\n"))
}

/// Replaces what stands between the markers; the prose around them is written by hand.
fn insert(path: &Path, figures: &str) -> Result<()> {
    let text = fs::read_to_string(path).doing(format_args!("read {}", path.display()))?;
    let parts = text
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)))
        .ok_or_else(|| Failure::new(format!("{}: no markers for the figures", path.display())))?;
    let text = format!("{}{BEGIN}{figures}{END}{}", parts.0, parts.1);
    fs::write(path, text).doing(format_args!("write {}", path.display()))
}

fn as_json(options: &Options, machine: &Machine, figures: &[Figure]) -> Value {
    let figure = |figure: &Figure| {
        let values: serde_json::Map<String, Value> = figure
            .values
            .iter()
            .map(|(who, value)| (who.name().to_owned(), json!(value)))
            .collect();
        let verdicts: Vec<Value> = figure
            .verdicts()
            .iter()
            .map(|verdict| json!({ "ratio": verdict.ratio, "target": verdict.target, "met": verdict.met }))
            .collect();
        json!({
            "id": figure.id,
            "work": figure.work,
            "values": values,
            "verdicts": verdicts,
        })
    };
    json!({
        "machine": {
            "processor": machine.processor,
            "cores": machine.cores,
            "kernel": machine.kernel,
            "load": machine.load,
            "versions": machine.versions.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        },
        "jobs": options.jobs,
        "rounds": options.rounds,
        "megabytes": options.megabytes,
        "samples": options.samples,
        "figures": figures.iter().map(figure).collect::<Vec<_>>(),
    })
}
