use super::*;

/// A tree in one line, without positions.
fn drawn(node: &Json5Node) -> String {
    match &node.value {
        Json5Value::Null => "null".to_owned(),
        Json5Value::Bool(it) => it.to_string(),
        Json5Value::Number(it) => it.to_string(),
        Json5Value::Text(it) => format!("{it:?}"),
        Json5Value::List(all) => {
            format!("[{}]", all.iter().map(drawn).collect::<Vec<_>>().join(","))
        }
        Json5Value::Map(all) => {
            let pairs = all.iter().map(|it| format!("{}:{}", it.key, drawn(&it.node)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
        }
    }
}

#[test]
fn whatever_json5_allows_is_read() {
    for (text, expected) in [
        ("{}", "{}"),
        ("\u{feff} { } // end", "{}"),
        ("{a: 1, 'b': 2, \"c d\": 3,}", "{a:1,b:2,c d:3}"),
        ("[1, 2, ]", "[1,2]"),
        ("{$a_1: null, é: true}", "{$a_1:null,é:true}"),
        ("/* a\n */ { a: /* b */ 1 // c\n }", "{a:1}"),
        ("[+1, -1, .5, 5., 0x1F, -0xA, 1e3, 1E-2, 0, 0.5]", "[1,-1,0.5,5,31,-10,1000,0.01,0,0.5]"),
        ("[Infinity, -Infinity]", "[inf,-inf]"),
        (
            r#"['it\'s', "\x41\u00e9\ud83d\ude00", 'a\
b', "\q\0"]"#,
            "[\"it's\",\"Aé😀\",\"ab\",\"q\\0\"]",
        ),
        ("{a: 1, a: 2}", "{a:1,a:2}"),
        ("{\\u0061b: 1}", "{ab:1}"),
        ("\"\\ud800\"", "\"\u{fffd}\""),
    ] {
        let tree = parse(text).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
        assert_eq!(drawn(&tree), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_where_it_is() {
    for (text, at, message) in [
        ("", 0, "found the end of the file"),
        ("{a: 1 b: 2}", 6, "expected ',' or '}', found 'b'"),
        ("{a: 1,, b: 2}", 6, "expected a key, found ','"),
        ("[1,,2]", 3, "expected a value, found ','"),
        ("{a 1}", 3, "expected ':' after 'a', found '1'"),
        ("{a: }", 4, "expected a value, found '}'"),
        ("{a: [1, 2}", 9, "expected ',' or ']', found '}'"),
        ("{a: yes}", 4, "'yes' is not a value"),
        ("{a: \"x\n\"}", 4, "does not end on its line"),
        ("{a: {b: 1}", 0, "never closed"),
        ("{a: [1, ", 4, "never closed"),
        ("{} {}", 3, "after the end"),
        ("{}}", 2, "not opened"),
        ("{a: 012}", 4, "'012' is not a number"),
        ("{a: 10s}", 4, "'10s' is not a number"),
        ("{a: 1.2.3}", 4, "'1.2.3' is not a number"),
        ("{a: '\\u12'}", 5, "four hexadecimal digits"),
        ("{ /* ", 2, "does not end"),
        ("{1a: 1}", 1, "expected a key"),
    ] {
        let bad = parse(text).expect_err(text);
        assert!(bad.message.contains(message), "{text}: {}", bad.message);
        assert_eq!(bad.span.start, at, "{text}: {}", bad.message);
    }
}

#[test]
fn nesting_is_bounded() {
    for piece in ["[", "{a:", "[{a:"] {
        let bad = parse(&piece.repeat(100_000)).expect_err("too deep");
        assert!(bad.message.contains("nested more than"), "{}", bad.message);
    }
    assert!(parse(&format!("{}1{}", "[".repeat(60), "]".repeat(60))).is_ok());
}

#[test]
fn everything_knows_where_it_stands() {
    let text = "{ jobs: [ { name: 'web' } ] }";
    let tree = parse(text).expect("valid");
    let Json5Value::Map(entries) = &tree.value else { panic!("no map") };
    assert_eq!(&text[entries[0].span.clone()], "jobs");
    assert_eq!(&text[entries[0].node.span.clone()], "[ { name: 'web' } ]");
}
