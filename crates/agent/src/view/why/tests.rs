//! What is said is true and enough, in five lines, in each of the situations that people ask about.

use super::*;
use mainstay_config::Context;
use mainstay_core::{
    clock::Mono,
    exit::{Asked as Wanted, Exit},
    name::Name,
    node::{Input, Request, Token, Wait},
};

const FILE: &str = "m.toml";

/// A node of this configuration, driven by hand.
struct Story {
    node: Node,
    now: Now,
}

impl Story {
    fn new(text: &str) -> Story {
        let loaded = mainstay_config::parse(FILE, text, &Context::default()).expect("valid");
        let mut story = Story { node: Node::new(mainstay_import::located(loaded)), now: at(0) };
        story.say(Input::Boot);
        story
    }

    fn say(&mut self, input: Input) {
        self.node.step(self.now, input);
    }

    fn at(&mut self, seconds: u64) -> &mut Story {
        self.now = at(seconds);
        self
    }

    fn spawned(&mut self, job: &str, incarnation: u64) {
        self.say(Input::Spawned { job: name(job), incarnation, pid: 100 });
    }

    fn exited(&mut self, job: &str, incarnation: u64, code: i32) {
        let (exit, usage, asked) = (Exit::Code { code }, None, Wanted::None);
        self.say(Input::Exited { job: name(job), incarnation, exit, usage, asked });
    }

    fn ask(&mut self, request: Request) {
        self.say(Input::Request(request));
    }

    fn why(&self, job: &str) -> Vec<String> {
        let lines = why(&self.node, self.now, job).expect("a job");
        assert!(lines.len() <= 5, "{lines:#?}");
        lines
    }

    /// What follows the first line.
    fn causes(&self, job: &str) -> Vec<String> {
        self.why(job).split_off(1)
    }
}

