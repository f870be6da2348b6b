//! Each `testdata/*/NAME.toml` and, beside it, what a user is told about it.
//! `MAINSTAY_GOLDEN=write` writes the latter anew.

use std::{fs, path::Path};

#[test]
fn every_mistake_is_told_as_written_down() {
    let write = std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write");
    let mut paths = super::testdata();
    paths.sort();
    assert!(!paths.is_empty());
    let mut different = Vec::new();
    for path in paths {
        let told = told(&path);
        let expected = path.with_extension("expected");
        if write {
            fs::write(&expected, &told).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != told {
            different.push(format!("{}:\n{told}", path.display()));
        }
    }
    assert!(different.is_empty(), "not as expected:\n{}", different.join("\n"));
}

fn told(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(path).unwrap();
    let told = match mainstay_config::parse(&name, &text, &super::context()) {
        Ok(loaded) => {
            let warnings: Vec<_> = loaded.warnings.iter().map(|it| it.render(false)).collect();
            warnings.join("\n\n")
        }
        Err(errors) => errors.render(false),
    };
    format!("{told}\n")
}
