use super::*;
use mainstay_core::plan::{Http, HttpTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{path::PathBuf, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixListener},
};
use tokio_rustls::TlsAcceptor;

fn name() -> Name {
    Name::new("job").expect("a name")
}

fn soon() -> Mono {
    clock::mono().after(Duration::from_secs(10))
}

fn http(url: String) -> Http {
    Http {
        url,
        method: "GET".to_owned(),
        headers: Vec::new(),
        status: Vec::new(),
        body_matches: None,
        unix: None,
        tls: HttpTls::default(),
    }
}

async fn asked(probe: Probe) -> Verdict {
    Ready::new(&probe).ask(soon()).await
}

async fn asked_http(http: Http) -> Verdict {
    asked(Probe::Http(http)).await
}

/// Reads one request and gives the same answer to everybody.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { break };
        request.push(byte);
    }
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    String::from_utf8_lossy(&request).into_owned()
}

/// A server on a port of its own; what it was asked comes back.
async fn server(answer: &'static str) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (requests, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let requests = requests.clone();
            tokio::spawn(async move {
                let _ = requests.send(converse(stream, answer).await);
            });
        }
    });
    (port, received)
}

const WELL: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nall well\n";
const ILL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 8\r\n\r\nno room\n";

#[tokio::test]
async fn an_http_check_goes_by_the_status() {
    let (port, _requests) = server(ILL).await;
    let url = format!("http://127.0.0.1:{port}/health");
    let verdict = asked_http(http(url.clone())).await;
    assert!(!verdict.passed);
    assert_eq!(verdict.output, "status 503 Service Unavailable: no room");
    let ranges = Http { status: vec![(200, 204), (503, 503)], ..http(url) };
    assert!(asked_http(ranges).await.passed);
}

#[tokio::test]
async fn an_http_check_sends_what_it_was_told_to() {
    let (port, mut requests) = server(WELL).await;
    let check = Http {
        method: "POST".to_owned(),
        headers: vec![("X-Token".to_owned(), "secret".to_owned())],
        ..http(format!("http://localhost:{port}/deep?full=1"))
    };
    assert!(asked_http(check).await.passed);
    let request = requests.recv().await.expect("a request").to_lowercase();
    assert!(request.starts_with("post /deep?full=1 http/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: localhost:{port}\r\n")), "{request}");
    assert!(request.contains("x-token: secret\r\n"), "{request}");
}

#[tokio::test]
async fn an_http_check_looks_into_the_body() {
    let (port, _requests) = server(WELL).await;
    let check = |expression: &str| Http {
        body_matches: Some(expression.to_owned()),
        ..http(format!("http://127.0.0.1:{port}"))
    };
    assert!(asked_http(check("(?m)^all w.ll$")).await.passed);
    let verdict = asked_http(check("degraded")).await;
    assert!(!verdict.passed && verdict.output.contains("degraded"), "{verdict:?}");
}

#[tokio::test]
async fn an_http_check_reaches_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("mainstay-probe-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        converse(stream, WELL).await;
    });
    let check = Http { unix: Some(path.clone()), ..http("http://app/healthz".to_owned()) };
    assert!(asked_http(check.clone()).await.passed);
    let _ = std::fs::remove_file(&path);
    assert!(!asked_http(check).await.passed);
}

#[tokio::test]
async fn a_tcp_check_passes_when_somebody_listens() {
    let (port, _requests) = server(WELL).await;
    assert!(asked(Probe::Tcp(format!("localhost:{port}"))).await.passed);
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = free.local_addr().expect("an address").to_string();
    drop(free);
    let verdict = asked(Probe::Tcp(address)).await;
    assert!(!verdict.passed && verdict.output.contains("refused"), "{verdict:?}");
}

/// A certificate for `name`, and the file of the authority that made it.
fn certified(name: &str, tag: &str) -> (ServerConfig, PathBuf) {
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, &authority).expect("a certificate");
    let path =
        std::env::temp_dir().join(format!("mainstay-probe-{}-{tag}.pem", std::process::id()));
    std::fs::write(&path, authority.pem()).expect("a file");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate that fits its key");
    (config, path)
}