fn at(seconds: u64) -> Now {
    Now { mono: Mono(seconds * 1_000_000_000), wall: 0 }
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

#[test]
fn the_first_line_says_where_the_job_is_written() {
    let story = Story::new("\n[jobs.web]\nexec = \"web\"\n");
    assert!(story.why("web")[0].ends_with("(m.toml:2)"), "{:?}", story.why("web"));
    assert_eq!(story.causes("web"), ["its process is being started"]);
}

#[test]
fn a_wait_names_its_line_and_the_chain_behind_it() {
    let mut story = Story::new(
        r#"[jobs.db]
exec = "db"
health = { tcp = "127.0.0.1:1" }
[jobs.migrate]
exec = "migrate"
when = { source = "db", once = "healthy", timeout = "60s" }
[jobs.web]
exec = "web"
when = { source = "migrate", once = "exitSuccess" }
"#,
    );
    story.spawned("db", 1);
    assert_eq!(
        story.at(15).causes("migrate"),
        [
            "it waits for db healthy (m.toml:6): db is RUNNING, but its check tcp has not passed yet",
            "it is given up in 45s (when.timeout)",
        ]
    );
    assert_eq!(
        story.causes("web"),
        ["it waits for migrate exitSuccess (m.toml:9): migrate itself waits for db healthy \
          (m.toml:6): db is RUNNING, but its check tcp has not passed yet"]
    );
    let token = Token::Job { job: name("migrate"), incarnation: 0, wait: Wait::When };
    story.at(60).say(Input::Timer { token });
    assert_eq!(
        story.causes("migrate"),
        [
            "it was given up after 1m0s: db healthy has not come (m.toml:6)",
            "`mainstay start migrate` tries again",
        ]
    );
    assert_eq!(
        story.causes("web"),
        [
            "it waits for migrate exitSuccess (m.toml:9), which can never come: migrate was given up \
          before it could start"
        ]
    );
}

#[test]
fn a_long_chain_is_followed_to_its_end() {
    let mut text = "[jobs.j0]\nexec = \"x\"\nhealth = { tcp = \"127.0.0.1:1\" }\n".to_owned();
    for at in 1..40 {
        let before = at - 1;
        text += &format!("[jobs.j{at}]\nexec = \"x\"\n");
        text += &format!("when = {{ source = \"j{before}\", once = \"healthy\" }}\n");
    }
    let mut story = Story::new(&text);
    story.spawned("j0", 1);
    let causes = story.causes("j39");
    let [cause] = causes.as_slice() else { panic!("{causes:#?}") };
    assert!(
        cause.starts_with("it waits for j38 healthy (m.toml:120): j38 itself waits"),
        "{cause}"
    );
    assert!(cause.contains(": and so on over 34 more jobs: "), "{cause}");
    assert!(
        cause.ends_with(": j0 is RUNNING, but its check tcp has not passed yet"),
        "what keeps them all is not told: {cause}"
    );
}

#[test]
fn what_can_never_come_is_followed_to_its_end() {
    let mut text =
        "[node]\nexit = \"never\"\n[jobs.j0]\nexec = \"x\"\nrestart = \"never\"\n".to_owned();
    for at in 1..40 {
        let before = at - 1;
        text += &format!("[jobs.j{at}]\nexec = \"x\"\n");
        text += &format!("when = {{ source = \"j{before}\", once = \"exitSuccess\" }}\n");
    }
    let mut story = Story::new(&text);
    story.spawned("j0", 1);
    story.exited("j0", 1, 3);
    let cause = story.causes("j39").join("\n");
    assert!(cause.contains("j38 can never start, it waits for j37 exitSuccess: "), "{cause}");
    assert!(cause.ends_with(": and so on: j0 has ended, exit code 3"), "{cause}");
    assert!(
        story.causes("j7").join("\n").ends_with(
            ": j1 can never start, it waits for j0 exitSuccess: j0 has ended, exit code 3"
        )
    );
}

#[test]
fn a_wait_for_cron_says_when_it_is_over() {
    let story =
        Story::new("[jobs.nightly]\nexec = \"x\"\nwhen = { cron = \"0 3 * * *\", tz = \"UTC\" }\n");
    assert_eq!(
        story.causes("nightly"),
        [
            "its next run comes in 3h0m, at 1970-01-01T03:00:00.000000000Z (cron 0 3 * * *) (m.toml:3)"
        ]
    );
}

#[test]
fn a_job_that_follows_names_its_own_line() {
    let mut story = Story::new(
        "[jobs.db]\nexec = \"db\"\nrestart = \"never\"\n[jobs.web]\nexec = \"web\"\nwhile = { source = \"db\" }\n[node]\nexit = \"never\"\n",
    );
    story.spawned("db", 1);
    story.spawned("web", 1);
    story.exited("db", 1, 0);
    story.exited("web", 1, 0);
    assert_eq!(
        story.causes("web"),
        [
            "it waits for db healthy (m.toml:4), which can never come: db has ended, exit code 0",
            "its last run ended: exit code 0",
        ]
    );
    assert_eq!(
        story.causes("db"),
        ["it has ended as expected; restart is \"never\"", "its last run ended: exit code 0"]
    );
}

#[test]
fn a_back_off_says_when_it_is_over_and_what_the_last_end_was() {
    let mut story = Story::new(
        "[jobs.web]\nexec = \"web\"\nrestart = { on = \"failure\", delay = \"20s\", limit = 1 }\n[node]\nexit = \"never\"\n",
    );
    story.spawned("web", 1);
    story.exited("web", 1, 3);
    assert_eq!(
        story.at(5).causes("web"),
        ["it is started again in 15s, by its restart policy", "its last run ended: exit code 3"]
    );
    let token = Token::Job { job: name("web"), incarnation: 1, wait: Wait::Backoff };
    story.at(20).say(Input::Timer { token });
    story.spawned("web", 2);
    story.exited("web", 2, 4);
    assert_eq!(
        story.causes("web"),
        [
            "it was given up: its restarts are used up (limit 1)",
            "its last run ended: exit code 4, restarted once",
            "`mainstay start web` tries again",
        ]
    );
}

#[test]
fn a_start_says_how_long_it_takes_and_a_stop_which_stage_it_is_at() {
    let mut story = Story::new(
        r#"[jobs.web]
exec = "web"
start_seconds = 30
stop = { exec = "drain", timeout = "10s", signal = "SIGINT" }
[jobs.bye]
exec = "bye"
when = { source = "web", each = "stopping" }
"#,
    );
    story.spawned("web", 1);
    assert_eq!(
        story.at(10).causes("web"),
        ["it counts as RUNNING once it is up for 30s (start_seconds): 20s to go"]
    );
    story.at(40).ask(Request::Stop { job: name("web") });
    assert_eq!(
        story.at(44).causes("web"),
        ["its stop waits for bye, for 6s at most; SIGINT follows"]
    );
    story.spawned("bye", 1);
    story.exited("bye", 1, 0);
    assert_eq!(story.at(45).causes("web"), ["its stop.exec runs, for 9s at most; SIGINT follows"]);
    let wait = || Token::Job { job: name("web"), incarnation: 1, wait: Wait::StopTimeout };
    story.at(54).say(Input::Timer { token: wait() });
    assert_eq!(story.at(60).causes("web"), ["SIGINT was sent to it; SIGKILL follows in 4s"]);
    story.at(64).say(Input::Timer { token: wait() });
    assert_eq!(story.causes("web"), ["SIGKILL was sent to its tree, which is not gone yet"]);
}

#[test]
fn an_unhealthy_job_says_which_check_and_what_it_said() {
    let mut story =
        Story::new("[jobs.web]\nexec = \"web\"\nhealth = { name = \"deep\", exec = \"check\" }\n");
    story.spawned("web", 1);
    let (output, passed) = ("no table\nmore".to_owned(), false);
    story.say(Input::Checked { job: name("web"), incarnation: 1, check: 0, passed, output });
    assert!(story.why("web")[0].contains("unhealthy"));
    assert_eq!(story.causes("web"), ["its check deep fails: no table"]);
}

#[test]
fn what_rests_says_who_wanted_that() {
    let mut story = Story::new(
        "[jobs.web]\nexec = \"web\"\n[jobs.log]\nexec = \"log\"\nwhile = { source = \"web\" }\n",
    );
    story.spawned("web", 1);
    story.ask(Request::Stop { job: name("web") });
    story.exited("web", 1, 0);
    assert_eq!(
        story.causes("web"),
        [
            "it was stopped on request",
            "its last run ended: exit code 0",
            "`mainstay start web` starts it",
        ]
    );
    story.exited("log", 1, 0);
    assert_eq!(
        story.causes("log")[0],
        "it waits for web healthy (m.toml:3): web was stopped on request"
    );
    story.ask(Request::Disable { job: name("web") });
    assert_eq!(
        story.causes("web"),
        [
            "it was disabled, which lasts over runs",
            "its last run ended: exit code 0",
            "`mainstay enable web` lets it be started again",
        ]
    );
}

#[test]
fn a_job_of_an_app_says_whether_its_sequence_comes() {
    let mut story = Story::new(
        r#"[node]
exit = "never"
[apps.shop]
[apps.later]
start_sequence = 0
[jobs.db]
exec = "db"
app = "shop"
restart = "never"
start_seconds = 5
place = { start_sequence = 1, required = true }
[jobs.web]
exec = "web"
app = "shop"
place = { start_sequence = 2 }
[jobs.odd]
exec = "odd"
app = "later"
"#,
    );
    assert_eq!(
        story.causes("web")[0],
        "it waits for sequence 2 of its app shop, which is at 1: db is STARTING"
    );
    assert_eq!(story.causes("odd")[0], "its app later has not been started");
    story.spawned("db", 1);
    story.exited("db", 1, 1);
    assert_eq!(
        story.causes("web"),
        [
            "the start of its app shop was aborted: db is EXITED, exit code 1 (m.toml:6)",
            "`mainstay start web` starts it",
            "its app shop has a major failure: db",
        ]
    );
}

#[test]
fn a_job_of_an_app_that_fails_again_and_again_says_what_comes_next() {
    let mut story = Story::new(
        r#"[node]
exit = "never"
[apps.shop]
on_failure = "restart-app"
[jobs.db]
exec = "db"
app = "shop"
restart = "never"
"#,
    );
    let due = || Input::Timer { token: Token::App { app: name("shop") } };
    for (seconds, incarnation) in [(0, 1), (0, 2)] {
        story.at(seconds).spawned("db", incarnation);
        story.exited("db", incarnation, 1);
    }
    assert_eq!(story.causes("db")[1], "its app shop starts again in 1s");
    for (seconds, incarnation) in [(1, 3), (3, 4), (7, 5), (15, 6)] {
        story.at(seconds).say(due());
        story.spawned("db", incarnation);
        story.exited("db", incarnation, 1);
    }
    assert_eq!(
        story.causes("db")[1],
        "its app shop rests: it was restarted 5 times in 10 minutes and failed again"
    );
}

#[test]
fn what_is_too_much_for_five_lines_leaves_the_causes() {
    let text = format!(
        "{}[jobs.web]\nexec = \"web\"\nwhen = [ {} ]\n",
        (0..4).map(|at| format!("[jobs.a{at}]\nexec = \"a\"\n")).collect::<String>(),
        (0..4)
            .map(|at| format!("{{ source = \"a{at}\", once = \"exitFailed\" }}"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    let mut story = Story::new(&text);
    story.ask(Request::Start { jobs: vec![name("web")], args: None, now: true });
    story.spawned("web", 1);
    story.ask(Request::Stop { job: name("web") });
    story.exited("web", 1, 0);
    story.ask(Request::Start { jobs: vec![name("web")], args: None, now: false });
    let lines = story.why("web");
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(lines[3], "and for 2 more: see `mainstay status web`", "{lines:#?}");
}
