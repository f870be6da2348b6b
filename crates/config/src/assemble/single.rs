//! A plan for one command without a file: `mainstay run -- COMMAND…`.

use crate::{
    Context,
    keys::{node, restart},
};
use mainstay_core::{
    name::{Name, NameError},
    plan::{ExitRule, JobPlan, NodePlan, Plan, Restart, RestartOn},
};
use std::path::Path;

/// One main job named after the program; it is not restarted unless `restart` says so.
pub fn single(command: &[String], restart: Option<&str>, ctx: &Context) -> Result<Plan, String> {
    if command.first().is_none_or(String::is_empty) {
        return Err("no command given: write it after --".to_owned());
    }
    if let Some(word) = command.iter().find(|word| word.contains('\0')) {
        return Err(format!("{word:?} holds a NUL character, which no program can be given"));
    }
    let on = match restart {
        None => RestartOn::Never,
        Some(word) => restart::word(word).ok_or_else(|| {
            format!("'{word}' is no restart rule: use {}", restart::WORDS.join(", "))
        })?,
    };
    let name = name_after(&command[0]).map_err(|error| error.to_string())?;
    let mut job = JobPlan::new(name, command.to_vec());
    job.main = true;
    job.restart = Restart::on(on);
    let node = NodePlan { exit: ExitRule::Main, ..node::default(ctx) };
    Ok(Plan::new(node, vec![job]))
}

/// The program's base name, made a valid name; "job" where nothing of it can be kept.
fn name_after(program: &str) -> Result<Name, NameError> {
    let base = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = base
        .chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(63)
        .collect();
    Name::new(&name).or_else(|_| Name::new("job"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str], restart: Option<&str>) -> Result<Plan, String> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let ctx = Context { host_name: "box".into(), ..Context::default() };
        single(&command, restart, &ctx)
    }

    #[test]
    fn a_command_becomes_one_main_job_that_is_not_restarted() {
        let plan = run(&["/usr/bin/sleep", "5"], None).expect("a plan");
        assert_eq!((plan.node.name.as_str(), plan.node.exit), ("box", ExitRule::Main));
        let job = plan.job("sleep").expect("named after the program");
        assert_eq!(job.exec, ["/usr/bin/sleep", "5"]);
        assert!(job.main);
        assert_eq!(job.restart.on, RestartOn::Never);
    }

    #[test]
    fn a_restart_rule_may_be_given() {
        let plan = run(&["true"], Some("always")).expect("a plan");
        assert_eq!(plan.jobs[0].restart.on, RestartOn::Any);
        let error = run(&["true"], Some("sometimes")).expect_err("no such rule");
        assert_eq!(error, "'sometimes' is no restart rule: use never, on-failure, always");
    }

    #[test]
    fn any_program_gives_a_valid_name() {
        for (program, name) in [
            ("./my.app", "my-app"),
            ("..", "job"),
            ("/", "job"),
            ("éa", "a"),
            ("watch", "job"),
            ("[", "job"),
            ("a/b/", "b"),
        ] {
            assert_eq!(
                name_after(program).map(|it| it.to_string()),
                Ok(name.to_owned()),
                "{program}"
            );
        }
        assert_eq!(name_after(&"x".repeat(500)).map(|n| n.as_str().len()), Ok(63));
    }

    #[test]
    fn nothing_to_run_is_an_error() {
        assert!(run(&[], None).is_err());
        assert!(run(&[""], None).is_err());
        assert!(run(&["a\0b"], None).is_err());
    }
}
