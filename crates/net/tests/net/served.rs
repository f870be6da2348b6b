//! A small service to be asked, and the ways to it.

use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use mainstay_net::{
    http::{Answer, Bytes, Connection, HeaderMap, HttpError, Method, Server, request},
    listen::{
        Caller, Connections, Endpoint, Full as WhenFull, Limits, Listener, Secured, Service, Stop,
    },
};
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

const SOON: Duration = Duration::from_secs(20);

pub(crate) const LIMITS: Limits = Limits {
    header: Duration::from_secs(5),
    write: Some(Duration::from_secs(5)),
    connection: None,
    keep_alive: true,
    drain: Duration::from_millis(50),
};

/// A server that answers with the path it was asked for; `/wait` once it is let go.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) ending: watch::Sender<bool>,
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) let_go: watch::Sender<bool>,
    /// How many have asked to wait.
    waiting: watch::Sender<usize>,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) fn new(limits: Limits, most: usize, tls: Option<Secured>) -> Served {
        let listener = mainstay_net::listen::bind_tcp(([127, 0, 0, 1], 0).into()).expect("a port");
        let address = listener.local_addr().expect("an address");
        let ending = watch::Sender::new(false);
        let closing = watch::Sender::new(false);
        let let_go = watch::Sender::new(false);
        let endpoint = Endpoint {
            listener: Arc::new(Listener::Tcp(listener)),
            tls,
            limits,
            connections: Connections::new(most, WhenFull::SilentGoes),
            answers_backlog: false,
        };
        let stop = Stop { ending: ending.subscribe(), closing: Some(closing.subscribe()) };
        let waiting = watch::Sender::new(0);
        let (wait, count) = (let_go.subscribe(), waiting.clone());
        let service = move |caller| echo(caller, wait.clone(), count.clone());
        let task = tokio::spawn(endpoint.serve(service, stop));
        Served { address, ending, closing, let_go, waiting, task }
    }

    pub(crate) fn server(&self) -> Server {
        Server::tcp("127.0.0.1", self.address.port())
    }

    /// Until somebody has asked to wait.
    pub(crate) async fn somebody_waits(&self) {
        let mut waiting = self.waiting.subscribe();
        let reached = timeout(SOON, waiting.wait_for(|count| *count > 0)).await;
        reached.expect("in time").expect("we hold the sender");
    }

    /// Until it no longer serves anybody.
    pub(crate) async fn over(self) {
        timeout(SOON, self.task).await.expect("in time").expect("no panic");
    }
}

fn echo(
    caller: Caller,
    let_go: watch::Receiver<bool>,
    waiting: watch::Sender<usize>,
) -> impl Service {
    let caller = Arc::new(caller);
    service_fn(move |request: Request<Incoming>| {
        caller.has_asked();
        let (mut let_go, waiting) = (let_go.clone(), waiting.clone());
        let certified = caller.is_certified();
        async move {
            let path = request.uri().path().to_owned();
            if path == "/wait" {
                waiting.send_modify(|count| *count += 1);
                let _ = let_go.wait_for(|go| *go).await;
            }
            let who = if certified { " by a friend" } else { "" };
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("{path}{who}")))))
        }
    })
}

/// One request on a connection of its own.
pub(crate) async fn ask(server: &Server, path: &str) -> Result<String, HttpError> {
    let mut answer = begin(server, path).await?;
    let body = answer.beginning(1 << 10).await?;
    Ok(String::from_utf8(body).expect("text"))
}

pub(crate) async fn begin(server: &Server, path: &str) -> Result<Answer, HttpError> {
    let stream = server.connect(Some(SOON)).await?;
    let connection = Connection::open(stream, server.address()).await?;
    let target = path.parse().expect("a path");
    connection.send(request(Method::GET, target, HeaderMap::new(), Bytes::new())).await
}
