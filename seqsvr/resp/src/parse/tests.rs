//! Requests, whole and in pieces, and bytes that are none.

use proptest::prelude::*;

use super::*;

/// The words of a request, and where it ends.
type Request = (Vec<Vec<u8>>, usize);

/// The first request.
fn read(input: &[u8], limits: &Limits) -> Result<Option<Request>, Malformed> {
    let mut words = Vec::new();
    Ok(match parse(input, limits, &mut words)? {
        Parsed::Whole(end) => Some((words.into_iter().map(|word| input[word].to_vec()).collect(), end)),
        Parsed::Part => None,
    })
}

fn written(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

proptest! {
    #[test]
    fn what_a_client_writes_is_read_and_no_shorter_piece_is(
        words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8),
        more in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let bytes = written(&words);
        let whole = bytes.len();
        for end in 0..whole {
            prop_assert_eq!(read(&bytes[..end], &KNOWN), Ok(None));
        }
        let with_more: Vec<u8> = bytes.into_iter().chain(more).collect();
        prop_assert_eq!(read(&with_more, &KNOWN), Ok(Some((words, whole))));
    }

    #[test]
    fn any_bytes_are_refused_or_read_within_the_limits(
        start in prop_oneof![Just(""), Just("*"), Just("*2\r\n$"), Just("*1\r\n$3\r\n"), Just("GET ")],
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'$'), Just(b'1')], 0..200),
    ) {
        let input: Vec<u8> = start.bytes().chain(bytes).collect();
        let limits = Limits { words: 4, word: 32, request: 100 };
        match read(&input, &limits) {
            Ok(Some((words, end))) => {
                prop_assert!(words.len() <= limits.words && end <= input.len());
                prop_assert!(words.iter().all(|word| word.len() <= limits.word));
            }
            // What may go on has not reached the limit: the buffer stays bounded.
            Ok(None) => prop_assert!(input.len() < limits.request + HEAD),
            Err(_) => {}
        }
    }
}

#[test]
fn lines_are_words_too() {
    let words = |text: &str| read(text.as_bytes(), &KNOWN);
    let ping = vec![b"PING".to_vec()];
    assert_eq!(words("PING\r\n"), Ok(Some((ping.clone(), 6))));
    assert_eq!(words("  PING \nINCR"), Ok(Some((ping, 8))));
    assert_eq!(words("\r\n"), Ok(Some((vec![], 2))));
    assert_eq!(words("INCR a"), Ok(None));
    assert_eq!(words("ECHO \"a b\"\r\n"), Err(Malformed::Quotes));
}

#[test]
fn each_mistake_has_its_name_before_the_rest_has_come() {
    let refused = |text: &str| read(text.as_bytes(), &KNOWN).expect_err(text);
    assert_eq!(refused("*1\r\n$536870912\r\n"), Malformed::Length { most: 64 << 10 });
    assert_eq!(refused("*1\r\n$-1\r\n"), Malformed::Length { most: 64 << 10 });
    assert_eq!(refused("*1000000\r\n"), Malformed::Count { most: 10_000 });
    assert_eq!(refused("*x\r\n"), Malformed::Count { most: 10_000 });
    assert_eq!(refused(&format!("*{}", "1".repeat(HEAD))), Malformed::Count { most: 10_000 });
    assert_eq!(refused("*1\r\n:3\r\n"), Malformed::Dollar);
    assert_eq!(refused("*1\r\n$1\r\nabc"), Malformed::End);
    assert_eq!(refused("POST / HTTP/1.1\r\n"), Malformed::Http);
    assert_eq!(refused("Host: 127.0.0.1\r\n"), Malformed::Http);
    assert_eq!(refused(&"x".repeat(64 << 10)), Malformed::Request { most: 64 << 10 });
    let many = written(&vec![vec![b'x'; 60 << 10]; 5]);
    assert_eq!(read(&many, &KNOWN), Err(Malformed::Request { most: 256 << 10 }));
    assert_eq!(read(b"*1\r\n$2000\r\n", &STRANGER), Err(Malformed::Length { most: 1_024 }));
}

#[test]
fn numbers_are_written_in_one_way() {
    assert_eq!(number(b"0"), Some(0));
    assert_eq!(number(b"-12"), Some(-12));
    assert_eq!(number(b"9223372036854775807"), Some(i64::MAX));
    for wrong in ["", "-", "-0", "+1", "01", " 1", "1 ", "9223372036854775808", "1.0"] {
        assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
    }
}
