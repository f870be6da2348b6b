//! What the pages tell a reader to type.

use super::{
    machine::{self, Kind, Outcome, Step},
    page::{self, Block, Comment, Page},
};
use mainstay_tests::binary;
use std::{collections::BTreeMap, fs, path::Path, thread};

/// What a block is in; another word is a mistake, or something to do here.
const LANGUAGES: [&str; 9] = ["", "dockerfile", "ini", "json", "sh", "text", "toml", "xml", "yaml"];

/// Between the commands of a session, with the code that the last one ended with.
const MARK: char = '\u{1e}';

#[test]
fn every_command_of_the_pages_does_what_they_say() {
    let pages = page::all();
    let wrong: Vec<String> = thread::scope(|scope| {
        let tried: Vec<_> = pages.iter().map(|page| scope.spawn(|| try_page(page))).collect();
        tried.into_iter().flat_map(|it| it.join().expect("a page is tried")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_command_in_the_sentences_of_the_pages_is_one() {
    let mut helps = BTreeMap::new();
    let mut wrong = Vec::new();
    for page in page::all() {
        for (line, code) in page.code() {
            if let Some(why) = is_no_command(code, &mut helps) {
                wrong.push(format!("{}:{line}: `{code}`: {why}", page.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_page_shows_and_what_does_not_come_is_found() {
    let text = "```sh\nfalse\n```\n\n```text\n$ echo one; echo 2\none\n17\n$ echo three\ntwo\n$ sh -c 'exit 4'\n$ echo $?\n0x\n```\n\n\
        ```toml\n[jobs.web]\nexce = \"x\"\n```\n\n<!-- is: rustfmt.toml -->\n```ini\nnothing\n```\n\n\
        <!-- not run: it fails -->\n```sh\nfalse\n```\n";
    let wrong = try_page(&Page::parse(Path::new("planted.md"), text));
    let lines: Vec<&str> = wrong.iter().filter_map(|it| it.lines().next()).collect();
    assert_eq!(
        lines,
        [
            "planted.md:22: this is not rustfmt.toml",
            "planted.md:1: this ends with 1",
            "planted.md:5: 'echo three' does not print 'two'",
            "planted.md:5: 'echo $?' does not print '0x'",
            "planted.md:16: this ends with 78",
        ]
    );
    assert!(is_no_command("mainstay nope", &mut BTreeMap::new()).is_some());
    assert!(is_no_command("mainstay status --nope", &mut BTreeMap::new()).is_some());
}

/// Everything about a page that is not so.
fn try_page(page: &Page) -> Vec<String> {
    let at = |line: usize| format!("{}:{line}", page.name());
    let mut wrong = Vec::new();
    for block in &page.blocks {
        if !LANGUAGES.contains(&block.language.as_str()) {
            wrong.push(format!("{}: nobody knows what '{}' is", at(block.line), block.language));
        }
        for comment in &block.comments {
            if let Comment::Is(path) = comment
                && !is_file(&block.text, path)
            {
                wrong.push(format!("{}: this is not {path}", at(block.line)));
            }
        }
    }
    let steps: Vec<Step> = page.blocks.iter().flat_map(steps).collect();
    if steps.is_empty() {
        return wrong;
    }
    for (step, outcome) in steps.iter().zip(machine::run(&steps)) {
        wrong.extend(
            judge(step, page, &outcome).into_iter().map(|it| format!("{}: {it}", at(step.line))),
        );
    }
    wrong
}

/// Whether a block is a file of the repository, but for its comments.
fn is_file(text: &str, path: &str) -> bool {
    let meant = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned);
        lines.skip_while(|line| line.is_empty()).collect()
    };
    fs::read_to_string(page::repository().join(path)).is_ok_and(|file| meant(&file) == meant(text))
}

/// What has to be done for a block.
fn steps(block: &Block) -> Vec<Step> {
    let step = |kind, text: String| Step { line: block.line, kind, text };
    let mut steps = Vec::new();
    let (mut name, mut text) = (None, block.text.clone());
    for comment in &block.comments {
        match comment {
            Comment::First(commands) => steps.push(step(Kind::First, commands.clone())),
            Comment::File(file) => name = Some(file.clone()),
            Comment::Beside(jobs) => {
                text.extend(jobs.iter().map(|job| format!("\n[jobs.{job}]\nexec = \"true\"\n")));
            }
            Comment::NotRun | Comment::Is(_) | Comment::PrintedBy(_) => {}
        }
    }
    if name.is_none() && block.language == "toml" && block.is_run() {
        name = Some(format!("line-{}/mainstay.toml", block.line));
    }
    if let Some(name) = &name {
        steps.push(step(Kind::File(name.clone()), text));
    }
    if !block.is_run() {
        return steps;
    }
    match (block.language.as_str(), name) {
        ("sh", _) => steps.push(step(Kind::Alone, block.text.clone())),
        ("toml", Some(name)) => {
            steps.push(step(Kind::Alone, format!("mainstay check -c {name}")));
        }
        _ => {}
    }
    let session = block.session();
    if !session.is_empty() {
        let mark = format!("code=$?; printf '\\n{MARK}'; (exit $code)\n");
        let commands = session.iter().map(|(command, _)| format!("{command}\n{mark}"));
        steps.push(step(Kind::Session, commands.collect()));
    }
    steps
}

fn judge(step: &Step, page: &Page, outcome: &Outcome) -> Vec<String> {
    let code = outcome.code.map_or("nothing: it has no end".to_owned(), |code| code.to_string());
    if step.kind != Kind::Session {
        return match outcome.code {
            Some(0) => Vec::new(),
            _ => vec![format!("this ends with {code}\n{}{}", step.text, outcome.output)],
        };
    }
    let block = page.blocks.iter().find(|block| block.line == step.line).expect("its block");
    let mut printed = outcome.output.split(MARK);
    let mut wrong = Vec::new();
    for (command, shown) in block.session() {
        let printed = printed.next().unwrap_or_default();
        let mut rest = printed.lines().map(without_numbers);
        for line in shown.iter().map(|line| without_numbers(line)) {
            if line.trim() != "…" && !rest.any(|it| matches(&line, &it)) {
                let line =
                    shown.iter().find(|it| without_numbers(it) == line).expect("it is shown");
                wrong.push(format!("'{command}' does not print '{line}'\n{printed}"));
                break;
            }
        }
    }
    wrong
}

/// Numbers, times and identities differ from run to run, and with them the widths of columns.
fn without_numbers(line: &str) -> String {
    let is_identity =
        |word: &&str| word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = line.split_whitespace().map(|word| {
        let mut text = word.to_owned();
        for identity in word.split(|it: char| !it.is_ascii_hexdigit()).filter(is_identity) {
            text = text.replace(identity, "0");
        }
        let mut shown = String::new();
        for letter in text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }) {
            if !(letter == '0' && shown.ends_with('0')) {
                shown.push(letter);
            }
        }
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a line is as a page shows it, where `…` stands for anything.
fn matches(shown: &str, line: &str) -> bool {
    let mut pieces = shown.split('…').map(str::trim);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = Some(piece);
    }
    rest.is_empty() || last.is_some_and(|piece| piece.is_empty() || line.ends_with(piece))
}

/// Why this is no command that could be typed; nothing if it is not meant as one.
fn is_no_command(code: &str, helps: &mut BTreeMap<String, Option<String>>) -> Option<String> {
    let mut words = code.split(" -- ").next()?.split_whitespace().skip_while(|it| it.contains('='));
    if words.next() != Some("mainstay") {
        return None;
    }
    // What is no name of a command stands for one.
    let command = words.next().filter(|it| it.bytes().all(|byte| byte.is_ascii_lowercase()))?;
    let help = helps.entry(command.to_owned()).or_insert_with(|| help_of(command));
    let Some(help) = help else { return Some("there is no such command".to_owned()) };
    let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let mut options = options.map(|it| it.split(['=', '[']).next().unwrap_or(it));
    let unknown = options.find(|option| {
        !help.split_whitespace().any(|it| it.trim_matches([',', '[', ']']) == *option)
    })?;
    Some(format!("it does not know {unknown}"))
}

fn help_of(command: &str) -> Option<String> {
    let output = mainstay_tests::Command::new(binary()).args([command, "--help"]).output();
    let output = output.expect("the binary can be started");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
