//! Every code with which a request over HTTP is refused: its status, whether the same request may succeed later, and
//! why it comes.
//!
//! The description of the interface shows it (`openapi/refusals.rs`), and the table in `docs/API.md` is compared with
//! it. Codes that come over the WebSocket alone stand in `docs/PROTOCOL.md`.

/// One code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) retryable: bool,
    pub(super) why: &'static str,
}

const fn final_(status: u16, code: &'static str, why: &'static str) -> Code {
    Code { status, code, retryable: false, why }
}

const fn passing(status: u16, code: &'static str, why: &'static str) -> Code {
    Code { status, code, retryable: true, why }
}

/// In the order of their statuses.
#[rustfmt::skip]
pub(super) const CODES: &[Code] = &[
    final_( 400, "malformed_json", "the body is not JSON"),
    final_( 400, "invalid_utf8", "the body is not UTF-8"),
    final_( 400, "body_incomplete", "the body did not arrive whole"),
    final_( 400, "invalid_query", "the address or a parameter is invalid for this call"),
    final_( 400, "bad_range", "start and end do not match the direction, or the limit is 0"),
    final_( 400, "search_empty", "a search needs a letter, a digit or an emoji, a conversation, a sender or a time"),
    final_( 400, "search_too_long", "a search has at most 200 characters and 20 words"),
    final_( 401, "unauthorized", "the token is missing, wrong, expired or ended"),
    final_( 401, "wrong_credentials", "name or password is wrong, or the account is disabled; the current password is wrong"),
    final_( 401, "wrong_recovery_code", "the name or the recovery code is wrong, the code was used already, or the account is disabled"),
    final_( 403, "foreign_origin", "the `Origin` is another site and no token is sent, or a cookie comes without an `Origin`"),
    final_( 403, "metrics_private", "`/metrics` answers only callers on the same machine, and none through a proxy"),
    final_( 403, "sign_up_closed", "only the operator creates accounts (`[accounts] sign_up`)"),
    final_( 403, "not_invited", "new accounts need an invitation (`[accounts] sign_up`), and this one is missing, expired or used up"),
    final_( 403, "not_yours", "somebody else sent the message, or posted the moment"),
    final_( 403, "blocked", "the receiver accepts no messages from the caller"),
    final_( 403, "blocks", "the caller has blocked the receiver"),
    final_( 403, "friends_only", "the receiver accepts messages only from friends"),
    final_( 403, "too_late", "the message is too old to edit or recall (`[messages] edit_seconds`, `recall_seconds`)"),
    final_( 403, "administrators_only", "only the group's owner and administrators may do this"),
    final_( 403, "owner_only", "only the group's owner may do this"),
    final_( 403, "banned", "that user is banned from the group"),
    final_( 403, "removed_since", "the caller was removed from the group after the invitation was made"),
    final_( 403, "push_off", "the operator has switched push off (`[push] enabled`)"),
    final_( 403, "friends_add_only", "only friends can add that user to groups"),
    final_( 403, "muted", "the caller is muted in the group; `retry_after` says for how long, unless it is for good"),
    final_( 404, "not_found", "there is no such call"),
    final_( 404, "unknown_user", "no account has this uid"),
    final_( 404, "unknown_group", "there is no such group, or the caller is not in it"),
    final_( 404, "unknown_file", "there is no such file, or no row of the caller names it, or it is not uploaded to its end"),
    final_( 404, "not_member", "that user is not in the group"),
    final_( 404, "unknown_invite", "there is no such invitation"),
    final_( 404, "unknown_moment", "there is no such moment or comment among those that the caller can see"),
    final_( 404, "unknown_message", "the caller has no copy of that message in this conversation"),
    final_( 404, "unknown_report", "the group has no such report"),
    final_( 404, "unknown_session", "the account has no session with this id"),
    final_( 405, "method_not_allowed", "the address needs another method"),
    passing(408, "timeout", "the request took too long to arrive or to answer"),
    final_( 409, "name_taken", "another account has the name"),
    final_( 409, "name_resembles", "the name looks like the name of another account, or is reserved for the operators of the server"),
    final_( 409, "client_id_reused", "the key was used for another recipient, text or request"),
    final_( 409, "already_member", "that user is in the group already"),
    final_( 409, "owner_stays", "that user owns the group, and cannot be removed, banned, muted or given another role"),
    passing(409, "group_changed", "others changed the group at the same moment"),
    final_( 409, "file_named", "a message names the file"),
    passing(409, "upload_elsewhere", "the upload has come to another byte by now"),
    final_( 410, "expired_invite", "the invitation has ended"),
    final_( 410, "used_up_invite", "the invitation is used up"),
    final_( 410, "account_deleted", "the account of that user is deleted; what it sent can still be read"),
    final_( 410, "recalled", "the message was recalled"),
    final_( 410, "file_gone", "a row of the caller names the file, and the server does not have it any more"),
    final_( 412, "tus_version", "the header `Tus-Resumable` is missing or not 1.0.0"),
    final_( 413, "body_too_large", "the body has more than 131,072 bytes, or 4 MiB for a batch"),
    final_( 413, "file_too_large", "a file is larger than `[files] file_mib` (100 MiB where nothing is set), or more came than its sender had said"),
    final_( 415, "wrong_body_type", "the body of an upload has another type than `application/offset+octet-stream`"),
    final_( 416, "no_such_range", "the file has no bytes in that range"),
    final_( 422, "invalid_body", "a field is missing or has the wrong type"),
    final_( 422, "bad_name", "a name has 1 to 40 characters, all of them visible, and single spaces between them"),
    final_( 422, "bad_password", "a password has 8 to 200 characters"),
    final_( 422, "common_password", "the password is too easy to guess, or is the name"),
    final_( 422, "bad_device_name", "the name of a device has 1 to 60 visible characters"),
    final_( 422, "bad_file_name", "a file's name has 1 to 255 characters, no slashes, and none that is invisible or turns the direction of the text"),
    final_( 422, "bad_picture", "the bytes are not those of a whole picture, though they begin like one"),
    final_( 422, "no_picture", "the picture of a person or a group is a JPEG, PNG, GIF or WebP"),
    final_( 422, "picture_too_large", "a picture has at most 50 megapixels, 16,384 of them in a row, and 32 MiB"),
    final_( 422, "file_empty", "a file has at least one byte"),
    final_( 422, "file_type_refused", "the operator takes no files of this type (`[files] refused`)"),
    final_( 422, "files_full", "the files of the account have no room for it (`[files] account_mib`)"),
    final_( 422, "too_many_uploads", "an account has at most 20 unfinished uploads, and an upload has at most 2,000 parts"),
    final_( 422, "bad_push_endpoint", "the endpoint of a push service is an https address on the internet, of at most 1,024 characters"),
    final_( 422, "bad_push_keys", "the keys of the subscription to push are none"),
    final_( 422, "too_many_invites", "an account has at most 5 open invitations to sign up"),
    final_( 422, "text_empty", "a text has at least one character"),
    final_( 422, "text_too_long", "a text is longer than `[limits] text_characters` (8,000 where nothing is set)"),
    final_( 422, "text_nul", "a text has no NUL"),
    final_( 422, "not_in_conversation", "`message_id`, `reply_to` or `forward` is not a row of that conversation, or of the caller's inbox"),
    final_( 422, "no_message", "the row is not a message that can be edited, recalled, answered or reacted to"),
    final_( 422, "no_conversation", "there is no message with that user yet"),
    final_( 422, "other_text", "the message that is forwarded has another text"),
    final_( 422, "emoji", "a reaction has at most 6 different emoji, and nothing else"),
    final_( 422, "bad_setting", "the value is invalid for the setting"),
    final_( 422, "greeting_too_long", "a greeting has at most 200 characters"),
    final_( 422, "too_many_friends", "an account has at most 5,000 friends and friend requests"),
    final_( 422, "group_name", "a group's name has 1 to 80 characters, all of them visible, and single spaces between them"),
    final_( 422, "group_topic", "a group's topic has up to 300 characters, all of them visible, and single spaces between them"),
    final_( 422, "too_many_pins", "at most 50 messages can be pinned in a conversation"),
    final_( 422, "too_many_stars", "an account has at most 1,000 starred messages"),
    final_( 422, "too_many_bans", "at most 1,000 people can be banned from a group"),
    final_( 422, "bad_report", "a report has up to 1,000 characters of text, and nobody reports themselves"),
    final_( 422, "too_many_mutes", "at most 200 members can be muted in a group"),
    final_( 422, "group_full", "a group has at most 500 members (`[limits] group_members`)"),
    final_( 422, "too_many_members", "readers are named in groups of at most 50 members"),
    final_( 422, "bad_terms", "the invitation's time or uses are out of range"),
    final_( 426, "websocket_only", "`/ws` takes WebSocket handshakes"),
    final_( 429, "quota_reached", "the account has used up its storage for the day (`[limits] stored_kib_per_account_per_day`)"),
    final_( 429, "too_many_reports", "an account makes at most 20 reports in a day"),
    final_( 429, "slow_mode", "the group is in slow mode, and the caller has just said something there; `retry_after` says how long to wait"),
    passing(429, "rate_limited", "too many requests from the address, for the name or from the account"),
    passing(429, "renamed_lately", "the name was changed less than a week ago"),
    final_( 429, "too_many_first_messages", "the account has used up its first messages to strangers for the day (`[limits] first_messages_per_account_per_day`)"),
    passing(429, "too_many_strangers", "the account has used up the strangers that it can add to groups in a day (`[limits] strangers_per_account_per_day`)"),
    passing(429, "too_many_tickets", "too many tickets are unused"),
    final_( 500, "internal", "something went wrong in the server; its log says what"),
    final_( 500, "exhausted", "the account's sequence has reached its end (2^53)"),
    final_( 500, "rejected", "this message cannot be stored; the log says why"),
    passing(503, "busy", "too many writes are waiting"),
    passing(503, "unavailable", "storage or the sequence service does not answer"),
    passing(503, "files_unavailable", "files cannot be stored or read right now"),
    passing(503, "out_of_order", "an earlier message of the batch was refused temporarily"),
    passing(503, "stopping", "the server stops"),
    passing(503, "too_many_connections", "too many open connections, in all or from this address, or too many sockets of this account"),
    passing(503, "not_ready", "`/ready`: nothing can be stored right now, and why"),
    passing(507, "no_room", "the server has no room for more files"),
];

