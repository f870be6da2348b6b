//! The metric that says whether something has failed.

use super::{fake::Fake, *};
use mainstay_core::plan::CloudWatchPlan;

pub(super) fn metric() -> CloudWatchPlan {
    CloudWatchPlan {
        namespace: "Shop".to_owned(),
        name: "RolloutFailed".to_owned(),
        dimensions: vec![("Service".to_owned(), "web & more".to_owned())],
        ..CloudWatchPlan::default()
    }
}

#[tokio::test]
async fn a_value_is_one_signed_request_that_says_all() {
    let fake = Fake::start().await;
    let shared = Shared { aws: Aws::at(fake.endpoint()) };
    fake.say("200 OK", "Content-Type: text/xml\r\n", "<PutMetricDataResponse/>");
    assert_eq!(shared.publish(&metric(), true).await, Ok(()));
    let asked = fake.asked();
    let (head, body) = asked[0].split_once("\r\n\r\n").expect("a whole request");
    assert!(head.starts_with("POST / HTTP/1.1"), "{head}");
    assert!(head.contains("AWS4-HMAC-SHA256 Credential="), "{head}");
    assert!(head.contains("/us-east-1/monitoring/aws4_request"), "{head}");
    let mut said: Vec<&str> = body.split('&').collect();
    said.sort_unstable();
    let expected = [
        "Action=PutMetricData",
        "MetricData.member.1.Dimensions.member.1.Name=Service",
        "MetricData.member.1.Dimensions.member.1.Value=web%20%26%20more",
        "MetricData.member.1.MetricName=RolloutFailed",
        "MetricData.member.1.Unit=Count",
        "MetricData.member.1.Value=1",
        "Namespace=Shop",
        "Version=2010-08-01",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_value_that_is_refused_says_why() {
    let fake = Fake::start().await;
    let shared = Shared { aws: Aws::at(fake.endpoint()) };
    let answer = "<ErrorResponse><Error><Message>not allowed</Message></Error></ErrorResponse>";
    fake.say("403 Forbidden", "Content-Type: text/xml\r\n", answer);
    let why = shared.publish(&metric(), false).await.expect_err("refused");
    assert_eq!(why.to_string(), "CloudWatch: 403: not allowed");
}
