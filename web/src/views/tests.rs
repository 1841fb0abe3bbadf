//! The rules for every page, in every language.

use super::*;

const HOSTILE: &str = "<script>alert(1)</script>\"'&";

const SHELL: Shell<'static> = Shell {
    uid: 10_001,
    name: "Ada",
    account: "10001-5",
    text_characters: 8_000,
    invites: true,
    chosen: None,
};
const LOG_IN: SignIn<'static> =
    SignIn { way: CardPurpose::LogIn, next: "/", sign_up: SignUp::Open, invite: "", has_ended: false };

/// Every page in one language, with all that may stand on it.
fn pages(language: Language) -> Vec<String> {
    let invite_to = |guest, sign_up_is_open| {
        invite(&Invite { group: "Sailing", from: "Ann", code: "ABC", guest, sign_up_is_open }, language)
    };
    let form = |misfit| {
        let view = NewInvite {
            group: "Sailing",
            gid: 7,
            most_days: 30,
            most_uses: 1_000,
            days: "7",
            uses: "10",
            misfit,
        };
        new_invite(&view, language)
    };
    vec![
        shell(&SHELL, language),
        shell(&Shell { chosen: Some(language), ..SHELL }, language),
        sign_in(&LOG_IN, language),
        sign_in(&SignIn { has_ended: true, sign_up: SignUp::Closed, ..LOG_IN }, language),
        sign_in(&SignIn { sign_up: SignUp::ByInvitation, ..LOG_IN }, language),
        sign_in(&SignIn { way: CardPurpose::Recover, ..LOG_IN }, language),
        sign_in(&SignIn { way: CardPurpose::SignUp, ..LOG_IN }, language),
        sign_in(&SignIn { way: CardPurpose::SignUp, sign_up: SignUp::Closed, ..LOG_IN }, language),
        sign_in(&SignIn { way: CardPurpose::SignUp, sign_up: SignUp::ByInvitation, ..LOG_IN }, language),
        sign_in(
            &SignIn { way: CardPurpose::SignUp, sign_up: SignUp::Invited, invite: "abc", ..LOG_IN },
            language,
        ),
        invite_to(Some("Ben"), true),
        invite_to(None, true),
        invite_to(None, false),
        form(None),
        form(Some(Misfit::Days)),
        form(Some(Misfit::Uses)),
        invite_link(&InviteLink { group: "Sailing", gid: 7, link: "https:/x/invites/ABC" }, language),
        failure(&PageFailure { status: 410, code: "expired_invite" }, language),
        failure(&PageFailure { status: 400, code: "of_another_version" }, language),
        not_found(language),
    ]
}

#[test]
fn a_name_is_text_wherever_it_stands() {
    for language in Language::all() {
        let page = shell(&Shell { name: HOSTILE, ..SHELL }, language);
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&#60;script&#62;alert(1)"));
        let page = sign_in(&SignIn { next: HOSTILE, ..LOG_IN }, language);
        assert!(!page.contains("<script>alert"));
        let view =
            Invite { group: HOSTILE, from: HOSTILE, code: "x", guest: Some(HOSTILE), sign_up_is_open: true };
        assert!(!invite(&view, language).contains("<script>alert"));
    }
}

#[test]
fn the_shell_tells_the_scripts_whose_page_it_is() {
    let page = shell(&SHELL, Language::ENGLISH);
    assert!(page.contains(r#"data-uid="10001""#));
    assert!(page.contains(r#"data-name="Ada""#));
    assert!(page.contains(r#"data-text-characters="8000""#));
}

#[test]
fn every_page_works_without_inline_scripts_and_styles() {
    for page in Language::all().flat_map(pages) {
        for (at, _) in page.match_indices("<script") {
            let tag = &page[at..at + page[at..].find('>').expect("the tag ends")];
            assert!(tag.contains(" src=\"/static/"), "inline or foreign: {tag}");
        }
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick="));
        assert!(!page.contains("//"), "nothing comes from another host");
    }
}

#[test]
fn every_page_links_only_files_that_exist() {
    for page in Language::all().flat_map(pages) {
        let mut links = 0;
        for part in page.split("\"/static/").skip(1) {
            let path = part.split('"').next().expect("the attribute ends");
            assert!(crate::asset(path).is_some_and(|found| found.immutable), "missing: {path}");
            links += 1;
        }
        assert!(links >= 3);
    }
}

#[test]
fn every_page_is_in_its_language_with_all_values_in_their_places() {
    for language in Language::all() {
        for page in pages(language) {
            assert!(page.contains(&format!("<html lang=\"{}\">", language.html_tag())), "{page}");
            assert!(!page.contains('{') && !page.contains('}'), "a value is missing: {page}");
            assert_eq!(page.matches("<h1").count(), 1, "{page}");
        }
    }
}

#[test]
fn the_error_page_says_what_to_do() {
    let page = not_found(Language::ENGLISH);
    assert!(page.contains("404") && page.contains("href=\"/\""), "{page}");
    let page = failure(&PageFailure { status: 400, code: "of_another_version" }, Language::ENGLISH);
    assert!(page.contains("of_another_version"), "{page}");
}
