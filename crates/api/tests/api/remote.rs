//! The API over TCP: who gets in, and that those who do not harm nobody.

use crate::{
    described::Described,
    driven::{CONFIG, Node},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::Value;
use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const TOKEN: &str = "a-token-of-this-very-test";
const PATIENCE: Duration = Duration::from_secs(10);

/// One that nobody listens on. The next test may be given the same, but not at once.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port")
}

fn private(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our own file");
}

fn connect(address: SocketAddr) -> TcpStream {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
                return stream;
            }
            Err(error) if Instant::now() > deadline => panic!("nobody listens: {error}"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn exchange(stream: impl Read + Write, request: &str) -> io::Result<(u16, Value)> {
    let mut stream = Described::new(stream);
    stream.write_all(request.as_bytes())?;
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let text = String::from_utf8_lossy(&text);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status, serde_json::from_str(body).unwrap_or_default()))
}

fn get(headers: &str) -> String {
    format!("GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}\r\n")
}

fn with(token: &str) -> String {
    get(&format!("Authorization: Bearer {token}\r\n"))
}

fn status(address: SocketAddr, request: &str) -> u16 {
    exchange(connect(address), request).expect("an answer").0
}

/// An authority, and files of the node that it has issued.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("params");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.0).expect("a certificate").pem(), key)
    }

    /// `tls = …` of a node that this authority has made, in its directory.
    fn table(&self, dir: &Path, clients: Option<&Authority>) -> String {
        let (cert, key) = self.issue("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
        fs::write(dir.join("cert.pem"), cert).expect("written");
        private(&dir.join("key.pem"), &key.serialize_pem());
        let client_ca = clients.map_or(String::new(), |clients| {
            fs::write(dir.join("clients.pem"), clients.0.pem()).expect("written");
            ", client_ca = \"clients.pem\"".to_owned()
        });
        format!("tls = {{ cert = \"cert.pem\", key = \"key.pem\"{client_ca} }}\n")
    }

    /// A client that trusts this authority, with a certificate of another.
    fn client(
        &self,
        address: SocketAddr,
        with: Option<&Authority>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match with {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let (pem, key) = authority.issue("me", ExtendedKeyUsagePurpose::ClientAuth);
                use rustls::pki_types::pem::PemObject;
                let cert = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(vec![cert], key).expect("a client")
            }
        };
        let name = "127.0.0.1".try_into().expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        StreamOwned::new(connection, connect(address))
    }
}

fn with_token(address: SocketAddr, more: &str) -> Node {
    Node::with(|dir| {
        private(&dir.join("token"), &format!("{TOKEN}\n"));
        format!("{CONFIG}\n[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n{more}")
    })
}

#[test]
fn nobody_gets_in_without_the_token() {
    let address = free();
    let _node = with_token(address, "");
    for (request, wanted) in [
        (get(""), 401),
        (with("a-token-of-another-test.."), 401),
        (with(""), 401),
        (get(&format!("Authorization: Basic {TOKEN}\r\n")), 401),
        (with(TOKEN), 200),
    ] {
        let (status, body) = exchange(connect(address), &request).expect("an answer");
        assert_eq!(status, wanted, "{request}");
        if wanted != 200 {
            assert_eq!(body["status"], wanted, "a problem document: {body}");
            assert!(!body.to_string().contains(TOKEN));
        }
    }
    let foreign =
        get(&format!("Authorization: Bearer {TOKEN}\r\nOrigin: https://evil.example\r\n"));
    assert_eq!(status(address, &foreign), 403);
    // Not even what there is can be learned, nor is a body read.
    let nothing = "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n";
    assert_eq!(status(address, nothing), 401);
}

