//! `mainstay import` and `mainstay schema`: what `config` can print.

use crate::{
    args::{ImportArgs, SchemaArgs},
    context::context,
    failure::{CONFIG, DIFFERS, Failure},
    term::{self, print, print_json},
};
use mainstay_import::{Imported, MadeFile, import_files};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
};

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
    if let Some(dir) = &args.out {
        write(dir, &imported)?;
    }
    if args.json.json {
        let note = |note: &mainstay_import::Note| json!({ "file": note.file, "line": note.line, "message": note.message });
        let notes: Vec<_> = imported.notes.iter().map(note).collect();
        let made = |it: &MadeFile| json!({ "path": it.path, "text": it.text });
        let made: Vec<_> = imported.files.iter().map(made).collect();
        let toml = &imported.toml;
        print_json(&json!({ "files": args.files, "toml": toml, "notes": notes, "made": made }))?;
    } else {
        if args.out.is_none() {
            print(&imported.toml)?;
        }
        imported.notes.iter().for_each(|note| term::tell(&note.to_string()));
        if let (None, [first, ..]) = (&args.out, imported.files.as_slice()) {
            let path = first.path.display();
            term::tell(&format!("{path} and all other templates are written by --out DIR"));
        }
    }
    Ok(if imported.notes.is_empty() || args.accept { 0 } else { DIFFERS })
}

/// All of it, or nothing: what is there already stays.
fn write(dir: &Path, imported: &Imported) -> Result<(), Failure> {
    let named = imported.files.iter().map(|it| (it.path.as_path(), it.text.as_str()));
    let files = std::iter::once((Path::new("mainstay.toml"), imported.toml.as_str())).chain(named);
    let files: Vec<(PathBuf, &str)> = files.map(|(path, text)| (dir.join(path), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        let told = format!("{} is there already: nothing is written", path.display());
        return Err(Failure::failed(told));
    }
    for (path, text) in files {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| fs::write(&path, text));
        written.map_err(|error| Failure::of(format!("cannot write {}", path.display()), error))?;
    }
    Ok(())
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
