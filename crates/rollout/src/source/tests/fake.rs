//! A server that says what a test has written down, one answer for each request.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::sleep,
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
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let fake = Fake { port, script: Arc::default(), asked: Arc::default() };
        let serving = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move { serving.serve(stream).await });
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

    async fn serve(&self, mut stream: TcpStream) {
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