/// The entry of `code` in [`CODES`].
pub(super) fn code(code: &str) -> Option<Code> {
    CODES.iter().copied().find(|known| known.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table in `docs/API.md`, one for each code: status, code, why.
    fn documented() -> Vec<(u16, String, String)> {
        const TEXT: &str = include_str!("../../../docs/API.md");
        let rows = TEXT.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
        let rows = rows.filter_map(|(status, rest)| Some((status.parse().ok()?, rest)));
        rows.map(|(status, rest): (u16, &str)| {
            let mut columns = rest.split(" | ");
            let (code, why) = (columns.next().expect("a code"), columns.next().expect("a reason"));
            (status, code.trim_matches('`').to_owned(), why.to_owned())
        })
        .collect()
    }

    /// Codes that no page shows to people: mistakes of programs, and of the page itself.
    const OF_PROGRAMS: [&str; 15] = [
        "malformed_json",
        "invalid_utf8",
        "body_incomplete",
        "invalid_query",
        "bad_range",
        "metrics_private",
        "method_not_allowed",
        "invalid_body",
        "websocket_only",
        "too_many_tickets",
        "not_ready",
        "upload_elsewhere",
        "tus_version",
        "wrong_body_type",
        "no_such_range",
    ];

    #[test]
    fn the_page_says_each_refusal_in_words_of_its_own() {
        for Code { code, .. } in CODES {
            assert_ne!(
                tidemark_web::Language::ENGLISH.explains(code),
                OF_PROGRAMS.contains(code),
                "web/languages/*.json need `error.{code}`, or OF_PROGRAMS names it"
            );
        }
    }

    #[test]
    fn the_guide_explains_each_code_in_the_same_words() {
        let known = CODES.iter().map(|known| (known.status, known.code.to_owned(), known.why.to_owned()));
        assert_eq!(documented(), known.collect::<Vec<_>>());
    }
}
