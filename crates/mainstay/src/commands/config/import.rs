//! `mainstay import` and `mainstay schema`: what `config` can print.

use crate::{
    args::{ImportArgs, SchemaArgs},
    context::context,
    failure::{CONFIG, DIFFERS, Failure},
    term::{self, print, print_json},
};
use mainstay_import::import_files;
use serde_json::json;

pub(crate) fn import(args: &ImportArgs) -> Result<i32, Failure> {
    let Some((first, others)) = args.files.split_first() else {
        return Err(Failure::failed("there is no file to import"));
    };
    let imported = match import_files(args.format, first, others, &context()) {
        Ok(imported) => imported,
        Err(errors) => {
            let color = term::stderr_color();
            term::tell_diagnostics(errors.render(color).trim_end());
            return Ok(CONFIG);
        }
    };
    if args.json.json {
        let note = |note: &mainstay_import::Note| json!({ "file": note.file, "line": note.line, "message": note.message });
        let notes: Vec<_> = imported.notes.iter().map(note).collect();
        print_json(&json!({ "files": args.files, "toml": imported.toml, "notes": notes }))?;
    } else {
        print(&imported.toml)?;
        imported.notes.iter().for_each(|note| term::tell(&note.to_string()));
    }
    Ok(if imported.notes.is_empty() || args.accept { 0 } else { DIFFERS })
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
