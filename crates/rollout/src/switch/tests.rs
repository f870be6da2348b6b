//! Sets of files: staged, switched, put back, and cut off anywhere.

mod power_cut;

use super::*;
use crate::{crash, profile::Document, test_dir::TestDir};
use mainstay_core::{
    plan::{ProfileFormat, ProfilePlan, ProfileSource, TemplatePlan},
    rollout::{Digest, SecretValue, StageTemplate},
    text::Secret,
};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A store, templates `a`, `b` and the directory `d`, all made of the profile `app`.
struct Place {
    dir: TestDir,
    switch: Switch,
    templates: Vec<TemplatePlan>,
    /// The file of the profile `app`, and the configuration.
    profile: PathBuf,
    configuration: PathBuf,
    expected: BTreeMap<Name, Digest>,
    force: bool,
}

impl Place {
    fn new(test: &str) -> Place {
        Place::in_dir(TestDir::new(test))
    }

    fn in_dir(dir: TestDir) -> Place {
        dir.write("src/a.j2", "a {{ app.word }}\n");
        dir.write("src/b.j2", "b {{ app.word }} {{ secrets.key }}\n");
        dir.write("src/d/x.conf.j2", "x {{ app.word }}\n");
        dir.write("src/d/sub/y.conf", "y {{ app.word }}\n");
        dir.write("src/d/_part", "included");
        fs::create_dir_all(dir.path().join("etc")).expect("a directory");
        Place::found_in(dir)
    }

    /// What is there already.
    fn found_in(dir: TestDir) -> Place {
        fs::create_dir_all(dir.path().join("state")).expect("a directory");
        let store = Store::open(&dir.path().join("state")).expect("a store");
        let template = |it: &str, src: &str, dst: &str| TemplatePlan {
            name: name(it),
            src: dir.path().join("src").join(src),
            dst: dir.path().join("etc").join(dst),
            profiles: vec![name("app")],
            owner: None,
            mode: None,
            check: None,
            source: None,
            check_timeout: Duration::from_secs(1),
        };
        let templates = vec![
            template("a", "a.j2", "a.conf"),
            template("b", "b.j2", "b.conf"),
            template("d", "d", "d"),
        ];
        let switch = Switch::new(store, Renderer::Here, vec![dir.path().join("run/jobs")]);
        let (profile, configuration) =
            (dir.path().join("app.json"), dir.path().join("mainstay.toml"));
        let expected = BTreeMap::new();
        Place { dir, switch, templates, profile, configuration, expected, force: false }
    }

    fn set(&self, word: &str) -> StageSet {
        let bytes = format!("{{\"word\": \"{word}\"}}").into_bytes();
        let document = Document { format: ProfileFormat::Json, bytes, label: None };
        let value = Secret::new(format!("hush-{word}"));
        let secret = SecretValue { value, content_type: None, version_id: None };
        let (version, content) =
            document.with_secrets(BTreeMap::from([("key".to_owned(), secret)]));
        let store = &self.switch.store;
        store.store_content(&name("app"), &version, &content).expect("stored");
        let wanted = |template: &TemplatePlan| StageTemplate {
            template: template.name.clone(),
            expected: self.expected.get(&template.name).copied(),
        };
        StageSet {
            templates: self.templates.iter().map(wanted).collect(),
            profiles: BTreeMap::from([(name("app"), version)]),
            force: self.force,
            open: [].into(),
        }
    }

    fn stage(&self, word: &str) -> Result<StagedSet, StageFailure> {
        self.stage_set(&self.set(word))
    }

    fn stage_set(&self, set: &StageSet) -> Result<StagedSet, StageFailure> {
        self.switch.stage(set, &self.plan(), &json!({}))
    }

    fn plan(&self) -> RolloutPlan {
        let source = ProfileSource::File { path: self.profile.clone() };
        RolloutPlan {
            refresh_interval: Duration::from_secs(30),
            failure_timeout: Duration::from_secs(900),
            on_failure: None,
            exit_on_failure: false,
            signal_files: None,
            wave: None,
            cloudwatch: None,
            profiles: vec![ProfilePlan { name: name("app"), source, format: None }],
            templates: self.templates.clone(),
            services: Vec::new(),
            configuration: vec![self.configuration.clone()],
        }
    }

