//! Listening sockets that are held for jobs.

use mainstay_tests::{Node, Setup, needs};
use std::{
    io::Read,
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    time::Duration,
};

/// Says what it was given, then answers at every socket with its pid.
const SERVER: &str = r#"
import os, select, socket, sys
count = int(os.environ["LISTEN_FDS"])
print(count, os.environ["LISTEN_PID"] == str(os.getpid()), os.environ["LISTEN_FDNAMES"], flush=True)
sockets = [socket.socket(fileno=3 + index) for index in range(count)]
print(*[s.getsockname() for s in sockets], sep="|", flush=True)
while True:
    for s in select.select(sockets, [], [])[0]:
        if s.type == socket.SOCK_DGRAM:
            s.sendto(b"%d" % os.getpid(), s.recvfrom(100)[1])
        else:
            client = s.accept()[0]
            client.sendall(b"%d" % os.getpid())
            client.close()
"#;

fn server(sockets: &str) -> Node {
    needs("python3");
    let config = format!(
        "[node]\nexit = \"never\"\n[jobs.server]\nexec = [\"python3\", \"server.py\"]\n\
         sockets = {{ {sockets} }}\n"
    );
    let setup = Setup::config(config);
    let scratch = mainstay_tests::Scratch::new();
    scratch.script("server.py", SERVER);
    let node = setup.launch_in(scratch);
    node.wait_until_ready();
    node
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

/// The pid of whoever answers a connection, however long that takes.
fn answer(mut client: impl Read) -> u32 {
    let mut text = String::new();
    client.read_to_string(&mut text).expect("an answer");
    text.parse().expect("a pid")
}

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).expect("it always listens");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    client
}

#[test]
fn a_job_is_told_of_its_sockets_in_the_order_of_the_file() {
    let (tcp, udp) = (free_port(), free_port());
    let node = server(&format!(
        "web = \"127.0.0.1:{tcp}\", dns = \"udp:127.0.0.1:{udp}\", local = \"unix:/tmp/mainstay-{tcp}.sock\", v6 = \"[::1]:0\""
    ));
    let pid = node.running("server");
    node.until_logged("server", "4 True web:dns:local:v6");
    assert_eq!(answer(connect(tcp)), pid);

    let path = format!("/tmp/mainstay-{tcp}.sock");
    assert_eq!(answer(UnixStream::connect(&path).expect("it listens")), pid);

    let client = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    client.send_to(b"who", ("127.0.0.1", udp)).expect("sent");
    let mut bytes = [0; 20];
    let count = client.recv(&mut bytes).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&bytes[..count]), pid.to_string());
    drop(node);
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_socket_goes_on_listening_whatever_becomes_of_job_agent_and_keeper() {
    let port = free_port();
    let node = server(&format!("web = \"127.0.0.1:{port}\""));
    let first = node.running("server");
    assert_eq!(answer(connect(port)), first);

    // Connections made while the job is down are served when it is back.
    node.must(&["stop", "server"]);
    let waiting: Vec<TcpStream> = (0..20).map(|_| connect(port)).collect();
    node.kill_agent();
    node.must(&["upgrade"]);
    node.wait_until_ready();
    let later = connect(port);
    node.must(&["start", "server"]);
    let second = node.running("server");
    assert_ne!(first, second);
    for client in waiting {
        assert_eq!(answer(client), second);
    }
    assert_eq!(answer(later), second);

    // And while the job runs through it all.
    node.kill_agent();
    assert_eq!(answer(connect(port)), second);
    node.must(&["upgrade"]);
    assert_eq!(answer(connect(port)), second);
    mainstay_tests::signal(second, rustix::process::Signal::KILL);
    let client = connect(port);
    assert_ne!(answer(client), second, "served by the next incarnation");
}

#[test]
fn a_unix_socket_of_an_earlier_run_is_replaced() {
    let path = format!("/tmp/mainstay-left-{}.sock", std::process::id());
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a path of our own"));
    let node = server(&format!("web = \"unix:{path}\""));
    let pid = node.running("server");
    assert_eq!(answer(UnixStream::connect(&path).expect("it listens")), pid);
    drop(node);
    let _ = std::fs::remove_file(path);
}
