//! A run that ends because nothing can progress any more says so, and no other run does.

use mainstay_tests::Setup;

const WORDS: &str = "nothing can progress any more";

#[test]
fn a_run_that_is_stuck_names_the_jobs_that_never_ran() {
    let config = r#"
        [jobs.first]
        exec = "true"
        [jobs.second]
        exec = "true"
        when = { source = "first", once = "exitFailed" }
    "#;
    let mut node = Setup::config(config).launch();
    assert_eq!(node.wait().code(), Some(70));
    let told = node.stderr();
    assert!(told.contains("second never ran: it waited for first exitFailed"), "{told}");
    assert!(told.contains(WORDS), "{told}");
}

#[test]
fn a_main_job_that_ends_with_the_same_code_is_not_called_stuck() {
    let mut node = Setup::command(&["sh", "-c", "exit 70"]).launch();
    assert_eq!(node.wait().code(), Some(70));
    assert!(!node.stderr().contains(WORDS), "{}", node.stderr());
}
