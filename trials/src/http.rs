//! One kept-alive HTTP connection that sends requests which are there as bytes already: less work than any client library,
//! since the processor is shared with the server.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Failure, Result};

/// The longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 8_192;

/// See the module.
pub(crate) struct KeptAlive {
    stream: TcpStream,
    answer: Vec<u8>,
}

/// An answer.
pub(crate) struct HttpAnswer<'a> {
    pub(crate) status: u16,
    /// The status line and the headers.
    pub(crate) head: &'a str,
    pub(crate) body: &'a [u8],
}

impl KeptAlive {
    /// Connects to `address`, `HOST:PORT`.
    pub(crate) async fn open(address: &str) -> Result<KeptAlive> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(KeptAlive::over(stream))
    }

    /// Speaks over a connection that is open already.
    pub(crate) fn over(stream: TcpStream) -> KeptAlive {
        KeptAlive { stream, answer: Vec::with_capacity(1 << 17) }
    }

    /// Sends a request and waits for its whole answer. Every other status than 200 fails.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<HttpAnswer<'_>> {
        let answer = self.answer(request).await?;
        if answer.status != 200 {
            let body = String::from_utf8_lossy(answer.body);
            return Err(Failure::new(format!("another answer came: {}{body:.1000}", answer.head)));
        }
        Ok(answer)
    }

    /// Sends the first bytes of a request whose rest follows.
    pub(crate) async fn begin(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Sends a request for a long body, which is dropped as it comes. Answers its bytes. Every other status than 200 fails.
    pub(crate) async fn count(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        let (head, length) = self.head().await?;
        let text = std::str::from_utf8(&self.answer[..head])?;
        if !text.starts_with("HTTP/1.1 200 ") {
            return Err(Failure::new(format!("another answer came: {text:.1000}")));
        }
        let mut come = self.answer.len() - head;
        while come < length {
            self.answer.clear();
            come += match self.stream.read_buf(&mut self.answer).await? {
                0 => return Err(Failure::new("the server closed an HTTP connection within an answer")),
                more => more,
            };
        }
        Ok(come)
    }

    /// The same as [`KeptAlive::ask`], whatever its status.
    pub(crate) async fn answer(&mut self, request: &[u8]) -> Result<HttpAnswer<'_>> {
        self.stream.write_all(request).await?;
        let (head, length) = self.head().await?;
        let end = head + length;
        self.answer.reserve(end.saturating_sub(self.answer.len()));
        while self.answer.len() < end {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(Failure::new("the server closed an HTTP connection within an answer"));
            }
        }
        let (head, body) = (std::str::from_utf8(&self.answer[..head])?, &self.answer[head..end]);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Failure::new(format!("an answer has no status: {head:.1000}")))?;
        Ok(HttpAnswer { status, head, body })
    }

    /// Waits for the head of an answer: where its body begins, and how long that is.
    async fn head(&mut self) -> Result<(usize, usize)> {
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(Failure::new("the server closed an HTTP connection"));
            }
            if let Some(found) = head_and_length(&self.answer) {
                return Ok(found);
            }
        }
    }
}

impl HttpAnswer<'_> {
    /// The headers, their names in lower case.
    pub(crate) fn headers(&self) -> Vec<(String, &str)> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect()
    }
}

/// Where the body begins and how long it is, once the head is there.
fn head_and_length(answer: &[u8]) -> Option<(usize, usize)> {
    let head = answer.windows(4).take(LONGEST_HEAD).position(|bytes| bytes == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&answer[..head]).ok()?;
    if text.starts_with("HTTP/1.1 204 ") {
        return Some((head + 4, 0));
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    Some((head + 4, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_answer_is_read_once_its_head_is_whole() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(head_and_length(answer), Some((answer.len() - 2, 2)));
        assert_eq!(head_and_length(&answer[..20]), None);
        assert_eq!(head_and_length(b"HTTP/1.1 204 No Content\r\n\r\n"), Some((27, 0)));
    }
}
