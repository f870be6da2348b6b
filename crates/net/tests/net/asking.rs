//! The client: which errors it tells apart, and that connections are used again.

use crate::served::{LIMITS, Served, ask};
use mainstay_net::http::{
    Bytes, Client, HeaderMap, HttpError, Method, Request, Server, Terms, request,
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const TERMS: Terms = Terms { limit: Duration::from_secs(20), lasting: true };

fn get(path: &str) -> Request<http_body_util::Full<Bytes>> {
    request(Method::GET, path.parse().expect("a path"), HeaderMap::new(), Bytes::new())
}

#[tokio::test]
async fn a_refused_connection_is_a_request_that_was_never_sent() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let error = ask(&Server::tcp("127.0.0.1", port), "/").await.expect_err("nobody is there");
    assert!(error.is_unsent());
    assert_eq!(error.io_kind(), Some(io::ErrorKind::ConnectionRefused));
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")), "{text}");
}

#[tokio::test]
async fn a_server_that_takes_a_request_and_hangs_up_may_have_acted_on_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let _ = stream.read(&mut [0; 1024]).await;
    });
    let error = ask(&Server::tcp("127.0.0.1", port), "/").await.expect_err("no answer");
    assert!(!error.is_unsent());
    assert_eq!(error.io_kind(), Some(io::ErrorKind::UnexpectedEof));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    });
    let client = Client::new(Server::tcp("127.0.0.1", port), 1);
    let error = client.send(&get("/"), TERMS).await.expect_err("half an answer");
    assert!(matches!(error, HttpError::BrokenOff { .. }), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_no_longer_there_is_replaced_by_another() {
    let served = Served::new(LIMITS, 1, None);
    let client = Client::new(served.server(), 1);
    for path in ["/one", "/two"] {
        let response = client.send(&get(path), TERMS).await.expect("an answer");
        assert_eq!(response.body(), path);
    }
    let address = served.address;
    served.ending.send_replace(true);
    served.over().await;
    let gone = client.send(&get("/three"), TERMS).await.expect_err("nobody is there");
    assert!(matches!(gone, HttpError::Connect { .. }), "{address}: {gone:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_in_time() {
    let served = Served::new(LIMITS, 8, None);
    let client = Client::new(served.server().called("the catalogue"), 1);
    let terms = Terms { limit: Duration::from_millis(50), lasting: true };
    let error = client.send(&get("/wait"), terms).await.expect_err("no answer");
    assert_eq!(error.to_string(), "no answer from the catalogue within 50ms");
    // Whoever comes next has a connection of its own.
    assert_eq!(client.send(&get("/next"), TERMS).await.expect("an answer").body(), "/next");
}
