//! A client of a control socket: server-sent events both ways.

use serde_json::Value;
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Control {
    /// # Errors
    /// As connect(2).
    pub fn connect(path: &Path) -> io::Result<Control> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Control { reader: BufReader::new(stream.try_clone()?), stream })
    }

    /// # Errors
    /// When nobody is at the other end.
    pub fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The socket itself.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The next state; `None` at the end of the stream.
    pub fn next_state(&mut self) -> Option<Value> {
        let mut line = || {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Ok(count) => (count > 0).then(|| line.trim_end().to_owned()),
                // What was said to it had not been read: an end like any other.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
                Err(error) => panic!("neither a state nor the end: {error}"),
            }
        };
        assert_eq!(line()?, "event: state");
        let data = line().expect("data after the event");
        assert_eq!(line().as_deref(), Some(""));
        let data = data.strip_prefix("data: ").expect("a data line");
        Some(serde_json::from_str(data).expect("JSON"))
    }

    /// The state before the stream ends, which must be soon.
    pub fn last_state(&mut self) -> Option<Value> {
        let end = Instant::now() + PATIENCE;
        let states = std::iter::from_fn(|| self.next_state());
        states.inspect(|state| assert!(Instant::now() < end, "the stream goes on: {state}")).last()
    }
}
