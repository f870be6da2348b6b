//! A Consul that does not trust everybody, and one that has to prove itself.

use crate::{
    Told,
    told::{query, registration, service, watch},
};
use mainstay_discovery::{Backend, Consul, Report, Secret, Standing, Tls};
use mainstay_tests::{Consul as Server, Scratch};
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, KeyPair};
use serde_json::json;
use std::{fs, path::PathBuf};

const MASTER: &str = "5f1c0f9e-0000-4000-8000-00000000cafe";

fn guarded() -> Server {
    let tokens = json!({ "master": MASTER, "agent": MASTER });
    Server::with(
        &json!({ "acl": { "enabled": true, "default_policy": "deny", "tokens": tokens } }),
        Some(MASTER),
    )
}

fn with_token(server: &Server, token: Option<&str>) -> Told {
    Told::new(Backend::Consul(Consul {
        address: server.address(),
        token: token.map(Secret::new),
        ..Consul::default()
    }))
}

#[test]
fn with_the_token_a_guarded_server_takes_services_and_answers_watches() {
    let server = guarded();
    let mut told = with_token(&server, Some(MASTER));
    told.watch("peers", query("web"));
    assert_eq!(told.ids("peers"), [""; 0]);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.announced("web-1");
    told.until_ids("peers", &["web-1"]);
    server.deregister("web-1");
    told.announced("web-1");
    told.withdraw("web-1");
    assert!(told.withdrawn("web-1"));
}

#[test]
fn without_a_token_the_trouble_is_told_and_says_what_to_do() {
    let server = guarded();
    let mut told = with_token(&server, None);
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    let error = told.trouble(&service("web-1"));
    assert!(error.contains("403") && error.contains("discovery.token"), "{error}");
}

#[test]
fn a_token_is_never_shown() {
    let server = guarded();
    let wrong = "11111111-2222-3333-4444-555555555555";
    let mut told = with_token(&server, Some(wrong));
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    let error = told.trouble(&service("web-1"));
    told.watch("peers", query("web"));
    let about = told.trouble(&watch("peers"));
    let shown = format!("{error} {about} {:?} {:?}", told.catalogue, told.heard);
    assert!(!shown.contains(wrong), "{shown}");
}

/// A CA, and what a server and a client need of it.
struct Certificates {
    scratch: Scratch,
}

impl Certificates {
    fn new() -> Certificates {
        let scratch = Scratch::new();
        let write = |name: &str, text: &str| {
            fs::write(scratch.path().join(name), text).expect("a file of our own");
        };
        let mut authority = CertificateParams::new([]).expect("no names");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(authority, key).expect("a CA");
        write("ca.pem", &issuer.pem());
        for (name, names) in [
            ("server", vec!["localhost".to_owned()]),
            ("elsewhere", vec!["consul.example".to_owned()]),
            ("client", vec!["client.example".to_owned()]),
        ] {
            let mut params = CertificateParams::new(names).expect("names");
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let key = KeyPair::generate().expect("a key");
            let signed = params.signed_by(&key, &issuer).expect("a certificate");
            write(&format!("{name}.pem"), &signed.pem());
            write(&format!("{name}.key"), &key.serialize_pem());
        }
        Certificates { scratch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn server(&self, name: &str, asks_for_clients: bool) -> Server {
        Server::with(
            &json!({
                "ca_file": self.path("ca.pem"),
                "cert_file": self.path(&format!("{name}.pem")),
                "key_file": self.path(&format!("{name}.key")),
                "verify_incoming_https": asks_for_clients,
            }),
            None,
        )
    }

    fn trusted(&self) -> Tls {
        Tls { ca_file: Some(self.path("ca.pem")), ..Tls::default() }
    }
}

fn over_tls(server: &Server, tls: Tls) -> Told {
    let address = server.https_address();
    Told::new(Backend::Consul(Consul { address, https: true, tls, ..Consul::default() }))
}

fn works(told: &mut Told) {
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.announced("web-1");
    told.watch("peers", query("web"));
    told.until_ids("peers", &["web-1"]);
}

fn fails(mut told: Told) -> String {
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.trouble(&service("web-1"))
}

#[test]
fn a_server_with_a_certificate_of_our_own_ca_is_trusted() {
    let certificates = Certificates::new();
    let server = certificates.server("server", false);
    works(&mut over_tls(&server, certificates.trusted()));
    // A directory of CAs does as well.
    let only_ca = Scratch::new();
    fs::copy(certificates.path("ca.pem"), only_ca.path().join("our.pem")).expect("a copy");
    let tls = Tls { ca_path: Some(only_ca.path().to_owned()), ..Tls::default() };
    works(&mut over_tls(&server, tls));
}

#[test]
fn a_server_that_cannot_prove_itself_is_not_talked_to_and_the_trouble_says_why() {
    let certificates = Certificates::new();
    let server = certificates.server("server", false);
    let stranger = Certificates::new();
    let error = fails(over_tls(&server, stranger.trusted()));
    assert!(error.contains("not trusted") && error.contains("tls.ca_file"), "{error}");
    // Unless that was written down.
    works(&mut over_tls(&server, Tls { verify: false, ..Tls::default() }));
}

#[test]
fn a_certificate_for_another_name_is_taken_only_when_that_name_is_given() {
    let certificates = Certificates::new();
    let server = certificates.server("elsewhere", false);
    let error = fails(over_tls(&server, certificates.trusted()));
    assert!(error.contains("'localhost'") && error.contains("tls.server_name"), "{error}");
    let server_name = Some("consul.example".to_owned());
    works(&mut over_tls(&server, Tls { server_name, ..certificates.trusted() }));
}

#[test]
fn a_server_that_asks_for_certificates_gets_ours() {
    let certificates = Certificates::new();
    let server = certificates.server("server", true);
    let mut nameless = over_tls(&server, certificates.trusted());
    nameless.announce(registration("web-1", "web"), Standing::Passing, "");
    // The server may have closed the connection before its reason was read: then the next try tells.
    nameless.next("it wants a certificate", |report| match report {
        Report::Trouble { error, .. } => error.contains("tls.cert").then_some(()),
        _ => None,
    });
    let ours = Tls {
        cert: Some(certificates.path("client.pem")),
        key: Some(certificates.path("client.key")),
        ..certificates.trusted()
    };
    works(&mut over_tls(&server, ours));
}

#[test]
fn certificates_that_are_replaced_are_used_without_a_restart() {
    let certificates = Certificates::new();
    let server = certificates.server("server", false);
    let stranger = Certificates::new();
    let mut told = over_tls(&server, stranger.trusted());
    told.announce(registration("web-1", "web"), Standing::Passing, "");
    told.trouble(&service("web-1"));
    fs::copy(certificates.path("ca.pem"), stranger.path("ca.pem")).expect("a copy");
    told.announced("web-1");
    assert!(told.heard.contains(&Report::Well { about: service("web-1") }), "{:?}", told.heard);
}
