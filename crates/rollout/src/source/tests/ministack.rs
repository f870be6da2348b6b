//! PyPI's `ministack`: AppConfig with deployments and Secrets Manager, much like the real ones.

use super::*;
use mainstay_tests::within;
use std::{
    net::TcpStream,
    process::{Child, Command, Stdio},
};

/// Makes an application, deploys versions and changes a secret, by AWS's own library.
const SCRIPT: &str = r#"
import sys, json, datetime, botocore.session
port, step = sys.argv[1:]
to = dict(region_name="us-east-1", endpoint_url="http://127.0.0.1:" + port,
          aws_access_key_id="a", aws_secret_access_key="b")
session = botocore.session.get_session()
config = session.create_client("appconfig", **to)
secrets = session.create_client("secretsmanager", **to)
if step == "begin":
    app = config.create_application(Name="shop")["Id"]
    config.create_environment(ApplicationId=app, Name="prod")
    config.create_configuration_profile(ApplicationId=app, Name="web", LocationUri="hosted")
    config.create_deployment_strategy(Name="now", DeploymentDurationInMinutes=0,
        FinalBakeTimeInMinutes=0, GrowthFactor=100, ReplicateTo="NONE")
    secrets.create_secret(Name="prod/db", SecretString="one")
elif step == "metric":
    now = datetime.datetime.now(datetime.timezone.utc)
    hour = datetime.timedelta(hours=1)
    watch = session.create_client("cloudwatch", **to)
    found = watch.get_metric_statistics(Namespace="Shop", MetricName="RolloutFailed",
        Dimensions=[{"Name": "Service", "Value": "web & more"}], StartTime=now - hour,
        EndTime=now + hour, Period=7200, Statistics=["Sum", "SampleCount"])["Datapoints"]
    assert sum(it["Sum"] for it in found) == 1, found
    assert sum(it["SampleCount"] for it in found) == 2, found
elif step == "rotate":
    secrets.put_secret_value(SecretId="prod/db", SecretString="two")
else:
    app = config.list_applications()["Items"][0]["Id"]
    environment = config.list_environments(ApplicationId=app)["Items"][0]["Id"]
    profile = config.list_configuration_profiles(ApplicationId=app)["Items"][0]["Id"]
    strategy = [it for it in config.list_deployment_strategies()["Items"] if it["Name"] == "now"][0]["Id"]
    body = json.dumps({"step": step, "secrets": {"db": {"secret_id": "prod/db"}}}).encode()
    version = config.create_hosted_configuration_version(ApplicationId=app,
        ConfigurationProfileId=profile, Content=body, ContentType="application/json")["VersionNumber"]
    config.start_deployment(ApplicationId=app, EnvironmentId=environment,
        DeploymentStrategyId=strategy, ConfigurationProfileId=profile,
        ConfigurationVersion=str(version))
"#;

struct Ministack {
    process: Child,
    port: u16,
}

impl Ministack {
    /// `None` where it is not installed.
    fn start() -> Option<Ministack> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let process = Command::new("ministack")
            .env("IOT_MTLS_ENABLED", "0")
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .inspect_err(|why| eprintln!("skipped: ministack: {why}"))
            .ok()?;
        let ministack = Ministack { process, port };
        within(Duration::from_secs(60), "ministack answers", || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(ministack)
    }

    fn does(&self, step: &str) {
        let port = self.port.to_string();
        let done = Command::new("python3").args(["-c", SCRIPT, &port, step]).output();
        let done = done.expect("python3");
        assert!(done.status.success(), "{step}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn deployments_and_a_rotated_secret_are_new_versions_and_nothing_else_is() {
    let Some(ministack) = Ministack::start() else { return };
    ministack.does("begin");
    let endpoint = format!("http://127.0.0.1:{}", ministack.port);
    let source = ProfileSource::AppConfig {
        application: "shop".into(),
        environment: "prod".into(),
        profile: "web".into(),
        region: None,
        endpoint: Some(endpoint.clone()),
    };
    let mut source = Source::new(&plan(source, None), &Shared { aws: Aws::at(endpoint) });
    let told = failed(&mut source, true).await;
    assert!(told.contains("AppConfig: shop/prod/web"), "{told}");

    ministack.does("1");
    let (one, content) = served(&mut source, true).await;
    assert_eq!(content.secrets["db"].value.reveal(), "one");
    source.skip_interval();
    assert!(is_unchanged(&mut source).await);
    ministack.does("rotate");
    source.skip_interval();
    let (rotated, content) = served(&mut source, false).await;
    assert_eq!(content.secrets["db"].value.reveal(), "two");
    assert!(rotated.digest == one.digest && rotated.secrets != one.secrets);
    ministack.does("2");
    source.skip_interval();
    let (two, _) = served(&mut source, false).await;
    assert_ne!(two.digest, one.digest);
    // Back to what was there before: the whole body again, and nothing that says so.
    ministack.does("1");
    source.skip_interval();
    assert!(served(&mut source, false).await.0.is_same_content(&rotated));
}

#[tokio::test]
async fn a_metric_is_published_with_its_dimensions() {
    let Some(ministack) = Ministack::start() else { return };
    let shared = Shared { aws: Aws::at(format!("http://127.0.0.1:{}", ministack.port)) };
    let metric = super::cloudwatch::metric();
    assert_eq!(shared.publish(&metric, false).await, Ok(()));
    assert_eq!(shared.publish(&metric, true).await, Ok(()));
    ministack.does("metric");
}