    /// A whole update that goes well.
    fn apply(&mut self, word: &str) {
        let staged = self.stage(word).expect("staged").changed;
        self.switch.switch(&staged).expect("switched");
        self.expected.extend(staged.iter().map(|file| (file.template.clone(), file.new)));
        self.switch.retain(&BTreeMap::new(), &[]).expect("tidy");
    }

    /// All that a reader finds.
    fn seen(&self) -> Vec<Option<String>> {
        let files = ["etc/a.conf", "etc/b.conf", "etc/d/x.conf", "etc/d/sub/y.conf"];
        files.iter().map(|file| self.dir.read(file)).collect()
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join("etc")).expect("there");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("there").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn all(word: &str) -> Vec<Option<String>> {
    let texts = [
        format!("a {word}\n"),
        format!("b {word} hush-{word}\n"),
        format!("x {word}\n"),
        format!("y {word}\n"),
    ];
    texts.map(Some).to_vec()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).expect("there").permissions().mode() & 0o7777
}

#[test]
fn a_secret_is_for_the_owner_of_a_file_alone_unless_the_template_says_otherwise() {
    let mut place = Place::new("private");
    let there = place.dir.path().join("etc/b.conf");
    fs::write(&there, "before").expect("written");
    fs::set_permissions(&there, fs::Permissions::from_mode(0o664)).expect("ours");
    place.apply("one");
    assert_eq!(mode(&there), 0o600);
    place.templates[1].mode = Some(0o640);
    place.apply("two");
    assert_eq!(mode(&there), 0o640);
}

#[test]
fn a_set_is_staged_unseen_switched_and_put_back() {
    let mut place = Place::new("set");
    let etc = place.dir.path().join("etc");
    let staged = place.stage("one").expect("staged").changed;
    assert_eq!(place.seen(), [None, None, None, None], "nothing is seen");
    assert_eq!(mode(&staged[1].staged), 0o600);
    assert!(staged.iter().all(|file| file.staged.parent() == file.destination.parent()));
    place.switch.switch(&staged).expect("switched");
    assert_eq!(place.seen(), all("one"));
    assert_eq!((mode(etc.join("a.conf")), mode(etc.join("b.conf"))), (0o644, 0o600));
    assert!(fs::read_link(etc.join("d")).is_ok(), "a directory is a link");

    assert_eq!(place.switch.restore(&staged), RestoreOutcome::default());
    assert_eq!(place.seen(), [None, None, None, None], "what was there before was nothing");

    place.apply("one");
    assert_eq!(place.stage("one").expect("staged").changed, []);
    assert_eq!(place.stage("one").expect("staged").unchanged, place.expected);
    let two = place.stage("two").expect("staged").changed;
    place.switch.switch(&two).expect("switched");
    assert_eq!(place.seen(), all("two"));
    place.switch.switch(&two).expect("said again");
    assert_eq!(place.switch.restore(&two), RestoreOutcome::default());
    assert_eq!(place.seen(), all("one"));
    assert_eq!(place.switch.restore(&two), RestoreOutcome::default(), "said again");
    assert_eq!(place.seen(), all("one"));
    place.switch.retain(&BTreeMap::new(), &[]).expect("tidy");
    let left = place.entries();
    assert_eq!(left.len(), 4, "{left:?}: two files, a link and its directory");
    place.apply("three");
    assert_eq!(place.entries().len(), 4);
    assert_eq!(fs::read_dir(place.switch.store.path().join("old")).expect("there").count(), 0);
}

