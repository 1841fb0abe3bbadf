//! What goes into a segment comes out, in the bytes that are stored, and damage is noticed.

use super::*;

fn making(ids: (u64, u64)) -> Making {
    Making { build: 3, number: 77, ids, level: 0 }
}

fn built(texts: &[(u64, &[&str])], ids: (u64, u64)) -> NewSegment {
    let mut builder = Builder::default();
    for (id, words) in texts {
        builder.document(Document { id: *id, minute: *id as i64 * 10 });
        words.iter().for_each(|word| builder.term(TermClass::Word, word));
    }
    builder.finish(making(ids))
}

#[test]
fn a_segment_gives_back_what_was_put_into_it() {
    let segment = built(&[(7, &["low", "tide", "low"]), (12, &["tide"]), (3, &["high"])], (5, 12));
    let SegmentHead { first_id, last_id, least_id, documents: count, minutes, .. } = segment.head;
    assert_eq!((first_id, last_id, least_id, count, minutes), (5, 12, 3, 3, (30, 120)));
    assert_eq!(SegmentHead::read(&segment.head.to_bytes()).as_ref(), Ok(&segment.head));
    let ids: Vec<u64> =
        documents(&segment.parts[0]).expect("whole").iter().map(|document| document.id).collect();
    assert_eq!(ids, [12, 7, 3]);
    assert_eq!(terms(&segment.parts[1]), Ok("Whigh\0Wlow\0Wtide"));
    let postings = Postings::new(&segment.parts[2]).expect("whole");
    let mut of_tide = Vec::new();
    postings.of(2, |number| of_tide.push(number)).expect("whole");
    assert_eq!(of_tide, [0, 1]);
    assert!(postings.of(3, |_| ()).is_err());
}

/// They lie in files and tables until everything is indexed again.
#[test]
fn segments_stay_as_they_are_stored() {
    let segment = built(&[(300, &["ab"]), (301, &["ab", "b"])], (300, 301));
    assert_eq!(opened(&segment.parts[0]), Ok(&[2, 0xad, 2, 0x84, 0x2f, 1, 19][..]));
    assert_eq!(segment.parts[1], b"Wab\0Wb~3r\xc3");
    assert_eq!(opened(&segment.parts[2]), Ok(&[2, 2, 1, 0, 0, 0][..]));
    let hex: String = segment.head.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "01034dac02ad02001f02ac02f02e842f0103576162329eb933");
}

#[test]
fn the_parts_that_may_have_a_term_are_found() {
    let words: Vec<String> = (0..20_000).map(|n| format!("word{n:05}")).collect();
    let mut builder = Builder::default();
    builder.document(Document { id: 1, minute: 0 });
    words.iter().for_each(|word| builder.term(TermClass::Word, word));
    let NewSegment { head, parts } = builder.finish(making((1, 1)));
    assert!(head.first_terms.len() > 3 && parts.len() == 1 + 2 * head.first_terms.len());
    for word in [&words[0], &words[10_000], &words[19_999]] {
        let term = format!("W{word}");
        let [part] = head.parts_between(&term, &term)[..] else { panic!("{term}") };
        assert!(terms(&parts[part as usize]).expect("whole").split('\0').any(|one| one == term), "{term}");
    }
    assert_eq!(head.parts_between("W", "X").len(), head.first_terms.len());
    assert!(head.parts_between("A", "B").is_empty());
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let segment = built(&[(300, &["ab"]), (301, &["ab", "b"])], (300, 301));
    for part in &segment.parts {
        let whole = opened(part).expect("whole").to_vec();
        for cut in 0..part.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff].into_iter().filter(|byte| *byte != part[cut]) {
                let mut damaged = part.clone();
                damaged[cut] = byte;
                assert!(opened(&damaged).is_err());
                // As if somebody had sealed it.
                let Some(place) = whole.get(cut) else { continue };
                let mut forged = whole.clone();
                forged[cut] = place.wrapping_add(byte).wrapping_add(1);
                let forged = sealed(forged);
                _ = (documents(&forged), terms(&forged));
                if let Ok(postings) = Postings::new(&forged) {
                    (0..3).for_each(|at| _ = postings.of(at, |_| ()));
                }
            }
            assert!(documents(&part[..cut]).is_err() && Postings::new(&part[..cut]).is_err());
        }
    }
}
