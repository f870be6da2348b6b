//! AppConfig: what a scripted fake says, and PyPI's `ministack`, which is much like the real one.

use super::{fake::Fake, *};
use std::time::Duration;

const SESSION: &str = r#"{"InitialConfigurationToken": "token-0"}"#;

fn of_fake(fake: &Fake) -> Source {
    of_endpoint(&fake.endpoint())
}

fn of_endpoint(endpoint: &str) -> Source {
    let source = ProfileSource::AppConfig {
        application: "shop".into(),
        environment: "prod".into(),
        profile: "web".into(),
        region: None,
        endpoint: Some(endpoint.to_owned()),
    };
    Source::new(&plan(source, None), &Shared { aws: Aws::at(endpoint.to_owned()) })
}

impl Fake {
    fn session(&self) {
        self.say("201 Created", "Content-Type: application/json\r\n", SESSION);
    }

    fn latest(&self, token: &str, interval: u32, body: &str) {
        let headers = format!(
            "Content-Type: application/json\r\nNext-Poll-Configuration-Token: {token}\r\n\
             Next-Poll-Interval-In-Seconds: {interval}\r\nVersion-Label: v1\r\n"
        );
        self.say("200 OK", &headers, body);
    }

    fn bad_request(&self, problem: &str) {
        let headers = "Content-Type: application/json\r\nx-amzn-ErrorType: BadRequestException\r\n";
        let body = format!(
            r#"{{"Message": "no", "Reason": "InvalidParameters", "Details": {{"InvalidParameters": {{"ConfigurationToken": {{"Problem": "{problem}"}}}}}}}}"#
        );
        self.say("400 Bad Request", headers, &body);
    }

    /// Of each request its method and path.
    fn lines(&self) -> Vec<String> {
        let first = |asked: &String| asked.lines().next().unwrap_or_default().to_owned();
        self.asked().iter().map(first).collect()
    }
}

const BEGIN: &str = "POST /configurationsessions HTTP/1.1";

fn get(token: &str) -> String {
    format!("GET /configuration?configuration_token={token} HTTP/1.1")
}

#[tokio::test]
async fn a_token_is_used_once_and_the_interval_of_the_server_is_obeyed() {
    let fake = Fake::start().await;
    let mut source = of_fake(&fake);
    fake.session();
    fake.latest("token-1", 90, "{\"a\": 1}");
    let loaded = source.load(true).await;
    let LoadOutcome::Served { version, .. } = loaded.outcome else { panic!("{loaded:?}") };
    assert_eq!(version.label.as_deref(), Some("v1"));
    assert_eq!(loaded.not_before, Some(Duration::from_secs(90)));
    assert_eq!(fake.lines(), [BEGIN.to_owned(), get("token-0")]);
    let early = source.load(false).await;
    assert_eq!(early.outcome, LoadOutcome::Unchanged);
    assert!(early.not_before.expect("told") > Duration::from_secs(80), "{early:?}");
    assert_eq!(fake.lines(), Vec::<String>::new(), "nobody is asked too early");
    source.skip_interval();
    fake.latest("token-2", 30, "");
    assert!(is_unchanged(&mut source).await);
    source.skip_interval();
    fake.latest("token-3", 30, "{\"a\": 2}");
    assert_ne!(served(&mut source, false).await.0, version);
    assert_eq!(fake.lines(), [get("token-1"), get("token-2")]);
}

#[tokio::test]
async fn an_expired_token_begins_a_new_session_without_a_new_version() {
    let fake = Fake::start().await;
    let mut source = of_fake(&fake);
    fake.session();
    fake.latest("token-1", 15, "{\"a\": 1}");
    served(&mut source, true).await;
    fake.asked();
    source.skip_interval();
    fake.bad_request("Expired");
    fake.session();
    fake.latest("token-9", 15, "{\"a\": 1}");
    assert!(is_unchanged(&mut source).await, "the same body again is no news");
    assert_eq!(fake.lines(), [get("token-1"), BEGIN.to_owned(), get("token-0")]);
}