#[test]
fn what_was_there_comes_back_with_its_owner_and_mode_and_as_a_link() {
    let place = Place::new("before");
    let etc = place.dir.path().join("etc");
    let elsewhere = place.dir.write("elsewhere", "theirs");
    symlink(&elsewhere, etc.join("b.conf")).expect("a link");
    place.dir.write("etc/a.conf", "before\n");
    fs::set_permissions(etc.join("a.conf"), fs::Permissions::from_mode(0o640)).expect("ours");
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        std::os::unix::fs::chown(etc.join("a.conf"), Some(12), Some(13)).expect("root");
    }
    let staged = place.stage("one").expect("staged").changed;
    place.switch.switch(&staged).expect("switched");
    assert_eq!(place.seen(), all("one"));
    assert_eq!(mode(etc.join("a.conf")), 0o640, "as the file that was there");
    let owner = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.gid())).expect("there");
    assert!(!as_root || owner(&etc.join("a.conf")) == (12, 13));
    assert_eq!(fs::read(&elsewhere).expect("there"), b"theirs", "nothing goes through a link");
    assert_eq!(place.switch.restore(&staged), RestoreOutcome::default());
    assert_eq!(place.dir.read("etc/a.conf").as_deref(), Some("before\n"));
    assert_eq!(mode(etc.join("a.conf")), 0o640);
    assert!(!as_root || owner(&etc.join("a.conf")) == (12, 13));
    assert_eq!(fs::read_link(etc.join("b.conf")).expect("a link"), elsewhere);
}

#[test]
fn owner_and_mode_are_as_the_template_says_and_their_change_is_a_change() {
    let mut place = Place::new("mode");
    place.apply("one");
    let etc = place.dir.path().join("etc");
    place.templates[0].mode = Some(0o600);
    let staged = place.stage("one").expect("staged").changed;
    assert_eq!(staged.len(), 1);
    place.switch.switch(&staged).expect("switched");
    assert_eq!(mode(etc.join("a.conf")), 0o600);
    assert_eq!(place.switch.restore(&staged), RestoreOutcome::default());
    assert_eq!(mode(etc.join("a.conf")), 0o644);
    place.templates[0].owner = Some("no-such-user".to_owned());
    let told = place.stage("one").expect_err("refused");
    assert!(format!("{told:?}").contains("there is no user 'no-such-user'"), "{told:?}");
    if rustix::process::geteuid().is_root() {
        place.templates[0].owner = Some("12:13".to_owned());
        let staged = place.stage("two").expect("staged").changed;
        place.switch.switch(&staged).expect("switched");
        let owner = fs::metadata(etc.join("a.conf")).expect("there");
        assert_eq!((owner.uid(), owner.gid()), (12, 13));
    }
}

#[test]
fn an_edit_of_somebody_else_is_told_with_its_difference_and_not_overwritten() {
    let mut place = Place::new("edit");
    place.apply("one");
    place.dir.write("etc/b.conf", "b one hush-one\nby hand\n");
    let Err(StageFailure::Edited { templates, trouble }) = place.stage("two") else {
        panic!("it was edited");
    };
    assert_eq!(templates, [name("b")]);
    assert!(trouble.0.contains("-by hand"), "{trouble}");
    assert!(!trouble.0.contains("hush-two"), "{trouble}");
    assert!(place.dir.read("etc/b.conf").expect("there").contains("by hand"));
    assert_eq!(place.entries().len(), 4, "nothing is left behind: {:?}", place.entries());
    place.force = true;
    place.apply("two");
    assert_eq!(place.seen(), all("two"));
    place.force = false;
    fs::remove_file(place.dir.path().join("etc/a.conf")).expect("removed");
    place.apply("three");
    assert_eq!(place.seen(), all("three"), "one that is gone is made again");
    place.dir.write("etc/d/sub/y.conf", "by hand");
    assert!(matches!(place.stage("four"), Err(StageFailure::Edited { .. })), "in a directory");
    place.force = true;
    let staged = place.stage("three").expect("staged").changed;
    let edited = place.dir.read("etc/d/sub/y.conf");
    assert_eq!(edited.as_deref(), Some("by hand"), "not touched before the switch");
    place.switch.switch(&staged).expect("switched");
    assert_eq!(place.seen(), all("three"));
}

#[test]
fn on_the_way_back_an_edit_is_set_aside_and_told() {
    let mut place = Place::new("aside");
    place.apply("one");
    let staged = place.stage("two").expect("staged").changed;
    place.switch.switch(&staged).expect("switched");
    place.dir.write("etc/a.conf", "by hand");
    let outcome = place.switch.restore(&staged);
    let etc = place.dir.path().join("etc");
    let aside = etc.join("a.conf.edited-1");
    assert_eq!(outcome.set_aside, [(etc.join("a.conf"), aside.clone())]);
    assert_eq!(fs::read(aside).expect("there"), b"by hand");
    assert_eq!(place.seen(), all("one"));
}

