//! A stream with a judge of what comes of its writes: one notes that they fail, another has no
//! patience with an end that takes nothing. Reading passes through.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) trait JudgeWrites: Unpin {
    /// What is made of what has come of a write or a flush.
    fn written<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>>;

    /// What is made of what has come of the end of all writing.
    fn shut(&mut self, shut: Poll<io::Result<()>>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written(shut, cx)
    }
}

#[derive(Debug)]
pub(crate) struct JudgedWrites<S, J> {
    stream: S,
    judge: J,
}

impl<S, J> JudgedWrites<S, J> {
    pub(crate) fn new(stream: S, judge: J) -> JudgedWrites<S, J> {
        JudgedWrites { stream, judge }
    }
}

impl<S: AsyncRead + Unpin, J: Unpin> AsyncRead for JudgedWrites<S, J> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin, J: JudgeWrites> AsyncWrite for JudgedWrites<S, J> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge.written(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.judge.written(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge.written(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge.shut(shut, cx)
    }
}
