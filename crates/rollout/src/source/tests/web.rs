//! URLs as sources.

use super::{fake::Fake, *};
use crate::test_dir::TestDir;
use std::{fs, os::unix::fs::PermissionsExt};

fn of_url(url: &str) -> Source {
    let source = ProfileSource::Http { url: url.to_owned(), token_file: None, ca: None };
    Source::new(&plan(source, None), &Shared::default())
}

#[tokio::test]
async fn an_etag_saves_the_body_and_a_fresh_load_asks_for_all() {
    let fake = Fake::start().await;
    let mut source = of_url(&fake.url());
    let json = "Content-Type: application/json\r\nETag: \"1\"\r\n";
    fake.say("200 OK", json, "{\"a\": 1}");
    let (one, _) = served(&mut source, true).await;
    fake.say("304 Not Modified", "", "");
    assert!(is_unchanged(&mut source).await);
    let asked = fake.asked();
    assert!(!asked[0].contains("if-none-match") && asked[1].contains("if-none-match: \"1\""));
    assert!(asked[0].starts_with("GET /config HTTP/1.1\r\n"), "{}", asked[0]);
    fake.say("200 OK", json, "{\"a\": 1}");
    assert_eq!(served(&mut source, true).await.0, one);
    assert!(!fake.asked()[0].contains("if-none-match"));
    fake.say("200 OK", json, "{\"a\": 1}");
    assert!(is_unchanged(&mut source).await, "a server without ETags says it all again");
}

#[tokio::test]
async fn what_could_not_be_used_is_asked_for_as_a_whole_and_told_again() {
    let fake = Fake::start().await;
    let mut source = of_url(&fake.url());
    let json = |tag: u8| format!("Content-Type: application/json\r\nETag: \"{tag}\"\r\n");
    fake.say("200 OK", &json(1), "{\"a\": 1}");
    served(&mut source, true).await;
    fake.say("200 OK", &json(2), "{\"a\": ");
    let why = failed(&mut source, false).await;
    fake.asked();
    fake.say("200 OK", &json(2), "{\"a\": ");
    assert_eq!(failed(&mut source, false).await, why, "not that nothing is new");
    assert!(!fake.asked()[0].contains("if-none-match"));
    fake.say("503 Busy", "", "");
    assert!(failed(&mut source, false).await.contains("503"), "why it has nothing newer");
    fake.say("304 Not Modified", "", "");
    assert!(failed(&mut source, false).await.contains("304"), "of nothing that it could use");
    fake.say("200 OK", &json(1), "{\"a\": 1}");
    served(&mut source, false).await;
    fake.say("304 Not Modified", "", "");
    assert!(failed(&mut source, true).await.contains("304"), "a fresh load takes no such answer");
}

#[tokio::test]
async fn what_is_no_whole_document_is_a_failed_load() {
    let fake = Fake::start().await;
    let mut source = of_url(&fake.url());
    fake.say_raw(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\"",
    );
    assert!(failed(&mut source, true).await.contains("breaks off"));
    fake.say_raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    assert!(failed(&mut source, true).await.contains("breaks off"));
    fake.say_raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}");
    assert!(failed(&mut source, true).await.contains("does not say where it ends"));
    fake.say("302 Found", "Location: http://127.0.0.1/\r\n", "");
    assert!(failed(&mut source, true).await.contains("nothing is followed"));
    fake.say("200 OK", "Content-Type: text/html\r\n", "<html>");
    assert!(failed(&mut source, true).await.contains("text/html"));
    fake.say("200 OK", "", "{}");
    assert!(failed(&mut source, true).await.contains("no content type"));
    let large = "x".repeat(crate::profile::LARGEST + 1);
    fake.say("200 OK", "Content-Type: text/plain\r\n", &large);
    assert!(failed(&mut source, true).await.contains("at most"));
    fake.say("200 OK", "Content-Type: text/plain\r\n", "\u{0}ok");
    served(&mut source, true).await;
    assert!(failed(&mut of_url("ftp://x/"), true).await.contains("no URL"));
    assert!(failed(&mut of_url("http://a:b@127.0.0.1/"), true).await.contains("no URL"));
}

#[tokio::test]
async fn a_server_in_trouble_is_left_alone_for_longer_and_longer() {
    let fake = Fake::start().await;
    let mut source = of_url(&fake.url());
    let mut waits = Vec::new();
    for status in ["429 Too Many Requests", "500 Oops", "503 Busy"] {
        fake.say(status, "", "");
        waits.push(source.load(false).await.not_before.expect("it is to wait"));
    }
    assert!(waits[0] < waits[2], "{waits:?}");
    fake.say("404 Not Found", "", "");
    assert_eq!(source.load(false).await.not_before, None);
}

#[tokio::test]
async fn a_token_is_sent_and_is_private() {
    let (fake, dir) = (Fake::start().await, TestDir::new("token"));
    let token = dir.write("token", "s3cret\n");
    let source = ProfileSource::Http { url: fake.url(), token_file: Some(token.clone()), ca: None };
    let mut source = Source::new(&plan(source, Some(ProfileFormat::Json)), &Shared::default());
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("ours");
    assert!(failed(&mut source, true).await.contains("accessible to everybody"));
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("ours");
    fake.say("200 OK", "", "{}");
    served(&mut source, true).await;
    assert!(fake.asked()[0].contains("authorization: Bearer s3cret\r\n"));
}

#[tokio::test]
async fn a_certificate_that_nobody_knows_is_refused_before_anything_is_asked() {
    let (fake, cert) = Fake::start_tls().await;
    let url = fake.url().replace("http:", "https:");
    let json = "Content-Type: application/json\r\n";
    let why = failed(&mut of_url(&url), true).await;
    assert!(why.contains("not trusted: nobody we know has issued it"), "{why}");
    assert_eq!(fake.asked(), Vec::<String>::new());
    let dir = TestDir::new("ca");
    let ca = dir.write("ca.pem", cert);
    let source = ProfileSource::Http { url, token_file: None, ca: Some(ca) };
    fake.say("200 OK", json, "{}");
    served(&mut Source::new(&plan(source, None), &Shared::default()), true).await;
}

#[tokio::test]
async fn the_appconfig_agent_is_asked_by_names_and_tells_its_version() {
    let fake = Fake::start().await;
    let source = ProfileSource::Agent {
        application: "shop".into(),
        environment: "prod".into(),
        profile: "web/1".into(),
        url: Some(fake.endpoint()),
    };
    let mut source = Source::new(&plan(source, None), &Shared::default());
    let headers = "Content-Type: application/json\r\nConfiguration-Version: 7\r\n";
    fake.say("200 OK", headers, "{}");
    assert_eq!(served(&mut source, true).await.0.label.as_deref(), Some("7"));
    let path = "GET /applications/shop/environments/prod/configurations/web%2F1 HTTP/1.1";
    assert!(fake.asked()[0].starts_with(path));
    fake.say("200 OK", headers, "{}");
    assert!(is_unchanged(&mut source).await);
    fake.say("200 OK", &headers.replace('7', "8"), "{}");
    let (version, _) = served(&mut source, false).await;
    assert_eq!(version.label.as_deref(), Some("8"), "another label is told");
}
