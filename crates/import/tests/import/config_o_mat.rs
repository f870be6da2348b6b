//! Directories of config_o_mat: the cases of `tests/config-o-mat` become the file and the templates
//! that they are expected to, and the templates make what ERB made of them.
//! `MAINSTAY_GOLDEN=write` writes the expected ones anew; `rendered/` is written by `render.rb`.

use super::context;
use mainstay_config::{Context, parse};
use mainstay_import::{
    Format, Imported, config_o_mat_template, import_file, import_files, import_texts,
};
use minijinja::{
    Environment, UndefinedBehavior, escape_formatter,
    syntax::SyntaxConfig,
    value::{Serde, Value, ValueKind},
};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config-o-mat")
}

fn cases() -> Vec<String> {
    let entries = fs::read_dir(dir()).unwrap().map(|it| it.unwrap());
    let mut cases: Vec<String> = entries
        .filter(|it| it.path().is_dir())
        .map(|it| it.file_name().into_string().unwrap())
        .collect();
    cases.sort();
    cases
}

fn in_runtime_directory() -> Context {
    let mut ctx = context();
    ctx.env.insert("RUNTIME_DIRECTORY".to_owned(), "/run/configurator".to_owned());
    ctx
}

fn imported(case: &str) -> Imported {
    let mut imported = import_file(Format::ConfigOMat, &dir().join(case), &in_runtime_directory())
        .unwrap_or_else(|e| panic!("{case}: {e}"));
    let here = format!("{}/", dir().display());
    imported.toml = imported.toml.replace(&here, "");
    imported
}

fn as_expected(path: &Path, made: &str) {
    if std::env::var_os("MAINSTAY_GOLDEN").is_some_and(|it| it == "write") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(made == expected, "not as in {}:\n{made}", path.display());
}

#[test]
fn every_case_becomes_what_it_is_expected_to() {
    let cases = cases();
    assert!(cases.len() >= 13, "{cases:?}");
    for case in cases {
        let imported = imported(&case);
        let expected = dir().join(&case).join("expected");
        as_expected(&expected.join("mainstay.toml"), &imported.toml);
        let loaded = parse("imported.toml", &imported.toml, &context());
        let plan = loaded.unwrap_or_else(|errors| panic!("{case}: {errors}")).plan;
        assert!(case == "keys" || plan.rollout.is_some_and(|it| !it.templates.is_empty()));
        for file in &imported.files {
            as_expected(&expected.join(&file.path), &file.text);
        }
    }
}

/// As templates of a rollout are rendered.
fn rendered(template: &str, profiles: &Map<String, Json>) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build()?;
    environment.set_syntax(syntax);
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        _ => escape_formatter(out, state, value),
    });
    let of = |key: &str| {
        let with =
            profiles.iter().filter_map(|(name, it)| Some((name.clone(), it.get(key)?.clone())));
        with.collect::<Map<String, Json>>()
    };
    let contents = of("contents");
    let secrets = of("secrets").into_iter().flat_map(|(_, it)| it.as_object().cloned().unwrap());
    let mut context = contents.clone();
    context.insert("profiles".to_owned(), Json::Object(contents));
    context.insert("node".to_owned(), json!({}));
    context.insert("secrets".to_owned(), Json::Object(secrets.collect()));
    environment.render_str(template, Value::from(Serde(&context)))
}

#[test]
fn translated_templates_make_what_erb_made() {
    let mut compared = 0;
    for case in cases() {
        let Ok(profiles) = fs::read(dir().join(&case).join("profiles.json")) else { continue };
        let profiles: Json = serde_json::from_slice(&profiles).unwrap();
        // A name that is not ours to give has another one.
        let renamed =
            |name: &str| if name == "watch" { "watch_job".to_owned() } else { name.to_owned() };
        let profiles =
            profiles.as_object().unwrap().iter().map(|(name, it)| (renamed(name), it.clone()));
        let profiles: Map<String, Json> = profiles.collect();
        for file in imported(&case).files {
            let inside = file.path.strip_prefix("templates").unwrap().display().to_string();
            let made = dir().join(&case).join("rendered").join(inside.strip_suffix(".j2").unwrap());
            let expected = fs::read_to_string(&made).unwrap();
            let got = rendered(&file.text, &profiles)
                .unwrap_or_else(|e| panic!("{case}/{inside}: {e:#}\n{}", file.text));
            assert!(got == expected, "{case}/{inside}:\n{}\n---\n{got}---\n{expected}", file.text);
            compared += 1;
        }
    }
    assert!(compared >= 12, "{compared}");
}

#[test]
fn what_is_not_translated_cannot_be_rendered_and_is_told_by_line() {
    let imported = imported("by-hand");
    let profiles =
        json!({"app": {"contents": {"ok": 1, "list": [1]}}, "other": {"contents": {"a": 1}}});
    for file in &imported.files {
        let error = rendered(&file.text, profiles.as_object().unwrap()).unwrap_err();
        assert!(error.to_string().contains("untranslated"), "{error}");
    }
    let lines: Vec<usize> = imported
        .notes
        .iter()
        .filter(|it| it.file.ends_with("some.conf"))
        .filter_map(|it| it.line)
        .collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 10]);
}