#[tokio::test]
async fn after_a_failure_the_token_is_not_used_again() {
    let fake = Fake::start().await;
    let mut source = of_fake(&fake);
    fake.session();
    fake.latest("token-1", 15, "{\"a\": 1}");
    served(&mut source, true).await;
    let cut =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"a\"";
    let mut waits = Vec::new();
    for failure in ["429 Too Many Requests", "500 Oops", "cut", "slow"] {
        source.skip_interval();
        if !waits.is_empty() {
            fake.session();
        }
        match failure {
            "cut" => fake.say_raw(cut),
            "slow" => fake.say_nothing(Duration::from_secs(5)),
            status => fake.say(status, "Content-Type: application/json\r\n", "{}"),
        }
        let loaded = source.load(false).await;
        assert!(matches!(loaded.outcome, LoadOutcome::Failed(_)), "{loaded:?}");
        waits.push(loaded.not_before);
    }
    assert!(waits[0].is_some() && waits[1] > waits[0] && waits[2].is_none(), "{waits:?}");
    let asked = fake.lines();
    let tokens: Vec<&String> = asked.iter().filter(|line| line.contains("token-1")).collect();
    assert_eq!(tokens.len(), 1, "{asked:?}");
    source.skip_interval();
    fake.session();
    fake.latest("token-2", 15, "{\"a\": 1}");
    assert!(is_unchanged(&mut source).await);
}

#[tokio::test]
async fn too_early_is_told_with_the_time_to_wait_and_nothing_deployed_is_a_failure() {
    let fake = Fake::start().await;
    let mut source = of_fake(&fake);
    fake.session();
    fake.latest("token-1", 15, "{\"a\": 1}");
    served(&mut source, true).await;
    source.skip_interval();
    fake.bad_request("PollIntervalNotSatisfied");
    let loaded = source.load(false).await;
    assert!(matches!(loaded.outcome, LoadOutcome::Failed(_)), "{loaded:?}");
    assert_eq!(loaded.not_before, Some(Duration::from_secs(15)));
    fake.session();
    fake.latest("token-1", 15, "");
    let told = failed(&mut source, true).await;
    assert!(told.contains("shop/prod/web: nothing is deployed"), "{told}");
    fake.session();
    fake.say("200 OK", "Content-Type: image/png\r\nNext-Poll-Configuration-Token: x\r\n", "PNG");
    assert!(failed(&mut source, true).await.contains("image/png"));
}

#[tokio::test]
async fn secrets_by_stage_are_read_at_each_load_and_by_id_once() {
    let fake = Fake::start().await;
    let mut source = of_fake(&fake);
    let secret = |value: &str| {
        let body = format!(r#"{{"Name": "s", "SecretString": "{value}", "VersionId": "1"}}"#);
        fake.say("200 OK", "Content-Type: application/x-amz-json-1.1\r\n", &body);
    };
    let profile =
        r#"{"secrets": {"a": {"secret_id": "s", "version_id": "1"}, "b": {"secret_id": "s"}}}"#;
    fake.session();
    fake.latest("token-1", 1, profile);
    secret("fixed");
    secret("one");
    let (one, content) = served(&mut source, true).await;
    assert_eq!(content.secrets["a"].value.reveal(), "fixed");
    assert_eq!(content.secrets["b"].value.reveal(), "one");
    fake.asked();
    source.skip_interval();
    fake.latest("token-2", 1, "");
    secret("two");
    let (two, content) = served(&mut source, false).await;
    assert_eq!(content.secrets["b"].value.reveal(), "two");
    assert_eq!((one.digest, fake.asked().len()), (two.digest, 2), "the fixed one was kept");
    source.skip_interval();
    fake.latest("token-3", 1, "");
    let headers = "x-amzn-ErrorType: ResourceNotFoundException\r\n";
    fake.say("400 Bad Request", headers, r#"{"Message": "no such"}"#);
    let told = failed(&mut source, false).await;
    assert!(told.contains("the secret 'b'") && told.contains("ResourceNotFound"), "{told}");
}

#[tokio::test]
async fn a_server_of_aws_whose_certificate_nobody_knows_is_asked_nothing() {
    let (fake, _) = Fake::start_tls().await;
    let mut source = of_endpoint(&fake.endpoint().replace("http:", "https:"));
    let why = failed(&mut source, true).await;
    assert!(why.contains("not trusted: nobody we know has issued it"), "{why}");
    assert_eq!(fake.asked(), Vec::<String>::new());
}
