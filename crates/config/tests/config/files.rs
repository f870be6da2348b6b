//! Files and directories.

use super::context;
use mainstay_config::load;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A directory of its own that goes when the test ends.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str, files: &[(&str, &[u8])]) -> Dir {
        let path =
            std::env::temp_dir().join(format!("mainstay-config-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (name, bytes) in files {
            fs::write(path.join(name), bytes).unwrap();
        }
        Dir(path)
    }

    pub(crate) fn refused(&self) -> String {
        let told = load(&self.0, &context()).expect_err("it is wrong").to_string();
        told.replace(&*self.0.to_string_lossy(), "DIR")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_files_of_a_directory_are_one_configuration_in_lexical_order() {
    let dir = Dir::new(
        "merge",
        &[
            ("20-web.toml", b"[jobs.web]\nexec = \"web\"\n[log]\nlevel = \"warn\"\n"),
            ("10-db.toml", b"[jobs.db]\nexec = \"db\"\n[log]\nforward = false\n"),
            (".hidden.toml", b"not toml at all"),
            ("README", b"not toml at all"),
        ],
    );
    let plan = load(&dir.0, &context()).unwrap().plan;
    let names: Vec<&str> = plan.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["db", "web"]);
    assert_eq!(plan.node.log_level, "warn");
    assert!(plan.jobs.iter().all(|job| !job.log.forward));
}

#[test]
fn what_two_files_both_say_is_an_error_with_both_places() {
    let dir = Dir::new(
        "twice",
        &[
            ("a.toml", b"[jobs.web]\nexec = \"web\"\n[node]\nname = \"a\"\n"),
            ("b.toml", b"[node]\nname = \"b\"\n\n[jobs.web]\nexec = \"other\"\n"),
        ],
    );
    let told = dir.refused();
    assert!(
        told.contains("node: 'name' is already set at DIR/a.toml:4:1\n --> DIR/b.toml:2:1"),
        "{told}"
    );
    for (place, label) in
        [("a.toml:4:1", "---- first set here"), ("a.toml:1:7", "--- first defined here")]
    {
        assert!(told.contains(&format!(" ::: DIR/{place}\n")) && told.contains(label), "{told}");
    }
    assert!(
        told.contains("job 'web' is already defined at DIR/a.toml:1:7\n --> DIR/b.toml:4:7"),
        "{told}"
    );
}

#[test]
fn mistakes_in_all_files_are_told_in_the_order_of_the_files() {
    let dir = Dir::new(
        "order",
        &[("b.toml", b"[jobs.b]\nexec = 1\n"), ("a.toml", b"[jobs.a]\nexce = 1\n")],
    );
    let told = dir.refused();
    let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("no {text} in {told}"));
    assert!(at("DIR/a.toml:2:1") < at("DIR/b.toml:2:8"));
}

#[test]
fn a_file_that_cannot_be_read_hides_no_mistake_in_the_others() {
    let web = b"[jobs.web]\nexce = 1\nwhen = { source = \"db\", once = \"healthy\" }\n";
    let dir = Dir::new("unread", &[("a.toml", b"[jobs.db]\nexec = \"\xff\"\n"), ("b.toml", web)]);
    let told = dir.refused();
    assert!(told.starts_with("error: byte 0xff is not UTF-8 text\n --> DIR/a.toml:2:9"), "{told}");
    assert!(told.contains("unknown key 'exce' in jobs.web\n --> DIR/b.toml:2:1"), "{told}");
    assert!(!told.contains("there is no job 'db'"), "it is in the other file: {told}");
}

#[test]
fn a_byte_that_is_no_text_is_shown_with_its_line() {
    let dir = Dir::new("utf8", &[("a.toml", b"[jobs.a]\nexec = \"caf\xe9\"\n")]);
    let told = dir.refused();
    let expected = "error: byte 0xe9 is not UTF-8 text\n --> DIR/a.toml:2:12\n  |\n2 | exec = \"caf\u{fffd}\"\n  |            ^\n  |\n  = help: save the file as UTF-8";
    assert_eq!(told, expected);
}

#[test]
fn a_file_over_8_mib_is_refused_unread() {
    let dir = Dir::new("large", &[("a.toml", &vec![b'#'; (8 << 20) + 1])]);
    assert!(dir.refused().contains("too large"));
    let told = mainstay_config::parse("x", &"#".repeat((8 << 20) + 1), &context());
    assert!(told.unwrap_err().to_string().contains("too large"));
}

