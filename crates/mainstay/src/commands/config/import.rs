//! `mainstay import` and `mainstay schema`: what `config` can print.

use crate::{
    args::{ImportArgs, SchemaArgs},
    context::context,
    failure::{CONFIG, Failure},
    term::{self, print, print_json},
};
use serde_json::json;

pub(crate) fn import(args: &ImportArgs) -> Result<i32, Failure> {
    for file in &args.files {
        let imported = match mainstay_import::import_file(args.format, file, &context()) {
            Ok(imported) => imported,
            Err(errors) => {
                let color = term::stderr_color();
                term::tell_diagnostics(errors.render(color).trim_end());
                return Ok(CONFIG);
            }
        };
        if args.json.json {
            let notes = imported.notes.iter();
            let notes = notes.map(
                |note| json!({ "file": note.file, "line": note.line, "message": note.message }),
            );
            let notes: Vec<_> = notes.collect();
            print_json(&json!({ "file": file, "toml": imported.toml, "notes": notes }))?;
            continue;
        }
        print(&imported.toml)?;
        imported.notes.iter().for_each(|note| term::tell(&note.to_string()));
    }
    Ok(0)
}

pub(crate) fn schema(args: &SchemaArgs) -> Result<i32, Failure> {
    match args.markdown {
        true => print(&mainstay_config::reference())?,
        false => {
            let text = serde_json::to_string_pretty(&mainstay_config::schema());
            print(&(text.map_err(|error| Failure::of("cannot write JSON", error))? + "\n"))?;
        }
    }
    Ok(0)
}