#[test]
fn a_client_certificate_of_the_authority_is_enough_and_any_other_is_not() {
    let (node, clients, strangers) = (Authority::new(), Authority::new(), Authority::new());
    let address = free();
    let _node = Node::with(|dir| {
        let tls = node.table(dir, Some(&clients));
        format!("{CONFIG}\n[api]\nlisten = \"{address}\"\n{tls}")
    });
    let ask = |with: Option<&Authority>| exchange(node.client(address, with), &get(""));
    assert_eq!(ask(Some(&clients)).expect("it is let in").0, 200);
    assert!(ask(None).is_err(), "no certificate");
    assert!(ask(Some(&strangers)).is_err(), "one of another authority");
    // The node has to prove itself as well.
    assert!(exchange(strangers.client(address, Some(&clients)), &get("")).is_err());
}

#[test]
fn with_both_a_token_or_a_certificate_lets_in() {
    let authority = Authority::new();
    let address = free();
    let _node = Node::with(|dir| {
        private(&dir.join("token"), TOKEN);
        let tls = authority.table(dir, Some(&authority));
        format!("{CONFIG}\n[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n{tls}")
    });
    let ask = |with, request: &str| {
        exchange(authority.client(address, with), request).expect("an answer").0
    };
    assert_eq!(ask(None, &get("")), 401);
    assert_eq!(ask(None, &with(TOKEN)), 200);
    assert_eq!(ask(Some(&authority), &get("")), 200);
}

#[test]
fn plain_text_at_a_tls_port_is_told_so() {
    let authority = Authority::new();
    let address = free();
    let _node = Node::with(|dir| {
        private(&dir.join("token"), TOKEN);
        let tls = authority.table(dir, None);
        format!("{CONFIG}\n[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n{tls}")
    });
    let (status, body) = exchange(connect(address), &with(TOKEN)).expect("an answer");
    assert_eq!(status, 400);
    assert!(body["detail"].as_str().is_some_and(|text| text.contains("https")), "{body}");
}

#[test]
fn slow_silent_and_endless_clients_keep_nobody_out() {
    let authority = Authority::new();
    let address = free();
    let _node = Node::with(|dir| {
        private(&dir.join("token"), TOKEN);
        let tls = authority.table(dir, None);
        format!("{CONFIG}\n[api]\nlisten = \"{address}\"\ntoken_file = \"token\"\n{tls}")
    });
    connect(address);
    // More than there are places, some in the middle of a handshake.
    let silent: Vec<TcpStream> = (0..600)
        .map(|number| {
            let mut stream = connect(address);
            if number % 2 == 0 {
                stream.write_all(&[22, 3, 1, 2, 0]).expect("sent");
            }
            stream
        })
        .collect();
    let mut half = authority.client(address, None);
    half.write_all(b"GET /v1/status HTTP/1.1\r\nX: ").expect("sent");
    let answer = exchange(authority.client(address, None), &with(TOKEN)).expect("an answer");
    assert_eq!(answer.0, 200);
    let long = get(&format!("X: {}\r\n", "x".repeat(64 << 10)));
    let answer = exchange(authority.client(address, None), &long);
    assert!(answer.is_err() || answer.is_ok_and(|(status, _)| status == 431));
    drop((silent, half));
}

#[test]
fn a_reload_moves_the_listener_and_one_that_cannot_changes_nothing() {
    let (first, second, taken) =
        (free(), free(), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let node = with_token(first, "");
    assert_eq!(status(first, &with(TOKEN)), 200);
    let move_to = |address: SocketAddr| {
        let text = fs::read_to_string(node.0.join("mainstay.toml")).expect("it is there");
        let line = text.lines().find(|line| line.starts_with("listen")).expect("listen");
        let edited = text.replace(line, &format!("listen = \"{address}\""));
        fs::write(node.0.join("mainstay.toml"), edited).expect("edited");
        node.post("/v1/reload", "")
    };
    let (code, changes) = move_to(second);
    assert_eq!((code, &changes["api"][0]), (200, &"listen".into()));
    assert_eq!(status(second, &with(TOKEN)), 200);
    let gone = (0..).map(|_| TcpStream::connect(first)).take(1000);
    assert!(gone.into_iter().any(|it| it.is_err()), "the old one is closed");

    let taken = taken.local_addr().expect("an address");
    let (code, problem) = move_to(taken);
    assert_eq!(code, 409);
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("in use")), "{problem}");
    assert_eq!(status(second, &with(TOKEN)), 200, "the old one stays");
}