#[tokio::test]
async fn an_https_check_verifies_unless_it_was_told_not_to() {
    let (config, ca) = certified("web.internal", "verify");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                converse(stream, WELL).await;
            }
        }
    });
    let check = |tls: HttpTls| Http { tls, ..http(format!("https://127.0.0.1:{port}/")) };
    let known = HttpTls { ca: Some(ca.clone()), ..HttpTls::default() };
    let named = HttpTls { server_name: Some("web.internal".to_owned()), ..known.clone() };
    let verdict = asked_http(check(named)).await;
    assert!(verdict.passed, "{verdict:?}");
    let verdict = asked_http(check(known)).await;
    assert!(!verdict.passed && verdict.output.contains("not trusted"), "{verdict:?}");
    let insecure = HttpTls { insecure: true, ..HttpTls::default() };
    assert!(asked_http(check(insecure)).await.passed);
    let nowhere = HttpTls { ca: Some("/nonexistent".into()), ..HttpTls::default() };
    let verdict = asked_http(check(nowhere)).await;
    assert!(!verdict.passed && verdict.output.contains("/nonexistent"), "{verdict:?}");
    let _ = std::fs::remove_file(ca);
}

#[tokio::test]
async fn a_silent_server_is_given_up_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let probe = Probe::Http(http(format!("http://127.0.0.1:{port}/")));
    let deadline = clock::mono().after(Duration::from_millis(50));
    let verdict = Ready::new(&probe).ask(deadline).await;
    assert!(!verdict.passed && verdict.output.starts_with("no answer within"), "{verdict:?}");
}

#[tokio::test]
async fn a_check_is_asked_once_at_a_time_and_no_longer_than_its_incarnation() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let probe = Probe::Http(http(format!("http://127.0.0.1:{port}/")));
    let mut probes = Checks::new();
    assert_eq!(probes.begin(&name(), 1, 0), Begin::Ask);
    probes.ask(&name(), 1, 0, &probe, soon());
    assert_eq!(probes.begin(&name(), 1, 0), Begin::UnderWay);
    assert_eq!(probes.begin(&name(), 1, 1), Begin::Ask);
    probes.cancel(&name(), 2, 1);
    assert_eq!(probes.begin(&name(), 2, 0), Begin::Ask);
    probes.finished(&name(), 1, 0);
    let busy = probes.begin(&name(), 2, 0);
    assert_eq!(busy, Begin::UnderWay, "an old answer is not that of the new incarnation");
    probes.finished(&name(), 2, 0);
    let (port, _requests) = server(WELL).await;
    assert_eq!(probes.begin(&name(), 2, 0), Begin::Ask);
    probes.ask(&name(), 2, 0, &Probe::Tcp(format!("127.0.0.1:{port}")), soon());
    let Input::Checked { incarnation, check, passed, .. } = probes.answered().await else {
        panic!("another input")
    };
    assert_eq!((incarnation, check, passed), (2, 0, true));
}

#[tokio::test]
async fn an_exec_check_whose_process_outlives_its_time_has_failed_until_it_is_gone() {
    let mut checks = Checks::new();
    let now = clock::mono();
    assert_eq!(checks.begin(&name(), 1, 0), Begin::Ask);
    checks.expect(&name(), 0, now);
    assert_eq!(checks.begin(&name(), 1, 0), Begin::UnderWay);
    let Input::Checked { incarnation: 1, passed: false, .. } = checks.answered().await else {
        panic!("it has failed");
    };
    assert!(checks.finished(&name(), 1, 0).is_some());
    // The next time it is not run beside the other, and fails at once.
    assert_eq!(checks.begin(&name(), 1, 0), Begin::Overdue);
    assert!(checks.has_ended(&name(), 1, 0), "what it says then is no answer");
    assert_eq!(checks.begin(&name(), 1, 0), Begin::Ask);
    assert!(!checks.has_ended(&name(), 1, 0));
}

#[tokio::test]
async fn an_exec_check_that_answers_in_time_is_not_answered_again() {
    let mut checks = Checks::new();
    assert_eq!(checks.begin(&name(), 1, 0), Begin::Ask);
    let since = checks.under_way[&(name(), 0)].since;
    // Its time is up and that is in line, but the keeper's word comes first.
    let time_up = Answer::TimeUp { job: name(), check: 0, incarnation: 1, since };
    checks.report.send(time_up).expect("it listens");
    assert!(!checks.has_ended(&name(), 1, 0));
    assert!(checks.finished(&name(), 1, 0).is_some());
    let next = Input::CronDue { job: name() };
    checks.report.send(Answer::Checked(next.clone())).expect("it listens");
    assert_eq!(checks.answered().await, next, "nothing before it");
}
