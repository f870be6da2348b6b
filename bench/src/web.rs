//! The smallest web server: it says yes to everyone, one after the other, and counts them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::failure::{Doing, Result};

const YES: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    told: Arc<Told>,
}

#[derive(Debug, Default)]
struct Told {
    answered: AtomicU64,
    over: AtomicBool,
}

impl Server {
    pub(crate) fn start() -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").doing("open a port")?;
        let address = listener.local_addr().doing("learn my own port")?;
        let told = Arc::new(Told::default());
        let shared = told.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.over.load(Ordering::Relaxed) {
                    return;
                }
                if answer(stream).is_ok() {
                    shared.answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Server { address, told })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn answered(&self) -> u64 {
        self.told.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    /// One more connection lets it see that it is over.
    fn drop(&mut self) {
        self.told.over.store(true, Ordering::Relaxed);
        let _gone_already = TcpStream::connect(self.address);
    }
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let _request = stream.read(&mut [0; 1024])?;
    stream.write_all(YES)
}
