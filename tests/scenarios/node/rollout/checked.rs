//! What `mainstay check` finds in templates, before there is a version of anything.

use super::{limits::deep, usual};
use mainstay_tests::{Command, RolledOut, binary};
use std::fs;

/// Exit code and diagnostics of a check of the usual configuration, with this template.
fn check(template: Option<&str>) -> (Option<i32>, String) {
    let usual = usual(template.unwrap_or_default());
    if template.is_none() {
        fs::remove_file(usual.path().join("web.conf.j2")).expect("removed");
    }
    check_of(&usual)
}

fn check_of(rolled_out: &RolledOut) -> (Option<i32>, String) {
    let dir = rolled_out.path();
    fs::write(dir.join("mainstay.toml"), rolled_out.config()).expect("written");
    let output = Command::new(binary())
        .args(["check", "-c", "mainstay.toml"])
        .env("NO_COLOR", "1")
        .current_dir(dir)
        .output()
        .expect("the binary can be started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_check_compiles_templates_and_looks_for_what_they_use() {
    let (code, told) =
        check(Some("port = {{ app.port }}\n{% for n in range(3) %}{{ n }}{% endfor %}\n"));
    assert_eq!((code, told.as_str()), (Some(0), ""));

    let (code, told) = check(Some("a = 1\nport = {{ app.port }\n"));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("template 'conf', web.conf.j2:2:"), "{told}");

    let (code, told) = check(Some("port = {{ ap.port }}\n"));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("template 'conf' uses 'ap'"), "{told}");
    assert!(told.contains("did you mean 'app'?"), "{told}");

    let (code, told) = check(None);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("templates.conf: ") && told.contains("web.conf.j2"), "{told}");
}

#[test]
fn a_template_that_is_nested_too_deep_is_an_error_and_keeps_nobody_from_looking_at_the_others() {
    for deep in deep() {
        let rolled_out = usual(&deep).template("other", "other.conf", "{{ app.name }\n", "");
        let (code, told) = check_of(&rolled_out);
        assert_eq!(code, Some(78), "{told}");
        let why = "template 'conf': its expressions or conditions are nested too deep";
        assert!(
            told.contains(why) && told.contains("template 'other', other.conf.j2:1:"),
            "{told}"
        );
    }
}