#[test]
fn a_reload_changes_nothing_without_its_listeners_whichever_way_it_is_asked_for() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (address, taken)).expect("an address");
    for path in ["/v1/reload", "/v3/reload"] {
        let address = free();
        let node = with_token(address, "");
        assert_eq!(status(address, &with(TOKEN)), 200, "it has begun");
        let file = node.0.join("mainstay.toml");
        let text = fs::read_to_string(&file).expect("it is there");
        let moved = text.replace(&address.to_string(), &taken.0.to_string());
        fs::write(&file, moved + "\n[jobs.more]\nexec = \"more\"\n").expect("edited");
        let request = format!("POST {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
        let (code, said) = node.ask(&request);
        let refused = code == 409 && said.contains("in use");
        assert!(refused, "{path}: {code} {said}");
        let jobs = node.get("/v1/status").1["jobs"].take();
        let names = jobs.as_array().into_iter().flatten().map(|job| &job["name"]);
        assert!(names.clone().any(|name| name == "web"), "{path}: {jobs}");
        assert!(!names.into_iter().any(|name| name == "more"), "{path}: nothing is applied");
        assert_eq!(status(address, &with(TOKEN)), 200, "{path}: the old one stays");
    }
}

#[test]
fn another_token_counts_from_the_reload_on_and_those_with_the_old_one_have_to_leave() {
    let address = free();
    let node = with_token(address, "");
    let mut follower = Described::new(connect(address));
    let follow = with(TOKEN).replace("/v1/status", "/v1/events?since=0");
    follower.write_all(follow.as_bytes()).expect("sent");
    let mut begun = [0; 12];
    follower.read_exact(&mut begun).expect("an answer");
    assert_eq!(&begun, b"HTTP/1.1 200");

    node.post("/v1/reload", "");
    assert_eq!(status(address, &with(TOKEN)), 200, "the same token, the same listener");
    private(&node.0.join("token"), "another-token-altogether");
    assert_eq!(node.post("/v1/reload", "").0, 200);
    assert_eq!(status(address, &with("another-token-altogether")), 200);
    assert_eq!(status(address, &with(TOKEN)), 401);
    // Its stream is ended from the other side, one way or another, and does not just fall silent.
    let left = follower.read_to_end(&mut Vec::new());
    let silent = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    assert!(!left.as_ref().is_err_and(silent), "{left:?}");

    private(&node.0.join("token"), "short");
    let (code, problem) = node.post("/v1/reload", "");
    assert_eq!(code, 409);
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("16")), "{problem}");
    assert_eq!(status(address, &with("another-token-altogether")), 200);
}

#[test]
fn what_is_written_down_as_insecure_needs_nothing_but_an_address() {
    let address = free();
    let _node =
        Node::with(|_| format!("{CONFIG}\n[api]\nlisten = \"{address}\"\ninsecure = true\n"));
    assert_eq!(status(address, &get("")), 200);
    let rebound = get("").replace("Host: 127.0.0.1", "Host: rebound.example");
    assert_eq!(status(address, &rebound), 403);
}

#[test]
fn the_unix_socket_is_opened_to_a_group_and_closed_again() {
    use std::os::unix::fs::MetadataExt;
    let gid = rustix::process::getegid().as_raw();
    let node = Node::with(|_| format!("{CONFIG}\n[api]\nsocket_group = {gid}\n"));
    let mode = || fs::metadata(node.0.join("mainstay.sock")).expect("a socket");
    let until = |wanted: u32| {
        let deadline = Instant::now() + PATIENCE;
        while mode().mode() & 0o777 != wanted {
            assert!(Instant::now() < deadline, "{:o}", mode().mode());
            thread::sleep(Duration::from_millis(5));
        }
    };
    until(0o660);
    assert_eq!(mode().gid(), gid);
    fs::write(node.0.join("mainstay.toml"), CONFIG).expect("edited");
    assert_eq!(node.post("/v1/reload", "").0, 200);
    until(0o600);
}
