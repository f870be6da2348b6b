use super::*;

fn env() -> BTreeMap<String, String> {
    [
        ("NAME", "web"),
        ("LIST", " a,b,c "),
        ("EMPTY", ""),
        ("COUNT", "3"),
        ("OPTS", "-Da=b -Dc=d"),
        ("PATHS", "a.b.c"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

fn rendered(text: &str) -> String {
    render(text, &env()).unwrap_or_else(|bad| panic!("{text}: {bad:?}")).text
}

/// What Go's text/template makes of it, with ContainerPilot's functions.
#[test]
fn templates_say_what_they_say_in_go() {
    for (text, expected) in [
        ("plain", "plain"),
        ("{{ .NAME }}", "web"),
        ("{{.NAME}}-{{ $.NAME }}", "web-web"),
        // Not `<no value>`, and not cut at a `=`.
        ("[{{ .MISSING }}]", "[]"),
        ("{{ .OPTS }}", "-Da=b -Dc=d"),
        ("{{ index . \"NAME\" }}{{ index . \"MISSING\" }}", "web"),
        ("{{ .MISSING | default \"x\" }}", "x"),
        ("{{ .EMPTY | default \"x\" }}", "x"),
        ("{{ .NAME | default \"x\" }}", "web"),
        ("{{ default 80 .MISSING }}", "80"),
        ("{{ default true .MISSING }}", "true"),
        ("{{ env \"NAME\" }}{{ env \"MISSING\" }}", "web"),
        ("{{ env \"OPTS\" }}", "-Da=b -Dc=d"),
        ("{{ .LIST | split \",\" | join \":\" }}", "a:b:c"),
        ("{{ .EMPTY | split \",\" | len }}", "0"),
        ("{{ .LIST | split \",\" }}", "[a b c]"),
        ("{{ .NAME | split \"\" | join \"-\" }}", "w-e-b"),
        ("{{ join \"+\" (split \".\" .PATHS) }}", "a+b+c"),
        ("{{ .PATHS | replaceAll \".\" \"/\" }}", "a/b/c"),
        ("{{ .NAME | replaceAll \"\" \"-\" }}", "-w-e-b-"),
        ("{{ .PATHS | regexReplaceAll \"[.](.)\" \"<$1>\" }}", "a<b><c>"),
        ("{{ .PATHS | regexReplaceAll \"([a-z]).*\" \"${1}z\" }}", "az"),
        ("{{ range loop 3 }}{{ . }},{{ end }}", "0,1,2,"),
        ("{{ range loop .COUNT }}{{ . }},{{ end }}", "0,1,2,"),
        ("{{ range loop 2 5 }}{{ . }},{{ end }}", "2,3,4,"),
        ("{{ range loop 5 2 }}{{ . }},{{ end }}", "5,4,3,"),
        ("{{ range loop \"1\" .COUNT }}{{ . }},{{ end }}", "1,2,"),
        ("{{ range loop 0 }}x{{ else }}none{{ end }}", "none"),
        ("{{ range $i, $v := split \",\" .LIST }}{{ $i }}={{ $v }} {{ end }}", "0=a 1=b 2=c "),
        ("{{ if .NAME }}yes{{ else }}no{{ end }}", "yes"),
        ("{{ if .MISSING }}yes{{ else }}no{{ end }}", "no"),
        ("{{ if eq .NAME \"web\" }}1{{ else if eq .NAME \"db\" }}2{{ end }}", "1"),
        ("{{ if and .NAME (not .EMPTY) }}1{{ end }}", "1"),
        ("{{ with .NAME }}<{{ . }}>{{ end }}", "<web>"),
        ("{{ with .EMPTY }}x{{ else }}y{{ end }}", "y"),
        ("{{ $x := .NAME }}{{ $x }}{{ $x = \"db\" }}{{ $x }}", "webdb"),
        ("a {{- .NAME -}} b", "awebb"),
        ("a\n{{- /* a comment */ -}}\nb", "ab"),
        ("{{ printf \"%s:%03d\" .NAME 7 }}", "web:007"),
        ("{{ printf \"%q\" .NAME }}", "\"web\""),
        ("{{ print 1 2 \"a\" }}", "1 2a"),
        ("{{ len .NAME }}{{ slice .NAME 1 }}", "3eb"),
        ("{{ `raw \"text\"` }}", "raw \"text\""),
        ("{{ define \"T\" }}<{{ . }}>{{ end }}{{ template \"T\" .NAME }}", "<web>"),
        ("{{ .NAME | printf \"%s-%s\" \"a\" }}", "a-web"),
        ("{{ urlquery \"a b&c\" }}", "a+b%26c"),
        ("{ a: { b: 1 } }", "{ a: { b: 1 } }"),
    ] {
        assert_eq!(rendered(text), expected, "{text}");
    }
}

#[test]
fn a_template_that_cannot_be_rendered_says_where() {
    for (text, at, message) in [
        ("a\n  {{ .NAME ", 4, "not a template"),
        ("a\n  \"{{ .NAME \"b }}\",\n jobs: {}}\n", 5, "not a template"),
        ("a\n{{ if .NAME }}\nx", 2, "never closed"),
        ("abc {{ end }}", 4, "nothing is open"),
        ("a\n {{ nonsense .NAME }}", 6, "function 'nonsense' that does not exist"),
        ("a {{ if .EMPTY }}{{ defualt 1 2 }}{{ end }}", 20, "'defualt'"),
        ("ab {{ default 1 }}", 3, "'default' takes 2 arguments, it was given 1"),
        ("ab\n {{ .NAME | join \",\" }}", 4, "where it takes a list"),
        ("{{ range loop 2 }}\n{{ loop \"x\" }}{{ end }}", 19, "which is no integer"),
        ("{{ .NAME | regexReplaceAll \"(\" \"\" }}", 0, "'(' is no regular expression"),
        ("{{ .NAME.x }}", 0, "cannot be rendered"),
        ("{{ template \"none\" }}", 0, "undefined template"),
        ("{{ range loop 100000 }}{{ range loop 100000 }}{{ end }}{{ end }}", 23, "budget"),
        (
            "{{ range loop 100000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}",
            0,
            "8 MiB",
        ),
        ("{{ $x := .NAME }}{{ range loop 100 }}{{ $x = print $x $x }}{{ end }}", 37, "1 MiB"),
        ("{{ range loop 500000 }}{{ $x := loop 500000 }}{{ end }}", 23, "too much"),
        ("{{ range loop 500000 }}{{ $x := loop 500000 | len }}{{ end }}", 23, "too much"),
        (
            "{{ $x := .NAME }}{{ range loop 18 }}{{ $x = print $x $x }}{{ end }}\
             {{ range loop 500000 }}{{ if eq $x $x }}{{ end }}{{ end }}",
            90,
            "too much",
        ),
        ("{{ loop 100000000 }}", 0, "steps"),
        (
            "{{ define \"T\" }}{{ template \"T\" . }}{{ end }}{{ template \"T\" . }}",
            16,
            "recursion",
        ),
    ] {
        let bad = render(text, &env()).expect_err(text);
        assert!(bad.message.contains(message), "{text}: {}", bad.message);
        if at > 0 {
            assert_eq!(bad.span.start, at, "{text}: {}", bad.message);
        }
        assert!(!bad.help.is_empty());
    }
}

#[test]
fn every_place_of_the_rendered_text_is_found_in_the_file() {
    let file = "{\n  name: \"{{ .NAME }}\", // {{ .EMPTY }}\n{{ range loop 2 -}}\n  x{{ . }}: bad,\n{{ end }}  last: 1\n}";
    let rendered = render(file, &env()).expect("valid");
    let found = |what: &str, nth: usize| {
        let (at, _) =
            rendered.text.match_indices(what).nth(nth).unwrap_or_else(|| panic!("{what}"));
        let original = rendered.original(at..at + what.len(), file);
        (file[original.span.clone()].to_owned(), original.exact)
    };
    assert_eq!(found("name", 0), ("name".to_owned(), true));
    assert_eq!(found("web", 0), ("{{ .NAME }}".to_owned(), false));
    assert_eq!(found("bad", 0), ("bad".to_owned(), true));
    assert_eq!(found("bad", 1), ("bad".to_owned(), true));
    assert_eq!(found("last", 0), ("last".to_owned(), true));
    assert_eq!(found("1: bad", 0), ("{{ . }}: bad".to_owned(), false));
    assert_eq!(found("\"web\"", 0), ("\"{{ .NAME }}\"".to_owned(), false));
}

#[test]
fn a_file_that_rendering_does_not_change_is_mapped_exactly() {
    for file in ["a\nb", "{ a: 1 }", "é ü\n"] {
        let rendered = Rendered::plain(file);
        for at in 0..file.len() {
            assert_eq!(rendered.original(at..at + 1, file).span, at..at + 1);
        }
    }
}

#[test]
fn templates_that_call_templates_come_to_an_end() {
    let mut file = "{{ define \"T0\" }}{{ end }}".to_owned();
    for n in 1..40 {
        let call = format!("{{{{ template \"T{}\" }}}}", n - 1);
        file.push_str(&format!("{{{{ define \"T{n}\" }}}}{call}{call}{{{{ end }}}}"));
    }
    file.push_str("{{ template \"T39\" }}");
    let bad = render(&file, &env()).expect_err("two to the power of 39 calls");
    assert!(bad.message.contains("too much"), "{}", bad.message);
}

#[test]
fn a_pipe_in_which_text_grows_comes_to_an_end() {
    for stage in ["| js ", "| printf \"%[1]s%[1]s\" ", "| printf \"%q\" "] {
        let file = format!("ab {{{{ \"\\\\\" {}}}}}", stage.repeat(45));
        let bad = render(&file, &env()).expect_err("doubled 45 times");
        assert!(bad.message.contains("1 MiB"), "{stage}: {}", bad.message);
        assert_eq!(bad.span.start, 3);
    }
}

#[test]
fn a_function_is_not_given_a_large_text_without_end() {
    let file = format!("ab {{{{ print {}}}}}", ".NAME ".repeat(200));
    let bad = render(&file, &env()).expect_err("too many");
    assert!(bad.message.contains("128 arguments"), "{}", bad.message);
    assert_eq!(bad.span.start, 3);
    let file = format!("{{{{ print {}}}}}", ".NAME ".repeat(100));
    assert_eq!(rendered(&file), "web".repeat(100));
}
