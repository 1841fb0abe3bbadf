//! Codes as people meet them: short, irregular, one for each number, and readable after a rotation.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::{Issued, Plugin as _, Range, Tag};

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn key(version: u8) -> CodeKey {
    CodeKey { version, secret: format!("secret number {version:03}") }
}

fn options(first: u64, last: u64) -> CodecOptions {
    CodecOptions {
        range: Range { first, last },
        alphabet: BASE_58.to_owned(),
        check_symbol: false,
        keys: vec![key(1)],
    }
}

fn codec(options: &CodecOptions) -> Codec {
    Codec::new(&tag("invite"), options).unwrap()
}

#[test]
fn codes_are_as_short_as_the_range_and_never_collide() {
    let codec = codec(&options(100, 100 + 58 * 58 - 1));
    let mut seen = HashSet::new();
    for number in 100..100 + 58 * 58 {
        let code = codec.encode(number).unwrap();
        assert_eq!(code.len(), 2);
        assert_eq!(codec.decode(&code), Ok(number));
        assert!(seen.insert(code));
    }
    assert_eq!(seen.len(), 58 * 58, "every code of two symbols is used");
}

#[test]
fn numbers_outside_of_the_range_have_no_code() {
    let codec = codec(&options(100, 199));
    for number in [0, 99, 200, u64::MAX] {
        let error = codec.encode(number).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{number} is outside of 100 to 199, the range that has codes; widen it under a new tag")
        );
    }
}

#[test]
fn what_is_no_code_is_refused_with_the_reason() {
    let with_check = CodecOptions { check_symbol: true, ..options(0, 99_999) };
    let codec = codec(&with_check);
    let code = codec.encode(7).unwrap().to_string();
    assert_eq!(code.len(), 4);
    assert_eq!(codec.decode(""), Err(DecodeError::Length { expected: 4, length: 0 }));
    assert_eq!(codec.decode("111111"), Err(DecodeError::Length { expected: 4, length: 6 }));
    assert_eq!(codec.decode("0OIl"), Err(DecodeError::Symbol));
    assert_eq!(codec.decode("é11"), Err(DecodeError::Symbol));
    let last = if code.ends_with('1') { '2' } else { '1' };
    let mistyped = format!("{}{last}", &code[..3]);
    assert_eq!(codec.decode(&mistyped), Err(DecodeError::Check));
    let plain = super::tests::codec(&options(0, 99_999));
    assert_eq!(plain.decode("zzz"), Err(DecodeError::NoNumber), "58^3 codes for 100,000 numbers");
}

#[test]
fn after_a_rotation_old_codes_are_read_and_new_ones_differ() {
    let one = codec(&options(0, 57));
    let two = codec(&CodecOptions { keys: vec![key(2), key(1)], ..options(0, 57) });
    let three = codec(&CodecOptions { keys: vec![key(3), key(2)], ..options(0, 57) });
    let mut seen = HashSet::new();
    for number in 0..58 {
        for writer in [&one, &two, &three] {
            let code = writer.encode(number).unwrap();
            assert!(seen.insert(code), "{code} stands for two numbers or versions");
            if !std::ptr::eq(writer, &three) {
                assert_eq!(two.decode(&code), Ok(number));
            }
        }
    }
    let oldest = one.encode(7).unwrap();
    assert_eq!(three.decode(&oldest), Err(DecodeError::UnknownVersion { version: 1 }));
    let newest = three.encode(7).unwrap();
    assert_eq!(two.decode(&newest), Err(DecodeError::UnknownVersion { version: 3 }));
}

async fn open(options: &CodecOptions, ledger: &dyn CodeLedger) -> Result<Scramble, OpenScrambleError> {
    Scramble::open(BTreeMap::from([(tag("invite"), codec(options))]), ledger).await
}

async fn changes_are_refused_and_rotations_are_not(ledger: &dyn CodeLedger) {
    for _ in 0..2 {
        open(&options(0, 999), ledger).await.unwrap();
    }
    let other_secret = CodeKey { version: 1, secret: "another secret of mine".to_owned() };
    let other_alphabet = BASE_58.chars().rev().collect();
    for changed in [
        CodecOptions { keys: vec![other_secret], ..options(0, 999) },
        CodecOptions { alphabet: other_alphabet, ..options(0, 999) },
        CodecOptions { check_symbol: true, ..options(0, 999) },
        options(0, 1_000),
        options(1, 999),
    ] {
        let error = open(&changed, ledger).await.unwrap_err();
        assert_eq!(error, OpenScrambleError::Changed(CodecChanged { tag: tag("invite"), version: 1 }));
        assert!(error.to_string().contains("restore them, and add a new key version"), "{error}");
    }
    let keys = |keys| CodecOptions { keys, ..options(0, 999) };
    open(&keys(vec![key(1), key(2)]), ledger).await.unwrap();
    open(&keys(vec![key(2)]), ledger).await.unwrap();
    let other_second = CodeKey { version: 2, ..key(3) };
    let error = open(&keys(vec![key(1), other_second]), ledger).await.unwrap_err();
    assert_eq!(error, OpenScrambleError::Changed(CodecChanged { tag: tag("invite"), version: 2 }));
}