/// What config_o_mat would not start with.
#[test]
fn what_the_original_refuses_is_an_error_that_says_where() {
    let profile = "profiles: {p: {application: a, environment: e, profile: p}}\n";
    let whole = |more: &str| format!("{profile}{more}");
    for (text, told) in [
        ("profiles: {p: {application: a, profile: p}}\n".to_owned(), "'environment' is missing"),
        (
            whole("services: {s: {systemd_unit: u, restart_mode: restart, templates: [t]}}\n"),
            "no template 't'",
        ),
        (
            whole("services: {s: {systemd_unit: u, restart_mode: reload, templates: [t]}}\n"),
            "restart_mode is one of",
        ),
        (whole("services: {s: {systemd_unit: u, restart_mode: restart}}\n"), "templates is a list"),
        (
            whole("services: {s: {restart_mode: restart, templates: [t]}}\n"),
            "'systemd_unit' is missing",
        ),
        (
            whole(
                "services: {s: {systemd_unit: 'u@1', restart_mode: flip_flop, templates: [t]}}\n",
            ),
            "does not fit",
        ),
        (
            whole("services: {s: {systemd_unit: 'u@', restart_mode: restart, templates: [t]}}\n"),
            "does not fit",
        ),
        (whole("templates: {t: {src: t}}\n"), "'dst' is missing"),
        (whole("templates: {t: {src: ../t, dst: t}}\n"), "leaves the directory"),
        (whole("templates: {t: {src: nowhere, dst: t}}\n"), "nowhere"),
        (whole("templates: {t: {src: t, dst: x}, u: {src: u, dst: x}}\n"), "one dst"),
        (whole("log_level: loud\n"), "log_level: it is one of"),
        (whole("log_type: syslog\n"), "log_type: it is one of"),
        (whole("refresh_interval: often\n"), "no number of seconds"),
        (whole("facter: p\n"), "a profile 'p' already"),
        (
            "profiles: {p: {application: a, environment: e, profile: p, s3_fallback: x}}\n"
                .to_owned(),
            "fallback_s3_bucket is missing",
        ),
        ("profiles: [\n".to_owned(), "/nonexistent/f.conf:"),
        ("- a\n".to_owned(), "no map of keys"),
        ("profiles: 7\n".to_owned(), "no map of names"),
    ] {
        let first = (Path::new("/nonexistent/f.conf"), text.as_str());
        let errors =
            import_texts(Format::ConfigOMat, first, &[], &context()).unwrap_err().to_string();
        assert!(errors.contains(told), "{told}: {text}\n{errors}");
        assert!(errors.contains("f.conf") || errors.contains("nowhere"), "{errors}");
    }
}

#[test]
fn one_directory_is_read_and_no_second_one() {
    let (first, others) = (dir().join("one"), vec![dir().join("merged")]);
    assert!(import_files(Format::ConfigOMat, &first, &others, &context()).is_err());
    let of_file =
        import_file(Format::ConfigOMat, &dir().join("one/site.conf"), &context()).unwrap();
    assert_eq!(of_file.files.len(), 1);
    let told = import_file(Format::ConfigOMat, &dir().join("one/templates"), &context());
    assert!(told.unwrap_err().to_string().contains("neither a profile nor a template"));
    let noted = |it: &Imported| it.notes.iter().any(|it| it.message.contains("RUNTIME_DIRECTORY"));
    assert!(noted(&of_file) && !noted(&imported("one")));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Whatever a template says, what comes out of it compiles.
    #[test]
    fn any_tags_become_a_template_that_compiles(tokens in prop::collection::vec(prop::sample::select(vec![
        "<%", "<%=", "<%#", "%>", "%>\n", "<%%", "%%>", "\n", " ", "{", "{{", "{%", "}}", "%}", "-%}", "#}", "x", "profiles[:app]",
        ".contents", ".secrets", "[:a]", "[0]", ".fetch(:a, nil)", "&.", ".each do |x|", ".each { |k, v|", " if ", " end ", " } ",
        " else ", " elsif ", " unless ", "||", "&&", "!", "==", "nil", "\"a\"", "'b'", "(", ")", "?", ":", " y = ", ".join(',')",
        "case", "when", " do", "-", "1", ".nil?", "#", "\\",
    ]), 0..60)) {
        let made = config_o_mat_template(&tokens.concat(), &["app"]);
        let mut environment = Environment::new();
        if let Err(error) = environment.add_template("t", &made) {
            panic!("{error:#}\n{}\n---\n{made}", tokens.concat());
        }
    }

    #[test]
    fn any_text_without_a_tag_stays_itself(text in "[ -~\n]{0,80}") {
        prop_assume!(!text.contains("<%") && !text.contains("%>"));
        let made = config_o_mat_template(&text, &[]);
        assert_eq!(rendered(&made, &Map::new()).unwrap(), text, "{}", made);
    }
}
