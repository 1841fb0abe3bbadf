//! Names of people and groups: which characters a new one may have, what a name looks like, and by which of its parts it
//! is found.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{
    GeneralCategory, GeneralCategoryGroup, UnicodeEmoji as _, UnicodeGeneralCategory as _,
};

/// Joins two emoji to one.
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Asks for the coloured form of an emoji.
const EMOJI_FORM: char = '\u{fe0f}';

/// The text that others see in place of the name of a deleted account. The page shows it in the viewer's language.
pub const DELETED_ACCOUNT: &str = "Deleted account";

/// Names that no new account can have, since they stand for deleted accounts, or for everybody where a message mentions people: one of
/// each for each language of the page.
const RESERVED: [&str; 4] = [DELETED_ACCOUNT, "已注销账号", "all", "所有人"];

/// Names that stand for a server's operators, or for all its people: an operator alone gives them to accounts.
const OFFICIAL: [&str; 20] = [
    "admin",
    "administrator",
    "everybody",
    "everyone",
    "help",
    "info",
    "moderator",
    "official",
    "operator",
    "root",
    "security",
    "service",
    "staff",
    "support",
    "system",
    "team",
    "tidemark",
    "webmaster",
    "管理员",
    "系统",
];

/// Whether `name` can be taken for one that stands for something else.
pub fn is_reserved(name: &str) -> bool {
    is_like(name, &RESERVED)
}

/// Whether `name` can be taken for that of somebody who runs the server, or of everybody.
pub fn is_official(name: &str) -> bool {
    is_like(name, &OFFICIAL)
}

fn is_like(name: &str, names: &[&str]) -> bool {
    let skeletons = skeletons(name);
    names.iter().any(|one| !skeletons.is_disjoint(&self::skeletons(one)))
}

/// Marks on one letter: more than any script needs cover what stands above and below.
const MOST_MARKS: usize = 3;

/// Whether `name`, which has no spaces around it, has visible characters alone and single spaces between them. Of what is not seen by
/// itself only that passes which makes up an emoji; of marks, as many as a letter before them may have.
pub fn is_visible(name: &str) -> bool {
    let (mut before, mut marks) = (None, 0);
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if marks > MOST_MARKS || (marks > 0 && matches!(before, None | Some(' '))) {
            return false;
        }
        let passes = match c {
            ' ' => before != Some(' '),
            EMOJI_FORM => before.is_some_and(is_emoji),
            ZERO_WIDTH_JOINER => {
                before.is_some_and(|c| is_emoji(c) || c == EMOJI_FORM)
                    && characters.peek().copied().is_some_and(is_emoji)
            }
            c => is_seen(c),
        };
        if !passes {
            return false;
        }
        before = Some(c);
    }
    true
}

/// The skeletons (Unicode UTS #39) of a name as it is written, in small and in capital letters. Names that have one in common can be
/// taken for each other. Invisible characters are left out, and compatible ones (full-width letters, ligatures) become the usual ones.
/// Any text has skeletons. Never shown.
pub fn skeletons(name: &str) -> BTreeSet<String> {
    let spaced = name.nfkc().map(|c| if c.is_whitespace() { ' ' } else { c });
    let seen: String = spaced.filter(|&c| c == ' ' || is_seen(c)).collect();
    let words: Vec<&str> = seen.split(' ').filter(|word| !word.is_empty()).collect();
    let name = words.join(" ");
    let forms = [name.to_lowercase(), name.to_uppercase(), name];
    forms.iter().map(|form| unicode_security::skeleton(form).collect()).collect()
}

/// A name as it is kept: without spaces around it, and with composed letters (NFC). Keyboards write the same letters in different ways.
pub fn normal_name(name: &str) -> String {
    name.trim().nfc().collect()
}

/// The form in which names are compared and looked for. Of imported names, too, which stay as they were.
pub fn name_key(name: &str) -> String {
    name.nfc().collect::<String>().to_lowercase()
}

/// The endings of a name's lower-case form that begin inside it and have two characters or more: a part of the name is the beginning
/// of one of these, or of the name.
pub fn name_endings(name: &str) -> BTreeSet<String> {
    let key = name_key(name);
    let begins = key.char_indices().skip(1).filter(|(_, c)| *c != ' ' && !is_attached(*c));
    let endings = begins.map(|(at, _)| &key[at..]).filter(|ending| ending.chars().nth(1).is_some());
    endings.map(str::to_owned).collect()
}

/// Whether a character belongs to the one before it.
fn is_attached(c: char) -> bool {
    matches!(c, ZERO_WIDTH_JOINER | EMOJI_FORM) || is_mark(c)
}

fn is_mark(c: char) -> bool {
    c != EMOJI_FORM && c.general_category_group() == GeneralCategoryGroup::Mark
}

/// Digits are no emoji here, though Unicode says so for the sake of keycaps.
fn is_emoji(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char()
}

/// Whether a character is seen by itself, or changes what stands before it visibly.
fn is_seen(c: char) -> bool {
    let is_seen = !matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
    );
    is_seen && !is_ignorable(c)
}