#[tokio::test]
async fn a_changed_key_or_alphabet_for_existing_codes_is_refused() {
    changes_are_refused_and_rotations_are_not(&MemoryLedger::default()).await;
}

#[tokio::test]
async fn a_change_is_noticed_by_a_later_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("codes.db");
    open(&options(0, 999), &SqliteLedger::open(&path).await.unwrap()).await.unwrap();
    changes_are_refused_and_rotations_are_not(&SqliteLedger::open(&path).await.unwrap()).await;
}

#[tokio::test]
async fn a_change_is_noticed_by_another_machine() {
    let url = tidemark_test_support::servers::postgres::url();
    open(&options(0, 999), &PostgresLedger::open(url).await.unwrap()).await.unwrap();
    changes_are_refused_and_rotations_are_not(&PostgresLedger::open(url).await.unwrap()).await;
}

#[tokio::test]
async fn the_plugin_spells_and_reads_the_numbers_of_its_tags() {
    let plugin = open(&options(100, 199), &MemoryLedger::default()).await.unwrap();
    let mut issued = Issued::new(vec![Range { first: 100, last: 102 }]);
    plugin.after(&tag("invite"), &mut issued).unwrap();
    assert_eq!(issued.codes().len(), 3);
    for (number, code) in (100..).zip(issued.codes()) {
        assert_eq!(plugin.decode(&tag("invite"), code), Some(Ok(number)));
    }
    assert_eq!(
        plugin.decode(&tag("invite"), "0"),
        Some(Err(codec(&options(100, 199)).decode("0").unwrap_err().to_string()))
    );
    assert_eq!(plugin.decode(&tag("other"), "11"), None);
    let mut beyond = Issued::one(200);
    let refused = plugin.after(&tag("invite"), &mut beyond).unwrap_err();
    assert!(refused.contains("200 is outside of 100 to 199"), "{refused}");
}

#[test]
fn each_wrong_setting_has_its_own_error() {
    let error = |options: CodecOptions| Codec::new(&tag("invite"), &options).unwrap_err().to_string();
    let keys = |keys| CodecOptions { keys, ..options(0, 9) };
    assert!(error(options(5, 4)).contains("is empty"));
    assert!(error(options(0, 1 << 63)).contains("more than 2^63"));
    assert!(error(keys(vec![])).contains("add one with version 1"));
    let short = CodeKey { version: 1, secret: "short".to_owned() };
    assert!(error(keys(vec![short])).contains("has 5 bytes; use at least 16"));
    assert!(error(keys(vec![key(0)])).contains("version 0 is there twice or is not between 1 and 59"));
    assert!(error(keys(vec![key(2), key(2)])).contains("version 2 is there twice"));
    assert!(error(keys(vec![key(60)])).contains("version 60"));
}

#[test]
fn a_secret_does_not_show_in_debug_output() {
    let shown = format!("{:?} {:?}", options(0, 9), codec(&options(0, 9)));
    assert!(!shown.contains("secret number"), "{shown}");
}

#[test]
fn tags_do_not_share_codes_of_one_key() {
    let other = Codec::new(&tag("order"), &options(0, 1 << 40)).unwrap();
    let one = codec(&options(0, 1 << 40));
    assert!((0..8).any(|number| one.encode(number) != other.encode(number)));
}

proptest! {
    #[test]
    fn every_number_of_every_range_comes_back(
        first: u64, size in 1_u64..=1 << 63, at: u64, check_symbol: bool, version in 1_u8..=59,
    ) {
        let first = first % (u64::MAX - size);
        let codec = codec(&CodecOptions { check_symbol, keys: vec![key(version)], ..options(first, first + (size - 1)) });
        let number = first + at % size;
        let code = codec.encode(number).unwrap();
        prop_assert_eq!(codec.decode(&code), Ok(number));
    }

    #[test]
    fn whatever_is_decoded_is_written_the_same(text in "[1-9A-HJ-NP-Za-km-z]{3,5}") {
        let codec = codec(&CodecOptions { check_symbol: true, ..options(1_000, 100_000) });
        if let Ok(number) = codec.decode(&text) {
            let written = codec.encode(number).unwrap();
            prop_assert_eq!(&*written, text.as_str());
        }
    }

    #[test]
    fn a_fingerprint_reads_as_written(first in 0_u64..1_000) {
        let codec = codec(&options(first, 2_000));
        for (_, fingerprint) in codec.fingerprints() {
            prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        }
    }
}