#[test]
fn an_edit_between_staging_and_the_switch_fails_the_switch() {
    let mut place = Place::new("between");
    place.apply("one");
    let staged = place.stage("two").expect("staged").changed;
    place.dir.write("etc/a.conf", "by hand");
    assert!(place.switch.switch(&staged).is_err());
    assert_eq!(place.dir.read("etc/a.conf").as_deref(), Some("by hand"));
}

#[test]
fn a_disk_that_cannot_take_it_is_found_before_anything_is_switched() {
    let mut place = Place::new("disk");
    place.apply("one");
    let disk = |place: &Place| match place.stage("two") {
        Err(StageFailure::Disk(trouble)) => trouble.0,
        other => panic!("{other:?}"),
    };
    let was = place.templates[1].dst.clone();
    place.templates[1].dst = place.dir.path().join("nowhere/b.conf");
    assert!(disk(&place).contains("template 'b'"));
    place.templates[1].dst = PathBuf::from("/proc/b.conf");
    assert!(disk(&place).contains("/proc/b.conf"), "a disk that takes no file");
    place.dir.write("etc/full/x", "");
    place.templates[1].dst = place.dir.path().join("etc/full");
    assert!(disk(&place).contains("it is a directory"));
    place.templates[1].dst = was;
    fs::remove_dir_all(place.dir.path().join("etc/full")).expect("removed");
    assert_eq!(place.seen(), all("one"));
    assert_eq!(place.entries().len(), 4, "{:?}", place.entries());
}

#[test]
fn one_place_under_two_paths_is_told_before_anything_is_staged() {
    let mut place = Place::new("places");
    place.apply("one");
    let root = place.dir.path().to_owned();
    symlink(root.join("etc"), root.join("link")).expect("a link");
    symlink(root.join("src"), root.join("sources")).expect("a link");
    let told = |place: &Place| match place.stage("two") {
        Err(StageFailure::Disk(trouble)) => trouble.0,
        other => panic!("{other:?}"),
    };
    place.templates[1].dst = root.join("link/a.conf");
    let same = told(&place);
    assert!(same.contains("template 'b'") && same.contains("template 'a' makes"), "{same}");
    let of_b =
        StageSet { templates: vec![place.set("two").templates.remove(1)], ..place.set("two") };
    assert!(place.stage_set(&of_b).is_err(), "also of a set that the other one is not in");
    assert!(place.switch.preview(&of_b, &BTreeMap::new(), &place.plan(), &json!({})).is_err());
    place.templates[1].dst = root.join("sources/a.j2");
    let source = told(&place);
    assert!(source.contains("template 'a' is made of"), "{source}");
    assert_eq!(place.seen(), all("one"));
    assert_eq!(place.entries().len(), 4, "{:?}", place.entries());
}

#[test]
fn what_a_rollout_needs_is_nobodys_destination_whatever_links_lead_there() {
    let mut place = Place::new("needed");
    place.apply("one");
    let root = place.dir.path().to_owned();
    place.dir.write("real/app.json", "{}");
    place.dir.write("mainstay.toml", "");
    symlink(&root, root.join("link")).expect("a link");
    symlink("real/app.json", root.join("app.json")).expect("a link");
    fs::create_dir_all(root.join("run/jobs")).expect("a directory");
    let told = |place: &Place| match place.stage("two") {
        Err(StageFailure::Disk(trouble)) => trouble.0,
        other => panic!("{other:?}"),
    };
    for (dst, why) in [
        ("link/app.json", "a file of profile 'app'"),
        ("real/app.json", "a file of profile 'app'"),
        ("link/real", "a file of profile 'app'"),
        ("link/mainstay.toml", "the configuration"),
        ("state/rollout/kept", "the node's own"),
        ("link/state/other", "the node's own"),
        ("link/state", "the node's own"),
        ("link/src", "what template"),
        ("run/jobs", "the node's own"),
        ("link/run/jobs/web", "the node's own"),
    ] {
        place.templates[1].dst = root.join(dst);
        let told = told(&place);
        assert!(told.contains(why) && told.contains("template 'b'"), "{dst}: {told}");
    }
    assert_eq!(place.seen(), all("one"));
}

