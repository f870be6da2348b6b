//! What is made from the registry: the schema for editors and the reference page.

use mainstay_config::{keys, reference, schema};
use std::{fs, path::Path};

fn instance(text: &str) -> serde_json::Value {
    toml::from_str(text).unwrap()
}

#[test]
fn the_schema_accepts_whatever_loads() {
    let schema = jsonschema::draft202012::new(&schema()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    let examples = fs::read_dir(root.join("../../examples")).unwrap();
    let examples = examples.map(|entry| entry.unwrap().path());
    let examples = examples.filter(|path| path.extension().is_some_and(|ext| ext == "toml"));
    for path in super::testdata().into_iter().chain(examples) {
        if mainstay_config::load(&path, &super::context()).is_err() {
            continue;
        }
        let instance = instance(&fs::read_to_string(&path).unwrap());
        let wrong: Vec<String> =
            schema.iter_errors(&instance).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
        seen += 1;
    }
    assert!(seen >= 3, "only {seen} files were tried");
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema = jsonschema::draft202012::new(&schema()).unwrap();
    assert!(jsonschema::meta::is_valid(&mainstay_config::schema()));
    for text in [
        "[jobs.x]",
        "[jbos.x]\nexec = \"a\"",
        "[jobs.x]\nexec = \"a\"\nreestart = \"never\"",
        "[jobs.x]\nexec = \"a\"\nrestart = \"sometimes\"",
        "[jobs.x]\nexec = \"a\"\nrestart = { delai = 1 }",
        "[jobs.x]\nexec = \"a\"\nwhen = { event = \"healthy\" }",
        "[jobs.x]\nexec = \"a\"\nwhen = [{ sorce = \"x\" }]",
        "[jobs.x]\nexec = \"a\"\nhealth = [{ http = { ulr = \"x\" } }]",
        "[jobs.x]\nexec = \"a\"\nhealth = { tcp = \"x:1\", interval = \"10 s\" }",
        "[jobs.x]\nexec = \"a\"\nstop = { timeout = \"5 seconds\" }",
        "[jobs.\"a b\"]\nexec = \"a\"",
        "[node]\nnmae = \"x\"",
    ] {
        assert!(!schema.is_valid(&instance(text)), "{text}");
    }
}

#[test]
fn every_key_is_in_the_schema_and_in_the_reference() {
    let schema = schema().to_string();
    let page = reference();
    for key in keys() {
        assert!(schema.contains(&format!("\"{}\":", key.name)), "{}", key.name);
        assert!(page.contains(&format!("| `{}` |", key.name)), "{}", key.name);
    }
}

/// `MAINSTAY_GOLDEN=write` writes it anew.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    if std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write") {
        fs::write(&path, reference()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == reference(), "run the tests of mainstay-config with MAINSTAY_GOLDEN=write");
}
