//! The example that the first page of the book runs.

use super::{position, said};
use mainstay_tests::{Scratch, Setup, signal, until};
use rustix::process::Signal;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
};

#[test]
fn the_quickstart_starts_in_order_answers_and_stops_in_order() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/quickstart");
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let data = Scratch::new();
    let mut node = Setup::example(example)
        .env("QUICKSTART_PORT", port.to_string())
        .env("QUICKSTART_DATA", data.path().join("data").display().to_string())
        .start();
    let mut events = node.events();
    events.wait_for("web", "healthy");
    events.wait_for("visitor", "exitSuccess");
    let order = said(&events);
    let healthy = position(&order, "database", "healthy");
    let migrated = position(&order, "migrate", "exitSuccess");
    let web = position(&order, "web", "healthy");
    assert!(healthy < migrated && migrated < web, "{order:?}");

    let page = until("the service answers", || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        Some(page)
    });
    assert!(page.contains("Mainstay keeps this running"), "{page}");
    assert!(node.must(&["status"]).lines().count() < 24, "more than a screen");

    signal(node.keeper(), Signal::INT);
    assert_eq!(node.wait().code(), Some(0), "{}", node.stderr());
    let order = {
        events.to_end();
        said(&events)
    };
    let (web, database) =
        (position(&order, "web", "stopped"), position(&order, "database", "stopped"));
    assert!(web < database, "{order:?}");
    assert_eq!(node.log("goodbye"), ["the last one out"], "the run ends when all is written");
}