#[test]
fn no_link_on_the_way_to_what_a_rollout_needs_is_a_destination() {
    let mut place = Place::new("on-the-way");
    place.apply("one");
    let root = place.dir.path().to_owned();
    place.dir.write("data-1/app.json", "{}");
    symlink("data-1", root.join("data")).expect("a link");
    symlink("data/app.json", root.join("middle.json")).expect("a link");
    symlink("middle.json", root.join("app.json")).expect("a link");
    for dst in ["app.json", "middle.json", "data", "data-1", "data/app.json"] {
        place.templates[1].dst = root.join(dst);
        let told = match place.stage("two") {
            Err(StageFailure::Disk(trouble)) => trouble.0,
            other => panic!("{dst}: {other:?}"),
        };
        assert!(told.contains("a file of profile 'app'"), "{dst}: {told}");
    }
    assert_eq!(place.seen(), all("one"));
}

#[test]
fn nothing_is_put_into_the_directory_that_another_template_makes() {
    let mut place = Place::new("into-another");
    place.apply("one");
    let root = place.dir.path().to_owned();
    let tree = place.templates.iter().find(|it| it.src.is_dir()).expect("one makes a directory");
    symlink(&tree.dst, root.join("link")).expect("a link");
    place.templates[1].dst = root.join("link/more");
    match place.stage("two") {
        Err(StageFailure::Disk(trouble)) => {
            assert!(trouble.0.contains("lies in") && trouble.0.contains("makes"), "{trouble:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(place.seen(), all("one"));
}

#[test]
fn an_edit_that_came_before_the_switch_is_still_there_after_the_way_back() {
    let mut place = Place::new("edited-meanwhile");
    place.apply("one");
    let staged = place.stage("two").expect("staged");
    let last = &staged.changed[1];
    fs::write(&last.destination, "an edit").expect("written");
    let switched = place.switch.switch(&staged.changed).expect_err("edited");
    assert!(switched.0.contains("somebody else"), "{switched:?}");
    let back = place.switch.restore(&staged.changed);
    assert_eq!((back.set_aside, back.failed), (Vec::new(), Vec::new()));
    assert_eq!(fs::read(&last.destination).expect("there"), b"an edit");
    fs::write(&staged.changed[0].destination, "another edit").expect("written");
    let back = place.switch.restore(&staged.changed[..1]);
    assert_eq!(back.set_aside.len(), 1, "what was put in place is taken back");
}

#[test]
fn a_content_that_is_torn_or_gone_is_told_as_such_and_not_as_a_disk() {
    let place = Place::new("gone");
    let set = place.set("one");
    let contents = place.switch.store.path().join("contents");
    for entry in fs::read_dir(&contents).expect("there") {
        fs::write(entry.expect("there").path(), "").expect("torn");
    }
    for _ in 0..2 {
        match place.stage_set(&set) {
            Err(StageFailure::Lost { profile, version, .. }) => {
                assert_eq!((profile, Some(&*version)), (name("app"), set.profiles.values().next()));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_an_update_that_was_cut_off_has_put_in_place_is_nobodys_edit() {
    let mut place = Place::new("cut-off");
    place.apply("one");
    let two = place.stage("two").expect("staged").changed;
    place.switch.switch(&two).expect("switched");
    place.expected.extend(two.iter().map(|file| (file.template.clone(), file.new)));
    // As core joins an open record and the set that follows it.
    let set = StageSet { open: two.as_slice().into(), ..place.set("three") };
    let mut three = place.stage_set(&set).expect("staged").changed;
    for (file, earlier) in three.iter_mut().zip(&two) {
        file.unconfirmed = file.old.take().map(|found| found.digest);
        file.old.clone_from(&earlier.old);
    }
    let back = place.switch.restore(&three);
    assert_eq!((back.set_aside, back.failed), (Vec::new(), Vec::new()), "before it was switched");
    assert_eq!(place.seen(), all("one"));
    place.switch.switch(&three).expect("from the old one as well");
    assert_eq!(place.seen(), all("three"));
    let back = place.switch.restore(&three);
    assert_eq!((back.set_aside, back.failed), (Vec::new(), Vec::new()));
    assert_eq!(place.seen(), all("one"));
}

#[test]
fn a_preview_shows_what_would_change_and_no_secret() {
    let mut place = Place::new("preview");
    place.apply("one");
    // As long as the applied version is kept, its secrets are known.
    let one = place.set("one");
    let preview = |place: &Place, set: &StageSet| {
        place.switch.preview(set, &BTreeMap::new(), &place.plan(), &json!({})).expect("valid")
    };
    assert_eq!(preview(&place, &one), []);
    let shown = preview(&place, &place.set("two"));
    assert_eq!(shown.len(), 3);
    assert!(shown[1].difference.contains("-b one <secrets.key>\n+b two <secrets.key>"));
    assert!(shown.iter().all(|it| !it.difference.contains("hush")), "{shown:?}");
    assert_eq!(place.seen(), all("one"));
    assert_eq!(place.entries().len(), 4);
}

/// What core does after a crash: with a record it finishes the set, without one nothing has changed.
fn resume(place: &Place, record: Option<&[StagedFile]>, back: bool) {
    match record {
        None => place.switch.retain(&BTreeMap::new(), &[]).expect("tidy"),
        Some(files) if back => {
            assert_eq!(place.switch.restore(files).failed, []);
            place.switch.retain(&BTreeMap::new(), &[]).expect("tidy");
        }
        Some(files) => {
            place.switch.retain(&BTreeMap::new(), files).expect("tidy");
            place.switch.switch(files).expect("it goes on");
            place.switch.retain(&BTreeMap::new(), &[]).expect("tidy");
        }
    }
}

/// Nobody but us reads what is not in place.
fn no_secret_is_readable(dir: &Path) {
    for entry in fs::read_dir(dir).expect("there") {
        let path = entry.expect("there").path();
        let meta = fs::symlink_metadata(&path).expect("there");
        if meta.is_dir() && path.file_name().is_some_and(|it| it != "src") {
            no_secret_is_readable(&path);
        }
        if meta.is_file() && fs::read(&path).expect("ours").windows(5).any(|it| it == b"hush-") {
            assert_eq!(meta.permissions().mode() & 0o007, 0, "{}", path.display());
        }
    }
}

/// Kills the process at every step of an update, then goes on: all old or all new.
#[test]
fn a_crash_at_any_step_of_an_update_leaves_all_old_or_all_new() {
    let mut steps = 0;
    loop {
        let mut place = Place::new("crash");
        place.apply("one");
        let set = place.set("two");
        crash::until(steps);
        let staged = place.switch.stage(&set, &place.plan(), &json!({}));
        let record = staged.ok().map(|set| set.changed);
        let switched = record.as_ref().is_some_and(|files| place.switch.switch(files).is_ok());
        let lived = crash::survive();
        no_secret_is_readable(place.dir.path());
        resume(&place, record.as_deref(), false);
        let seen = place.seen();
        assert_eq!(seen, all(if record.is_some() { "two" } else { "one" }), "after {steps} steps");
        assert_eq!(place.entries().len(), 4, "after {steps} steps: {:?}", place.entries());
        if lived && switched {
            break;
        }
        steps += 1;
    }
    assert!(steps >= 10, "{steps} steps");
}

#[test]
fn a_crash_at_any_step_of_a_way_back_leaves_all_old() {
    for switched in [0, 1, 2, 3] {
        let mut steps = 0;
        loop {
            let mut place = Place::new("back");
            place.apply("one");
            let files = place.stage("two").expect("staged").changed;
            // So far the switch has come before the failure.
            crash::until(switched);
            let _ = place.switch.switch(&files);
            crash::survive();
            crash::until(steps);
            let outcome = place.switch.restore(&files);
            let lived = crash::survive();
            no_secret_is_readable(place.dir.path());
            resume(&place, Some(&files), true);
            assert_eq!(place.seen(), all("one"), "after {steps} steps");
            assert_eq!(place.entries().len(), 4, "after {steps} steps: {:?}", place.entries());
            if lived && outcome.failed.is_empty() {
                break;
            }
            steps += 1;
        }
        assert!(steps >= 4, "{steps} steps");
    }
}
