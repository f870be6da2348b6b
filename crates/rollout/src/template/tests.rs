//! What templates see, make and are refused.

use super::*;
use crate::{profile::Document, test_dir::TestDir};
use mainstay_core::{
    name::Name,
    plan::ProfileFormat,
    rollout::{Content, SecretValue},
    text::Secret,
};
use serde_json::json;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn profile(json: &str, secrets: &[(&str, &str, Option<&str>)]) -> ProfileScope {
    ProfileScope::read(&content(json, secrets)).expect("valid")
}

fn content(json: &str, secrets: &[(&str, &str, Option<&str>)]) -> Content {
    let bytes = json.as_bytes().to_vec();
    let document = Document { format: ProfileFormat::Json, bytes, label: None };
    let secret = |(name, value, content_type): &(&str, &str, Option<&str>)| {
        let content_type = content_type.map(str::to_owned);
        let value = Secret::new(*value);
        ((*name).to_owned(), SecretValue { value, content_type, version_id: None })
    };
    document.with_secrets(secrets.iter().map(secret).collect()).1
}

fn app() -> ProfileScope {
    profile(
        r#"{"port": 80, "hosts": ["a", "b"], "null": null, "on": true}"#,
        &[("db", r#"{"user": "bob", "key": "s3cret"}"#, Some("application/json"))],
    )
}

/// With the profiles `app` and `a-b`.
fn scope(show: ShowSecrets) -> Scope {
    let (app, other) = (app(), profile(r#"{"x": "y"}"#, &[("token", "tok-123", None)]));
    let node = json!({"name": "web-1"});
    Scope::new(&node, &[(&name("app"), &app), (&name("a-b"), &other)], show).expect("valid")
}

fn render(text: &str) -> Result<Rendered, TemplateError> {
    let dir = TestDir::new("template");
    let path = dir.write("nginx.conf.j2", text);
    Template::compile(&name("nginx"), &path)?.render(&scope(ShowSecrets::Values))
}

fn rendered(text: &str) -> String {
    String::from_utf8(render(text).expect("valid").bytes).expect("UTF-8")
}

fn refused(text: &str) -> String {
    render(text).expect_err("refused").to_string()
}

#[test]
fn what_json_has_a_word_for_is_printed_by_that_word() {
    assert_eq!(rendered("{{ app.on }} {{ app.null }} {{ not app.on }}"), "true null false");
    assert!(refused("{{ app.missing }}").contains("undefined"));
}

#[test]
fn profiles_facts_and_secrets_are_in_scope() {
    let text = "{% for host in app.hosts %}{{ host }}:{{ app.port }} {% endfor %}{{ node.name }} \
                {{ profiles['a-b'].x }} {{ profiles.app.port }} {{ secrets.db.user }} {{ secrets.token }}\n";
    assert_eq!(rendered(text), "a:80 b:80 web-1 y 80 bob tok-123\n");
    assert_eq!(rendered("<a & 'b'>"), "<a & 'b'>", "nothing is escaped");
    assert_eq!(rendered("{{ app.hosts | tojson }}"), r#"["a", "b"]"#);
}

#[test]
fn what_is_not_there_is_an_error_with_template_line_and_column() {
    let told = refused("port = 80\nhost = {{ app.hots }}\n");
    assert!(told.starts_with("template 'nginx', nginx.conf.j2:2:"), "{told}");
    assert!(told.contains("undefined"), "{told}");
    let place = render("a\n  b {{ app.hots }}").expect_err("refused").place.expect("a place");
    assert_eq!((place.0.as_str(), place.1), ("nginx.conf.j2", 2));
    assert!((7..=12).contains(&place.2), "{place:?}");
    assert!(refused("{% if app.none %}x{% endif %}").contains("nginx.conf.j2:1:"));
    assert!(refused("{{ nothing }}").contains("undefined"));
    assert!(refused("{{ secrets.nothing }}").contains("undefined"));
    let syntax = refused("x\n{% if %}");
    assert!(syntax.contains("nginx.conf.j2:2:") && syntax.contains("syntax error"), "{syntax}");
    assert!(refused("{{ debug() }}").contains("debug"), "it would show everything");
}

#[test]
fn a_template_that_never_ends_nests_too_deep_or_makes_too_much_is_stopped() {
    let endless =
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    assert!(matches!(render(endless).expect_err("stopped").cause, Cause::Endless { .. }));
    let large = "{% for a in range(90000) %}0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789{% endfor %}";
    assert!(matches!(render(large).expect_err("stopped").cause, Cause::TooLarge { .. }));
    let deep = "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}";
    let stopped = in_small_stack(deep.to_owned());
    assert!(stopped.contains("recursion"), "{stopped}");
    let brackets = format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000));
    in_small_stack(brackets);
}

/// Refused by a thread as pools have them.
fn in_small_stack(text: String) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    mainstay_pool::own_thread("small", 2 << 20, move || {
        let _ = tell.send(refused(&text));
    })
    .expect("a thread");
    told.recv().expect("it stands")
}

#[test]
fn includes_come_from_beside_the_template_only() {
    let dir = TestDir::new("includes");
    dir.write("secret", "elsewhere");
    dir.write("t/part.j2", "part {{ app.port }}\n{{ app.wrong }}");
    dir.write("t/sub/good.j2", "good {{ app.port }}");
    let render = |text: &str| {
        let path = dir.write("t/main.j2", text);
        Template::compile(&name("main"), &path)
            .and_then(|it| it.render(&scope(ShowSecrets::Values)))
            .map(|it| String::from_utf8(it.bytes).expect("UTF-8"))
    };
    assert_eq!(render("{% include 'sub/good.j2' %}"), Ok("good 80".to_owned()));
    let told = render("{% include 'part.j2' %}").expect_err("refused").to_string();
    assert!(told.starts_with("template 'main', part.j2:2:"), "{told}");
    for outside in ["../secret", "/etc/passwd", "sub/../../secret", "nothing"] {
        let told = render(&format!("{{% include '{outside}' %}}")).expect_err("refused");
        assert!(told.to_string().contains(outside), "{told}");
    }
    let cycle = render("{% include 'main.j2' %}").expect_err("refused").to_string();
    assert!(cycle.contains("recursion"), "{cycle}");
    assert!(Template::compile(&name("main"), dir.path()).is_err(), "a directory");
}

#[test]
fn people_see_names_in_place_of_secrets() {
    let dir = TestDir::new("names");
    let path = dir.write("t", "{{ secrets.db.key }} {{ secrets.token }} {{ app.port }}");
    let template = Template::compile(&name("t"), &path).expect("valid");
    let shown = template.render(&scope(ShowSecrets::Names)).expect("valid");
    assert_eq!(shown.bytes, b"<secrets.db.key> <secrets.token> 80");
    assert!(shown.uses_secret);
    assert!(!render("{{ app.port }}").expect("valid").uses_secret);
    assert!(render("{{ secrets }}").expect("valid").uses_secret);
    for text in ["{{ secrets.token | int }}", "{{ secrets.token + 1 }}", "{{ 1 / secrets.db }}"] {
        let told = refused(text);
        assert!(!told.contains("tok-123") && !told.contains("s3cret"), "{told}");
    }
    let debug = format!("{:?} {:?}", scope(ShowSecrets::Values), app());
    assert!(!debug.contains("tok-123") && !debug.contains("s3cret"), "{debug}");
}

#[test]
fn one_name_of_a_secret_in_two_profiles_is_an_error() {
    let (one, two) = (profile("1", &[("key", "a", None)]), profile("2", &[("key", "b", None)]));
    let both = [(&name("one"), &one), (&name("two"), &two)];
    let told = Scope::new(&json!({}), &both, ShowSecrets::Values).expect_err("refused");
    assert_eq!(told.to_string(), "the profiles 'one' and 'two' both have a secret 'key'");
}

#[test]
fn a_secret_that_is_not_what_it_says_is_refused_without_being_shown() {
    let bad = ProfileScope::read(&content("1", &[("k", "{hush", Some("application/json"))]));
    let told = bad.expect_err("refused").to_string();
    assert!(told.contains("'k'") && !told.contains("hush"), "{told}");
}
