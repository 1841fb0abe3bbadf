//! Texts as people write them: words of English length and Chinese characters, a few of them often and most of them seldom.

/// Words and characters that there are.
const WORDS: usize = 60_000;
const CHARACTERS: usize = 3_000;

/// One of three texts is Chinese.
const CHINESE: u32 = 3;

/// The word of this rank: no two are alike.
pub(super) fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 32] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta",
        "ve", "wi", "xo", "zu", "bra", "cle", "dri", "flo", "gru", "sha", "tre", "pli", "spo", "stu", "tha",
        "whe",
    ];
    let (mut word, mut rest) = (String::new(), rank + 1);
    while rest > 0 {
        word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
    }
    word
}

/// The Chinese character of this rank.
pub(super) fn character(rank: usize) -> char {
    char::from_u32(0x4e00 + (rank * 7 % 20_000) as u32).unwrap_or('一')
}

/// A rank below `count`: each twice as far is half as frequent.
fn rank(count: usize) -> usize {
    let log = rand::random::<f64>() * (count as f64).ln();
    (log.exp() as usize).min(count) - 1
}

/// A text of some fifty bytes.
pub(super) fn text() -> String {
    if rand::random_range(0..CHINESE) == 0 {
        return (0..rand::random_range(6..30)).map(|_| character(rank(CHARACTERS))).collect();
    }
    let words: Vec<String> = (0..rand::random_range(3..14)).map(|_| word(rank(WORDS))).collect();
    words.join(" ")
}

/// Searches of each nature: their name, and some of them.
pub(super) fn searches() -> Vec<(&'static str, Vec<String>)> {
    let pair = |rank| format!("{}{}", character(rank), character(rank / 2 + 1));
    let part = |rank: usize| {
        let word = word(rank);
        word[1..word.len() - 1].to_owned()
    };
    vec![
        ("common English", (1..11).map(|n| word(3 * n)).collect()),
        ("rare English", (1..11).map(|n| word(4_000 * n + 17)).collect()),
        ("parts of words", (1..11).map(|n| part(2_500 * n + 11)).collect()),
        ("two English words", (1..11).map(|n| format!("{} {}", word(20 * n), word(700 * n))).collect()),
        ("common Chinese", (1..11).map(|n| pair(2 * n)).collect()),
        ("rare Chinese", (1..11).map(|n| pair(200 * n + 5)).collect()),
        ("not there", (1..11).map(|n| format!("zzq{}", word(n))).collect()),
    ]
}
