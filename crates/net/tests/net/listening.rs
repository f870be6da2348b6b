//! The accept loop: stopping, limits, room.

use crate::served::{LIMITS, Served, ask};
use mainstay_net::listen::{BodyError, BodyLimits, Limits, Listener, read_body};
use std::{os::unix::fs::PermissionsExt, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Nothing in these tests takes so long.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn at_the_end_the_answer_under_way_is_given_and_nobody_else_let_in() {
    let served = Served::new(LIMITS, 8, None);
    let server = served.server();
    assert_eq!(ask(&server, "/hello").await.expect("an answer"), "/hello");
    let waiting = tokio::spawn(async move { ask(&server, "/wait").await });
    served.somebody_waits().await;
    served.ending.send_replace(true);
    let refused = async {
        while TcpStream::connect(served.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, refused).await.expect("nobody is let in any more");
    served.let_go.send_replace(true);
    assert_eq!(waiting.await.expect("no panic").expect("an answer"), "/wait");
    served.over().await;
}

#[tokio::test]
async fn a_closed_listener_gives_its_clients_a_while_and_no_more() {
    let served = Served::new(LIMITS, 8, None);
    let server = served.server();
    let waiting = tokio::spawn(async move { ask(&server, "/wait").await });
    served.somebody_waits().await;
    served.closing.send_replace(true);
    let cut = timeout(SOON, waiting).await.expect("in time").expect("no panic");
    assert!(!cut.expect_err("it is cut off").is_unsent());
    served.over().await;
}

#[tokio::test]
async fn a_client_that_says_nothing_makes_room_for_one_that_does() {
    let served = Served::new(LIMITS, 1, None);
    let mut silent = TcpStream::connect(served.address).await.expect("a connection");
    assert_eq!(ask(&served.server(), "/hello").await.expect("an answer"), "/hello");
    let mut rest = Vec::new();
    let closed = timeout(SOON, silent.read_to_end(&mut rest)).await.expect("in time");
    assert!(closed.is_err() || rest.is_empty());
}

#[tokio::test]
async fn a_client_that_does_not_say_what_it_wants_is_given_up() {
    let limits = Limits { header: Duration::from_millis(50), ..LIMITS };
    let served = Served::new(limits, 8, None);
    let mut slow = TcpStream::connect(served.address).await.expect("a connection");
    slow.write_all(b"GET / HTTP/1.1\r\n").await.expect("written");
    let mut rest = Vec::new();
    let closed = timeout(SOON, slow.read_to_end(&mut rest)).await.expect("in time");
    assert!(closed.is_err() || !String::from_utf8_lossy(&rest).contains("200"));
}

#[tokio::test]
async fn a_connection_that_lasts_too_long_is_ended_whatever_it_does() {
    let limits = Limits { connection: Some(Duration::from_millis(50)), ..LIMITS };
    let served = Served::new(limits, 8, None);
    let cut = timeout(SOON, ask(&served.server(), "/wait")).await.expect("in time");
    assert!(cut.is_err());
}

#[tokio::test]
async fn a_socket_of_our_own_is_private_and_goes_with_its_listener() {
    let dir = std::env::temp_dir().join(format!("mainstay-net-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join("sock");
    let listener = Listener::private_unix(&path).await.expect("a listener");
    let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = Listener::private_unix(&path).await.expect_err("somebody listens");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    drop(listener);
    assert!(!path.exists());
    std::fs::write(&path, "").expect("written");
    let other = Listener::private_unix(&path).await.expect_err("it is no socket");
    assert_eq!(other.kind(), std::io::ErrorKind::AlreadyExists);
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit() {
    let limits = BodyLimits { longest: 4, time: SOON };
    let body = |text: &'static str| http_body_util::Full::new(text.as_bytes());
    assert_eq!(read_body(body("four"), limits).await.expect("it fits"), "four");
    assert_eq!(read_body(body("fives"), limits).await, Err(BodyError::TooLong));
}