#[test]
fn a_place_with_nothing_in_it_says_so() {
    let dir = Dir::new("none", &[]);
    assert!(dir.refused().contains("no *.toml file in this directory\n--> DIR"));
    let told = load(&dir.0.join("gone.toml"), &context()).unwrap_err().to_string();
    assert!(told.contains("cannot read the configuration: No such file or directory"), "{told}");
}

#[test]
fn the_first_example_loads_without_a_warning() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/first.toml");
    let loaded = load(&path, &context()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(loaded.plan.jobs.len(), 3);
    assert_eq!(loaded.warnings, []);
    assert!(loaded.plan.jobs.iter().all(|job| !job.main));
}

#[test]
fn a_secret_is_read_from_its_file_and_its_variable_is_marked() {
    let dir = Dir::new(
        "secret",
        &[
            ("token", b"s3cret\n\n"),
            (
                "a.toml",
                b"[jobs.a]\nexec = \"a\"\nenv = { TOKEN = \"Bearer ${file:token}\", PLAIN = \"x\" }\n\
                  health = { http = { url = \"http://h/\", headers = { a = \"${file:a}\" } } }\n",
            ),
            ("a", b"one\r\n"),
        ],
    );
    let job = load(&dir.0, &context()).unwrap().plan.jobs.remove(0);
    assert_eq!(job.env[0], ("TOKEN".to_owned(), "Bearer s3cret\n".to_owned()));
    assert_eq!(job.secrets, ["TOKEN"]);
    let mainstay_core::plan::Probe::Http(http) = &job.checks[0].probe else { panic!() };
    assert_eq!(http.headers, [("a".to_owned(), "one".to_owned())]);
}

#[test]
fn no_diagnostic_shows_what_a_secret_holds() {
    let dir = Dir::new(
        "hidden",
        &[
            ("token", b"s3cret\x01\0"),
            ("bad.env", b"A=1\ns3cret\nB='s3cret\n"),
            (
                "a.toml",
                b"[jobs.a]\nexec = \"a ${file:token}\"\nenv = { TOKEN = \"${file:token}\" }\n\
                  env_file = \"bad.env\"\n\
                  health = { http = { url = \"http://h/\", headers = { a = \"${file:token}\" } } }\n\
                  cwd = \"${file:token}\"\nnice = \"${file:token}\"\nuser = \"${file:/dev/zero}\"\n",
            ),
        ],
    );
    let told = dir.refused();
    assert!(!told.contains("s3cret"), "{told}");
    for part in ["bad.env:2: there is no '='", "bad.env:3: a single quote is not closed", "NUL"] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn variables_come_from_files_in_order_and_env_goes_over_them() {
    let dir = Dir::new(
        "envfile",
        &[
            ("one.env", b"A=1\nB=1\nC=1\n"),
            ("two.env", b"export B=2\nC='2'\n"),
            (
                "a.toml",
                b"[jobs.a]\nexec = \"a\"\nenv_file = [\"one.env\", \"two.env\"]\nenv = { C = 3, D = 3 }\n",
            ),
        ],
    );
    let job = load(&dir.0, &context()).unwrap().plan.jobs.remove(0);
    let env: Vec<(&str, &str)> = job.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(env, [("A", "1"), ("B", "2"), ("C", "3"), ("D", "3")]);
}

#[test]
fn a_token_that_everybody_can_read_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let text =
        b"[api]\nlisten = \"127.0.0.1:7070\"\ntoken_file = \"token\"\n[jobs.x]\nexec = \"x\"\n";
    let dir = Dir::new("token", &[("token", b"0123456789abcdef"), ("mainstay.toml", text)]);
    let mode = |mode| {
        fs::set_permissions(dir.0.join("token"), fs::Permissions::from_mode(mode)).unwrap();
        load(&dir.0.join("mainstay.toml"), &context())
    };
    let error = mode(0o644).expect_err("it is open").render(false);
    assert!(error.contains("accessible to everybody") && error.contains("chmod"), "{error}");
    let loaded = mode(0o640).expect("it is not");
    assert_eq!(loaded.plan.api.token_file, Some(dir.0.join("token")));
}

#[test]
fn what_is_no_regular_file_is_refused_instead_of_waited_for() {
    let dir = Dir::new("pipe", &[]);
    let pipe = dir.0.join("mainstay.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [pipe.as_path(), dir.0.as_path(), Path::new("/dev/zero")] {
        let told = load(path, &context()).expect_err("it cannot be read").to_string();
        assert!(told.contains("not a regular file"), "{told}");
    }
}
