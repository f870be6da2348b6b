//! Nodes of the version before, for which all projects of a user were one.

use super::{User, text};
use mainstay_tests::until;
use std::fs;

const TWO: &str = "[node]\nexit = \"never\"\n[jobs.web]\nexec = \"sleep 1000\"\n[jobs.db]\nexec = \"sleep 1000\"\n";

#[test]
fn a_node_in_the_old_place_is_found_and_its_disabled_jobs_are_taken_along() {
    let user = User::new();
    let (project, other) = (user.project("shop", TWO), user.project("other", TWO));
    let run_dir = user.path("runtime/mainstay").display().to_string();
    let state_dir = user.path("home/.local/state/mainstay").display().to_string();
    let (keeper, _) = user.start(&project, &["--run-dir", &run_dir, "--state-dir", &state_dir]);
    // From its project, and from no other.
    assert_eq!(user.json(&project, &["status", "--json"])["keeper"]["pid"], keeper);
    assert_eq!(user.ask(&other, &["status"]).status.code(), Some(4));
    user.must(&project, &["disable", "web"]);
    let refused = user.ask(&project, &["run"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let told = text(&refused.stderr);
    assert!(told.contains(&format!("(pid {keeper}) runs this configuration")), "{told}");
    // Another project begins without what concerns this one.
    user.start(&other, &[]);
    until("web runs", || user.job(&other, "web").filter(|job| job["state"] == "RUNNING"));

    user.must(&project, &["shutdown"]);
    user.wait(keeper);
    let (keeper, told) = user.start(&project, &[]);
    until("db runs", || user.job(&project, "db").filter(|job| job["state"] == "RUNNING"));
    assert_eq!(user.job(&project, "web").expect("a job")["desired"], "disabled");
    until("it is told", || {
        let told = fs::read_to_string(&told).expect("written");
        told.contains("disabled since an earlier run: web;").then_some(())
    });
    // Once: what is changed in the new place counts from then on.
    user.must(&project, &["enable", "web"]);
    user.must(&project, &["shutdown"]);
    user.wait(keeper);
    user.start(&project, &[]);
    until("web runs", || user.job(&project, "web").filter(|job| job["state"] == "RUNNING"));
}

/// Whoever could write where the run directories are could put another in the place of ours.
#[test]
fn a_squatter_where_run_directories_are_kept_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let user = User::new();
    let project = user.project("shop", TWO);
    let squat = user.own_dir("runtime/mainstay");
    chown(&squat, Some(12_345), Some(12_345)).expect("root may");
    fs::set_permissions(&squat, fs::Permissions::from_mode(0o777)).expect("root may");
    let refused = user.ask(&project, &["run"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let told = text(&refused.stderr);
    assert!(told.contains("belongs to somebody else (user 12345)"), "{told}");
}
