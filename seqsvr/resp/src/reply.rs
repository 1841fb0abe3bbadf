//! Answers as bytes, in the form of the protocol that the client speaks. Pure: appends to a buffer that the connection
//! owns.

use std::io::Write as _;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The one that every client speaks at first.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// A buffer of answers.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// Bytes that are not sent yet.
    pub(crate) bytes: Vec<u8>,
    /// The form of maps and of nothing.
    pub(crate) protocol: Protocol,
}

impl Replies {
    /// `OK` and the like.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(format_args!("+{text}"));
    }

    /// An error: a word in capitals for programs, and a sentence for people.
    pub(crate) fn error(&mut self, code: &str, text: &str) {
        // A line break would end the answer; texts may repeat what a client sent.
        let text = text.replace(['\r', '\n'], " ");
        self.line(format_args!("-{code} {text}"));
    }

    /// A number.
    pub(crate) fn integer(&mut self, number: u64) {
        let (mut digits, mut at, mut rest) = ([0_u8; 20], 20, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.push(b':');
        self.bytes.extend_from_slice(&digits[at..]);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A string of bytes.
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.line(format_args!("${}", bytes.len()));
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A number as `GET` answers it.
    pub(crate) fn number(&mut self, number: u64) {
        self.bulk(number.to_string().as_bytes());
    }

    /// Nothing.
    pub(crate) fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array of so many answers.
    pub(crate) fn array(&mut self, length: usize) {
        self.line(format_args!("*{length}"));
    }

    /// The head of so many pairs of answers.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(2 * pairs),
            Protocol::Resp3 => self.line(format_args!("%{pairs}")),
        }
    }

    /// A text for people.
    pub(crate) fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(format_args!("={}\r\ntxt:{text}", text.len() + 4)),
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "{text}\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies { protocol, ..Replies::default() };
        write(&mut replies);
        String::from_utf8(replies.bytes).expect("text")
    }

    #[test]
    fn answers_have_the_form_of_the_protocol() {
        use Protocol::{Resp2, Resp3};
        for protocol in [Resp2, Resp3] {
            let write = |write: fn(&mut Replies)| written(protocol, write);
            assert_eq!(write(|to| to.simple("OK")), "+OK\r\n");
            assert_eq!(write(|to| to.error("ERR", "a\r\nb")), "-ERR a  b\r\n");
            assert_eq!(write(|to| to.integer(0)), ":0\r\n");
            assert_eq!(write(|to| to.integer(u64::MAX)), ":18446744073709551615\r\n");
            assert_eq!(write(|to| to.bulk(b"ab")), "$2\r\nab\r\n");
            assert_eq!(write(|to| to.number(10)), "$2\r\n10\r\n");
            assert_eq!(write(|to| to.array(2)), "*2\r\n");
        }
        assert_eq!(written(Resp2, Replies::null), "$-1\r\n");
        assert_eq!(written(Resp3, Replies::null), "_\r\n");
        assert_eq!(written(Resp2, |to| to.map(2)), "*4\r\n");
        assert_eq!(written(Resp3, |to| to.map(2)), "%2\r\n");
        assert_eq!(written(Resp2, |to| to.text("ab")), "$2\r\nab\r\n");
        assert_eq!(written(Resp3, |to| to.text("ab")), "=6\r\ntxt:ab\r\n");
    }
}