/// Characters of other categories that are shown as nothing, or as a space: Default_Ignorable_Code_Point in Unicode's
/// DerivedCoreProperties, and the blank pattern of Braille.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_scripts_are_visible() {
        for name in [
            "Ann Lee",
            "O'Neill-Müller 2",
            "Zoë",
            "e\u{301}",
            "Ангелина",
            "王小明",
            "山田太郎",
            "이영희",
            "अनिता",
            "ทักษิณ",
            "علی",
            "שרה",
            "🐙",
            "Ann ❤\u{fe0f}",
            "👩\u{200d}💻",
            "👩🏽\u{200d}💻",
            "❤\u{fe0f}\u{200d}🔥",
        ] {
            assert!(is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn what_is_not_seen_is_noticed_wherever_it_stands() {
        let unseen = "\u{0}\n\u{7f}\u{85}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180e}\u{2003}\u{200b}\u{200c}\
                      \u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2063}\u{2065}\u{2066}\u{2069}\u{206f}\u{2800}\
                      \u{3000}\u{3164}\u{e000}\u{fe00}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{1d173}\u{e0001}\u{e0061}\u{e0100}\u{f0000}";
        for c in unseen.chars() {
            for name in
                [format!("{c}Ann"), format!("A{c}nn"), format!("Ann{c}"), format!("王{c}"), format!("1{c}")]
            {
                assert!(!is_visible(&name), "{name:?}");
            }
        }
        for name in [
            "Ann  Lee",
            "🐙\u{200d}",
            "\u{200d}🐙",
            "🐙\u{200d}\u{200d}🐙",
            "🐙\u{fe0f}\u{fe0f}",
            "🐙\u{200d}a",
        ] {
            assert!(!is_visible(name), "{name:?}");
        }
    }

    #[test]
    fn marks_stand_on_a_letter_and_are_few() {
        let stacked = format!("a{}", "\u{301}".repeat(MOST_MARKS));
        assert!(is_visible(&stacked) && is_visible("น้ำ") && is_visible("क्षि"));
        for bad in ["\u{301}a", "a \u{301}", &format!("{stacked}\u{301}")] {
            assert!(!is_visible(bad), "{bad:?}");
        }
    }

    #[test]
    fn names_of_those_who_run_a_server_are_known_in_any_form() {
        for name in ["Administrator", "ADMIN", "Ro0t", "Supp\u{43e}rt", "管理员", "Everybody"] {
            assert!(is_official(name), "{name:?}");
        }
        for name in ["Adam", "Ally", "Rooty", "Ann Admin"] {
            assert!(!is_official(name), "{name:?}");
        }
    }

    #[test]
    fn a_word_for_everybody_is_the_name_of_nobody() {
        for name in ["all", "All", "ALL", "a\u{406}l", "\u{ff41}ll", "所有人", "Deleted account"] {
            assert!(is_reserved(name), "{name:?}");
        }
        assert!(!is_reserved("Ally") && !is_reserved("alle"));
    }

    #[test]
    fn names_that_can_be_taken_for_each_other_have_a_skeleton_in_common() {
        for (name, other) in [
            ("Ann", "\u{410}nn"),
            ("Ann", "ANN"),
            ("Ann", "A\u{200b}nn"),
            ("Ann", "\u{391}nn"),
            ("Ann Lee", "Ann\u{a0} Lee"),
            ("Bob", "\u{412}\u{41e}\u{412}"),
            ("Bob", "B0b"),
            ("Iris", "lris"),
            ("Iris", "1ris"),
            ("modem", "modern"),
            ("O'Neill", "O\u{2019}Neill"),
            ("Ann", "\u{ff21}\u{ff4e}\u{ff4e}"),
            ("Zo\u{eb}", "Zoe\u{308}"),
            ("Iris", "lRIS"),
            ("файл", "ФАЙЛ"),
            ("файл", "Ф\u{41}ЙЛ"),
        ] {
            assert!(!skeletons(name).is_disjoint(&skeletons(other)), "{name:?} {other:?}");
        }
        for (name, other) in [
            ("Ann", "Anna"),
            ("Ann", "Änn"),
            ("Lia", "Ila"),
            ("王小明", "王小朋"),
            ("Ann Lee", "AnnLee"),
            ("Анна", "Anna"),
            ("🐙", "🐘"),
        ] {
            assert!(skeletons(name).is_disjoint(&skeletons(other)), "{name:?} {other:?}");
        }
        assert_eq!(skeletons("\u{200b}"), [String::new()].into(), "any text has one");
    }

    #[test]
    fn a_name_is_the_same_whatever_keyboard_writes_it() {
        assert_eq!(normal_name(" Zoe\u{308} "), "Zo\u{eb}");
        assert_eq!(name_key("ZOE\u{308}"), name_key("zo\u{eb}"));
        assert_eq!(name_key("\u{1112}\u{1161}\u{11ab}"), "\u{d55c}");
        assert_ne!(name_key("Zoe"), name_key("Zo\u{eb}"));
    }

    #[test]
    fn a_name_has_an_ending_for_each_place_inside_it_where_a_part_can_begin() {
        let endings = |name: &str| name_endings(name).into_iter().collect::<Vec<_>>();
        assert_eq!(endings("Ann Lee"), ["ee", "lee", "n lee", "nn lee"]);
        assert_eq!(endings("王小明"), ["小明"]);
        assert_eq!(endings("nene"), ["ene", "ne"]);
        assert_eq!(endings("e\u{301}a"), Vec::<String>::new());
        assert_eq!(endings("Zoe\u{308}"), endings("zo\u{eb}"));
        assert_eq!(endings("A👩\u{200d}💻"), ["👩\u{200d}💻"]);
        assert_eq!(endings("A"), Vec::<String>::new());
    }
}
