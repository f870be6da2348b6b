//! A server that says what a test has written down, one answer for each request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    time::sleep,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring::default_provider, pki_types::PrivateKeyDer},
};

pub(super) enum Says {
    /// All of it, as it stands.
    Bytes(Vec<u8>),
    /// Nothing for so long, then it closes.
    Nothing(Duration),
}

#[derive(Clone)]
pub(super) struct Fake {
    pub(super) port: u16,
    script: Arc<Mutex<VecDeque<Says>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    pub(super) async fn start() -> Fake {
        Fake::serving(None).await
    }

    /// In TLS, with a certificate that is its own authority.
    pub(super) async fn start_tls() -> (Fake, String) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a certificate and its key");
        (Fake::serving(Some(TlsAcceptor::from(Arc::new(config)))).await, made.cert.pem())
    }

    async fn serving(tls: Option<TlsAcceptor>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let fake = Fake { port, script: Arc::default(), asked: Arc::default() };
        let serving = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, tls) = (serving.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serving.serve(stream).await,
                        Some(tls) => {
                            // One that does not trust it asks nothing.
                            if let Ok(stream) = tls.accept(stream).await {
                                serving.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        fake
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/config", self.port)
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn say(&self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n");
        self.script.lock().expect("ours").push_back(Says::Bytes((head + body).into_bytes()));
    }

    pub(super) fn say_raw(&self, bytes: &str) {
        self.script.lock().expect("ours").push_back(Says::Bytes(bytes.as_bytes().to_vec()));
    }

    pub(super) fn say_nothing(&self, time: Duration) {
        self.script.lock().expect("ours").push_back(Says::Nothing(time));
    }

    /// Heads and bodies of all requests since the last time.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("ours"))
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !is_whole(&request) {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => request.extend_from_slice(&buffer[..count]),
            }
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        self.asked.lock().expect("ours").push(text);
        let next = self.script.lock().expect("ours").pop_front();
        match next {
            Some(Says::Bytes(bytes)) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
            }
            Some(Says::Nothing(time)) => sleep(time).await,
            None => {}
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    body.len() >= length.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}
