//! Files as sources, and files as secrets.

use super::*;
use crate::test_dir::TestDir;
use std::{fs, io::Write, path::Path};
use tokio::time::timeout;

fn of_file(path: &Path) -> Source {
    let source = ProfileSource::File { path: path.to_owned() };
    Source::new(&plan(source, None), &Shared::default())
}

#[tokio::test]
async fn a_file_is_served_once_for_each_content() {
    let dir = TestDir::new("file-source");
    let path = dir.write("app.yaml", "a: 1\n");
    let mut source = of_file(&path);
    let (one, content) = served(&mut source, true).await;
    assert_eq!(
        (content.content_type.as_str(), &content.body[..]),
        ("application/yaml", &b"a: 1\n"[..])
    );
    assert!(is_unchanged(&mut source).await);
    dir.write("new", "a: 2\n");
    fs::rename(dir.path().join("new"), &path).expect("renamed over");
    let (two, _) = served(&mut source, false).await;
    assert_ne!(one, two);
    // Written anew with the same content: nothing has changed.
    dir.write("app.yaml", "a: 2\n");
    assert!(is_unchanged(&mut source).await);
    assert_eq!(served(&mut source, true).await.0, two, "a fresh one comes whole");
    dir.write("app.yaml", "a: [\n");
    let told = failed(&mut source, false).await;
    assert!(told.starts_with("profile 'app': it is no application/yaml: line"), "{told}");
    assert_eq!(failed(&mut source, false).await, told, "and goes on failing");
    fs::remove_file(&path).expect("removed");
    assert!(failed(&mut source, false).await.contains("app.yaml"));
}

#[tokio::test]
async fn a_file_that_is_being_written_is_not_a_version() {
    let dir = TestDir::new("being-written");
    let path = dir.write("app.json", "1");
    let mut source = of_file(&path);
    let (one, _) = served(&mut source, true).await;
    let mut writer = fs::File::create(&path).expect("truncated");
    writer.write_all(b"22").expect("half");
    let probe = fs::File::open(&path).expect("there");
    if mainstay_sys::lease::writers(&probe).expect("told") == mainstay_sys::lease::Writers::Unknown
    {
        return;
    }
    drop(probe);
    assert!(is_unchanged(&mut source).await, "half of it");
    let told = failed(&mut of_file(&path), true).await;
    assert!(told.contains("is being written"), "{told}");
    writer.write_all(b"33").expect("the rest");
    drop(writer);
    let (two, content) = served(&mut source, false).await;
    assert_eq!(&content.body[..], b"2233");
    assert_ne!(one, two);
}

#[tokio::test]
async fn a_change_is_noticed_when_it_is_whole_and_nothing_else_is() {
    let dir = TestDir::new("noticed");
    let path = dir.write("app.json", "1");
    let name = Name::new("app").expect("a name");
    let (mut notices, mut told) = Notices::new();
    let mut noticed = async |profile: &Name| {
        // Of one change several steps may be noticed.
        let until = async { while told.recv().await.expect("it goes on") != *profile {} };
        timeout(Duration::from_secs(20), until).await.expect("in time");
    };
    notices.watch(&name, &path);
    noticed(&name).await;
    dir.write("new", "2");
    fs::rename(dir.path().join("new"), &path).expect("renamed");
    noticed(&name).await;
    dir.write("other", "x");
    fs::write(&path, "33").expect("written");
    noticed(&name).await;
    // A link that is switched as a whole.
    dir.write("links/v1/x.json", "1");
    dir.write("links/v2/x.json", "2");
    let links = dir.path().join("links");
    std::os::unix::fs::symlink("v1", links.join("data")).expect("made");
    std::os::unix::fs::symlink("data/x.json", links.join("x.json")).expect("made");
    std::os::unix::fs::symlink("v2", links.join("data.new")).expect("made");
    let linked = Name::new("linked").expect("a name");
    notices.watch(&linked, &links.join("x.json"));
    noticed(&linked).await;
    fs::rename(links.join("data.new"), links.join("data")).expect("switched");
    noticed(&linked).await;
}

#[tokio::test]
async fn secrets_from_files_are_read_at_each_load() {
    let dir = TestDir::new("secret-file");
    let key = dir.write("key", "hush\n");
    let json = format!("{{\"secrets\": {{\"key\": {{\"file\": \"{}\"}}}}}}", key.display());
    let path = dir.write("app.json", json);
    let mut source = of_file(&path);
    let (one, content) = served(&mut source, true).await;
    assert_eq!(content.secrets["key"].value.reveal(), "hush", "without the end of its line");
    assert!(is_unchanged(&mut source).await);
    fs::write(&key, "other").expect("written");
    let (two, content) = served(&mut source, false).await;
    assert_eq!(content.secrets["key"].value.reveal(), "other");
    assert!(one.digest == two.digest && one.secrets != two.secrets);
    fs::write(&key, vec![b'x'; 100_000]).expect("written");
    let told = failed(&mut source, false).await;
    assert!(told.contains("the secret 'key'"), "{told}");
    fs::remove_file(&key).expect("removed");
    assert!(failed(&mut source, false).await.contains("the secret 'key'"));
    fs::write(&key, "other").expect("written");
    assert!(matches!(source.load(false).await.outcome, LoadOutcome::Served { .. }), "it is back");
}
