//! TLS, both sides: what is trusted, and by which type of error one learns that it is not.

use crate::served::{LIMITS, Served, ask, begin};
use mainstay_core::tls::Tls;
use mainstay_net::{
    http::{HttpError, Server},
    listen::Secured,
    tls::{ClientTls, Distrust, ServerTls, TlsError, TlsFiles},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An authority, and certificates of it, in a directory of their own.
struct Files {
    dir: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    fn new(name: &str) -> Files {
        let dir = std::env::temp_dir().join(format!("mainstay-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
        fs::write(dir.join("ca.pem"), authority.pem()).expect("written");
        Files { dir, authority }
    }

    /// The files of a certificate and its key.
    fn certified(&self, name: &str, is_ca: IsCa) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.is_ca = is_ca;
        let certificate = params.signed_by(&key, &self.authority).expect("a certificate");
        let (cert, secret) = (self.at(&format!("{name}.pem")), self.at(&format!("{name}.key")));
        fs::write(&cert, certificate.pem()).expect("written");
        fs::write(&secret, key.serialize_pem()).expect("written");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("closed");
        (cert, secret)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A server with a certificate for `localhost`; with `mutual`, only for those who have one.
    fn served(&self, is_ca: IsCa, mutual: bool) -> Served {
        let (cert, key) = self.certified("localhost", is_ca);
        let ca = self.at("ca.pem");
        let client_ca = mutual.then_some(ca.as_path());
        let files = TlsFiles { cert: &cert, key: &key, client_ca, anonymous: false };
        let tls = ServerTls::load(files).expect("files that fit");
        let plain_answer = Arc::from(&b"HTTP/1.1 400 Bad Request\r\n\r\nuse https"[..]);
        Served::new(LIMITS, 8, Some(Secured { tls, plain_answer }))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn server(served: &Served, settings: &Tls) -> Server {
    let tls = ClientTls::new(settings, "localhost", "tls.ca").expect("a name");
    served.server().with_tls(Some(tls))
}

async fn distrust(served: &Served, settings: &Tls) -> Distrust {
    match ask(&server(served, settings), "/").await {
        Err(HttpError::Tls(TlsError::Untrusted { distrust, .. })) => distrust,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority_and_its_name() {
    let (files, others) = (Files::new("trust"), Files::new("others"));
    let served = files.served(IsCa::NoCa, false);
    let ours = Tls { ca_file: Some(files.at("ca.pem")), ..Tls::default() };
    assert_eq!(ask(&server(&served, &ours), "/a").await.expect("trusted"), "/a");
    let theirs = Tls { ca_file: Some(others.at("ca.pem")), ..Tls::default() };
    assert!(matches!(distrust(&served, &theirs).await, Distrust::UnknownIssuer { .. }));
    let named = Tls { server_name: Some("web.internal".to_owned()), ..ours.clone() };
    assert!(matches!(distrust(&served, &named).await, Distrust::WrongName { .. }));
    let unverified = Tls { verify: false, ..Tls::default() };
    assert_eq!(ask(&server(&served, &unverified), "/b").await.expect("not verified"), "/b");
}

#[tokio::test]
async fn the_certificate_of_an_authority_is_no_servers() {
    let files = Files::new("authority");
    let served = files.served(IsCa::Ca(BasicConstraints::Unconstrained), false);
    let ours = Tls { ca_file: Some(files.at("ca.pem")), ..Tls::default() };
    assert!(matches!(distrust(&served, &ours).await, Distrust::Authority));
}

#[tokio::test]
async fn a_client_without_a_certificate_learns_that_it_needs_one() {
    let files = Files::new("mutual");
    let served = files.served(IsCa::NoCa, true);
    let ours = Tls { ca_file: Some(files.at("ca.pem")), ..Tls::default() };
    let error = begin(&server(&served, &ours), "/").await.expect_err("not let in");
    assert!(error.requires_certificate(), "{error:?}");
    assert!(error.to_string().contains("tls.cert"), "{error}");
    let (cert, key) = files.certified("client", IsCa::NoCa);
    let known = Tls { cert: Some(cert), key: Some(key), ..ours };
    assert_eq!(ask(&server(&served, &known), "/a").await.expect("let in"), "/a by a friend");
}

#[tokio::test]
async fn plain_text_at_a_tls_port_is_told_so() {
    let files = Files::new("plain");
    let served = files.served(IsCa::NoCa, false);
    let mut stream = TcpStream::connect(served.address).await.expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("written");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(String::from_utf8_lossy(&answer).ends_with("use https"));
}

#[test]
fn files_that_are_of_no_use_are_told_apart() {
    let files = Files::new("files");
    let (cert, key) = files.certified("localhost", IsCa::NoCa);
    let (_, other_key) = files.certified("other", IsCa::NoCa);
    let load = |cert: &PathBuf, key: &PathBuf| {
        ServerTls::load(TlsFiles { cert, key, client_ca: None, anonymous: false })
    };
    assert_eq!(load(&cert, &key).expect("they fit"), load(&cert, &key).expect("they fit"));
    assert!(matches!(load(&cert, &other_key), Err(TlsError::Identity { .. })));
    assert!(matches!(load(&key, &key), Err(TlsError::NoCertificate { .. })));
    assert!(matches!(load(&cert, &files.at("none")), Err(TlsError::File(_))));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("opened");
    let public = load(&cert, &key).expect_err("everybody may read it").to_string();
    assert!(public.contains("is accessible to everybody: chmod o="), "{public}");
}
