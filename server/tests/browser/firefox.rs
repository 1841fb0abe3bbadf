//! The second browser: the tests that run in Firefox, too. docs/PAGE.md marks those that do not.
//!
//! All tests run in Chromium. `TEST_BROWSER=firefox cargo test -p tidemark-server --test browser -- NAME` runs any in Firefox.

use std::collections::BTreeSet;

use tokio::process::Command;

use super::engine::{Engine, VARIABLE};
use super::world::Turn;

/// The tests that each expectation rests on, without those that need Chromium's own protocol.
const CHOSEN: &[&str] = &[
    "amend::a_message_is_forwarded_and_a_conversation_is_kept_at_the_top_on_every_device",
    "amend::a_message_that_is_taken_back_is_gone_from_every_screen",
    "amend::a_reply_shows_what_it_replies_to_and_leads_there",
    "amend::an_edited_message_says_so_on_every_screen_and_after_a_reload",
    "amend::reactions_are_counted_and_taken_away_again",
    "amend::the_menu_is_used_by_keyboard_and_fits_a_phone",
    "chat::a_message_turns_from_waiting_to_stored_in_place",
    "chat::a_refused_message_can_be_tried_again_or_discarded",
    "chat::an_own_message_is_shown_at_enter_and_once_however_late_it_is_stored",
    "chat::reading_on_one_device_clears_the_badge_on_the_other",
    "chat::two_people_chat_both_ways",
    "deletion::an_account_is_deleted_in_the_settings_and_others_see_that",
    "emoji::emoji_are_found_by_name_and_put_where_the_caret_is",
    "files::pictures_and_files_are_pasted_picked_and_dropped_and_the_other_one_sees_them",
    "files_seen::a_moment_has_pictures_that_friends_see",
    "files_seen::the_viewer_is_used_by_keyboard_and_gives_the_focus_back",
    "first_run::a_language_is_chosen_before_one_has_an_account",
    "first_run::enter_does_what_the_card_says",
    "groups::roles_bans_and_invitations_are_changed_in_the_panel",
    "installed::the_chat_opens_without_its_server_and_sends_when_that_is_back",
    "keep::a_draft_is_kept_for_each_conversation",
    "keys::a_question_mark_opens_the_keys_and_escape_gives_the_focus_back",
    "keys::keys_find_people_and_move_between_conversations",
    "listed::an_archived_conversation_comes_back_with_a_new_message_unless_it_is_muted",
    "look::a_line_stands_before_each_day_and_whoever_speaks_first_on_it_is_named",
    "look::a_long_conversation_is_a_window_that_stays_where_it_is_read",
    "look::a_phone_shows_the_list_or_the_conversation",
    "look::both_sets_of_colours_can_be_read",
    "look::the_composer_is_as_wide_as_the_text_and_keeps_the_first_lines_indentation",
    "marks::hostile_marks_make_no_elements_and_load_nothing",
    "marks::marks_are_shown_as_what_they_mean_and_the_list_has_none",
    "mentions::a_mention_is_chosen_by_keyboard_and_has_a_badge_of_its_own_until_it_is_read",
    "mentions::an_author_sees_how_many_have_read_in_a_group_on_every_device",
    "offline::a_device_that_was_away_gets_exactly_what_it_missed",
    "offline::a_message_whose_answer_was_lost_is_shown_once",
    "offline::a_server_that_is_killed_while_someone_types_costs_nothing",
    "pins::a_pinned_message_stands_above_the_log_of_everybody_and_leads_there",
    "presence::typing_is_shown_until_the_message_comes_or_the_person_stops",
    "presence::who_is_there_is_shown_and_a_reload_changes_nothing",
    "social::a_blocked_person_is_told_and_a_draft_follows_to_another_device",
    "social::friends_share_moments_likes_and_comments_until_one_is_deleted",
    "social::ticks_say_how_far_a_message_has_come",
    "starred::a_starred_message_is_found_again_on_every_device_and_leads_there",
    "starred::devices_that_star_different_messages_while_they_are_offline_keep_both",
    "starred::many_starred_messages_are_shown_page_by_page",
    "text::forced_colours_show_what_colours_told",
    "told::notifications_are_asked_for_and_come_from_one_tab_while_nobody_looks",
    "told::the_title_and_the_icons_say_the_same",
    "unkept::what_may_have_been_sent_and_was_not_kept_is_one_message_until_it_is_answered",
    "unkept::what_the_browser_refuses_to_keep_is_sent_once_or_is_a_draft_again",
    "unkept::what_was_not_kept_and_is_refused_by_the_server_is_a_draft_of_its_conversation",
];

async fn this_program(arguments: &[&str]) -> (bool, String) {
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(arguments).args(CHOSEN).args(["--exact", "--test-threads=2"]);
    let done = program
        .env(VARIABLE, "firefox")
        .env_remove("PICTURES")
        .kill_on_drop(true)
        .output()
        .await
        .expect("ran");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    (done.status.success(), format!("{}\n{said}", done.status))
}

#[test]
fn the_table_of_the_page_says_what_runs_in_chromium_alone() {
    let table = include_str!("../../../docs/PAGE.md");
    // Every second part stands between backticks.
    let parts: Vec<_> = table.split('`').collect();
    let (names, after) = (parts.iter().skip(1).step_by(2), parts.iter().skip(2).step_by(2));
    for (name, after) in names.zip(after) {
        let is_test = name.contains("::");
        let alone = after.starts_with(" (Chromium)");
        assert!(
            !is_test || alone != CHOSEN.contains(name),
            "{name}: name it in `CHOSEN`, or mark it \"(Chromium)\" in docs/PAGE.md"
        );
    }
}

#[tokio::test]
async fn what_people_miss_first_works_in_firefox() {
    if Engine::chosen() == Engine::Firefox {
        return;
    }
    let (_, there) = this_program(&["--list"]).await;
    let there: BTreeSet<_> = there.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let lost: Vec<_> = CHOSEN.iter().filter(|name| !there.contains(*name)).collect();
    assert!(lost.is_empty(), "no such tests: {lost:?}");
    let _turn = Turn::come().await;
    let (passed, said) = this_program(&[]).await;
    assert!(passed, "{said}");
}
