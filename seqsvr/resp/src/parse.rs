//! Requests in bytes: an array of bulk strings, or a line of words as people type it. Pure, and owns nothing: it looks at
//! what has arrived, and says where the words of the first request lie. Called by `connection` for each request.

use std::ops::Range;

/// How much one request may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Words, the name of the command among them.
    pub(crate) words: usize,
    /// Bytes of one word.
    pub(crate) word: usize,
    /// Bytes of the whole request.
    pub(crate) request: usize,
}

/// The limits of a client that has not shown its token yet.
pub(crate) const STRANGER: Limits = Limits { words: 16, word: 1_024, request: 4_096 };
/// The limits of all others.
pub(crate) const KNOWN: Limits = Limits { words: 10_000, word: 64 << 10, request: 256 << 10 };

/// Bytes of a line that announces a count or a length.
const HEAD: usize = 24;

/// How much of a request has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// All of it: it ends after so many bytes. Without words there is nothing to answer.
    Whole(usize),
    /// Its beginning.
    Part,
}

/// A request that cannot be understood; the connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A count of words that is no number, or too large.
    Count { most: usize },
    /// A length that is no number, or too large.
    Length { most: usize },
    /// A word is not announced as `$LENGTH`.
    Dollar,
    /// A word does not end where its length says.
    End,
    /// The request is too long.
    Request { most: usize },
    /// Quotes in a line of words.
    Quotes,
    /// A request of HTTP: a page of a browser may have sent it.
    Http,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count { most } => {
                write!(f, "invalid multibulk length: send 1 to {most} words in a command")
            }
            Self::Length { most } => write!(f, "invalid bulk length: send words of at most {most} bytes"),
            Self::Dollar => write!(f, "expected '$': send a command as an array of bulk strings"),
            Self::End => write!(f, "a word does not end with CR LF after its length"),
            Self::Request { most } => write!(f, "too big a command: send at most {most} bytes in one"),
            Self::Quotes => write!(f, "quotes in an inline command: send it as an array of bulk strings"),
            Self::Http => write!(f, "this is HTTP, and this port speaks the Redis protocol"),
        }
    }
}

/// Looks for the first request in `input`, and puts the places of its words into `words`.
pub(crate) fn parse(
    input: &[u8],
    limits: &Limits,
    words: &mut Vec<Range<usize>>,
) -> Result<Parsed, Malformed> {
    words.clear();
    match input.first() {
        None => Ok(Parsed::Part),
        Some(b'*') => array(input, limits, words),
        Some(_) => line(input, limits, words),
    }
}

fn array(input: &[u8], limits: &Limits, words: &mut Vec<Range<usize>>) -> Result<Parsed, Malformed> {
    let count = Malformed::Count { most: limits.words };
    let Some((announced, mut at)) = head(input, 1).map_err(|()| count)? else { return Ok(Parsed::Part) };
    // Clients that send nothing get nothing: Redis has it so.
    let announced = usize::try_from(announced.max(0)).map_err(|_| count)?;
    if announced > limits.words {
        return Err(count);
    }
    let too_long = Malformed::Request { most: limits.request };
    for _ in 0..announced {
        let length = Malformed::Length { most: limits.word };
        match input.get(at) {
            None if at >= limits.request => return Err(too_long),
            None => return Ok(Parsed::Part),
            Some(b'$') => {}
            Some(_) => return Err(Malformed::Dollar),
        }
        let Some((bytes, from)) = head(input, at + 1).map_err(|()| length)? else { return Ok(Parsed::Part) };
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= limits.word).ok_or(length)?;
        let to = from + bytes;
        if to + 2 > limits.request {
            return Err(too_long);
        }
        match input.get(to..to + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Malformed::End),
            None => return Ok(Parsed::Part),
        }
        words.push(from..to);
        at = to + 2;
    }
    Ok(Parsed::Whole(at))
}

/// The number that ends with the line at `from`, and where the next line begins; nothing while the line goes on.
fn head(input: &[u8], from: usize) -> Result<Option<(i64, usize)>, ()> {
    let rest = &input[from..];
    let rest = &rest[..rest.len().min(HEAD)];
    let Some(end) = rest.iter().position(|&byte| byte == b'\r') else {
        return if rest.len() == HEAD { Err(()) } else { Ok(None) };
    };
    let number = number(&rest[..end]).ok_or(())?;
    match rest.get(end + 1) {
        Some(b'\n') => Ok(Some((number, from + end + 2))),
        None if rest.len() < HEAD => Ok(None),
        _ => Err(()),
    }
}

/// A decimal number as Redis writes it: no plus sign, no blanks, no zeros before it.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    if !plain || digits.is_empty() || text == b"-0" {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn line(input: &[u8], limits: &Limits, words: &mut Vec<Range<usize>>) -> Result<Parsed, Malformed> {
    let too_long = Malformed::Request { most: limits.word };
    let seen = &input[..input.len().min(limits.word)];
    let Some(end) = seen.iter().position(|&byte| byte == b'\n') else {
        return if seen.len() == limits.word { Err(too_long) } else { Ok(Parsed::Part) };
    };
    let mut from = None;
    for (at, &byte) in input[..=end].iter().enumerate() {
        match from {
            None if !byte.is_ascii_whitespace() => from = Some(at),
            Some(begin) if byte.is_ascii_whitespace() => {
                words.push(begin..at);
                from = None;
            }
            _ => {}
        }
        if matches!(byte, b'"' | b'\'') {
            return Err(Malformed::Quotes);
        }
    }
    if words.len() > limits.words {
        return Err(Malformed::Count { most: limits.words });
    }
    let first = words.first().map(|word| &input[word.clone()]);
    let of_http = |word: &[u8]| word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:");
    if first.is_some_and(of_http) {
        return Err(Malformed::Http);
    }
    Ok(Parsed::Whole(end + 1))
}

#[cfg(test)]
mod tests;
