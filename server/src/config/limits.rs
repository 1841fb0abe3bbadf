//! `[limits]`: what one caller may ask for (I9). A rate allows a burst of ten times its value, sign-ups and log-ins of
//! an address one of twice their value; 0 lifts it.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// The limits of one caller's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Characters of one message.
    pub text_characters: usize,
    /// People in one group.
    pub group_members: usize,
    /// Messages that somebody gets who joins a group whose history is visible; 0: none.
    pub history_messages: usize,
    /// Bytes of all that such a one gets.
    pub history_bytes: usize,
    /// Messages of one batch.
    pub batch_messages: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a batch's body.
    pub batch_body_bytes: usize,
    /// Bytes of one WebSocket message from a client.
    pub frame_bytes: usize,
    /// Rows of one `entries` frame.
    pub entries_rows: usize,
    /// Bytes of one `entries` frame, roughly; one row always goes.
    pub entries_bytes: usize,
    /// Rows of one page of a conversation.
    pub page_rows: usize,
    /// Lines of the conversation list.
    pub conversations: usize,
    /// People found by one search.
    pub search_results: usize,
    /// Lines of an account's list of sessions.
    pub listed_sessions: usize,
    /// Open connections.
    pub connections: usize,
    /// Open connections from one address (IPv6: one /64), proxies that are trusted excepted.
    pub connections_per_address: usize,
    /// Bytes of request bodies and of answers that are held in memory at the same time.
    pub buffered_bytes: usize,
    /// The same for one address (IPv6: one /64).
    pub buffered_bytes_per_address: usize,
    /// Sends of one connection that wait for their answer; then reading pauses.
    pub sends_in_flight: usize,
    /// Frames from one connection, each fragment, ping and pong counted; beyond it the connection is closed.
    pub frames_per_connection_per_second: u32,
    /// Pings and pongs from one connection; beyond it nothing is read from it for a while.
    pub control_frames_per_connection_per_second: u32,
    /// Refused frames of one connection; beyond it the connection is closed.
    pub faults_per_connection_per_minute: u32,
    /// New accounts from one address.
    pub sign_ups_per_address_per_minute: u32,
    /// Attempts to log in from one address.
    pub log_ins_per_address_per_minute: u32,
    /// Attempts to log in under one name from one address (IPv6: one /64), or on one device on which somebody has logged in under that
    /// name before.
    pub log_ins_per_name_per_minute: u32,
    /// Attempts to log in under one name from all addresses together; devices on which somebody has logged in under that name before
    /// are not counted.
    pub log_ins_per_name_in_all_per_minute: u32,
    /// Refused requests (a status from 400 to 499, or 503) and unknown tokens of one address (IPv6: one /64); beyond it their
    /// answers wait, for five seconds at most.
    pub refusals_per_address_per_second: u32,
    /// Messages and read markers of one account; beyond it requests are refused, and nothing is read from its sockets for a while.
    pub sends_per_account_per_second: u32,
    /// Notices of one account that it is typing; beyond it they are dropped.
    pub typing_per_account_per_second: u32,
    /// Members of the largest group in which it is shown who is typing; 0: in none.
    pub typing_group_members: usize,
    /// Lists of one account of whom it watches; beyond it nothing is read from its sockets for a while.
    pub watch_lists_per_account_per_minute: u32,
    /// People whom one connection watches, to be told who is online.
    pub watched_people: usize,
    /// Searches of one account for people, with a burst of a minute's worth.
    pub searches_per_account_per_minute: u32,
    /// People whom one account looks up by their uids, or puts into groups, with a burst of a minute's worth.
    pub look_ups_per_account_per_minute: u32,
    /// KiB of rows that one account has stored with groups and friends, with a burst of a minute's worth; then what it says to many is refused.
    pub fan_out_kib_per_account_per_second: u32,
    /// People that one account puts into groups in a day without being their friend or having heard of them; beyond it requests are refused.
    pub strangers_per_account_per_day: u32,
    /// KiB of rows that one account has stored in a day, with everybody; beyond it what would store more is refused.
    pub stored_kib_per_account_per_day: u32,
    /// People to whom one account writes for the first time in a day without being their friend or having heard of them; beyond it such
    /// messages are refused.
    pub first_messages_per_account_per_day: u32,
    /// KiB of rows that one account reads; then its sockets are slowed down, and its requests refused.
    pub read_kib_per_account_per_second: u32,
    /// Downloads by one account of all that is kept of it, in a day.
    pub downloads_per_account_per_day: u32,
    /// Addresses, names and accounts that each rate remembers.
    pub remembered_callers: usize,
    /// Friends and friend requests of one account.
    pub friends: usize,
    /// Starred messages of one account; beyond it another star is refused.
    pub stars: usize,
    /// The longest life of an invitation, in seconds.
    pub invite_seconds: u32,
    /// The most people that may come in by one invitation.
    pub invite_uses: u32,
}

impl Default for LimitsSection {
    fn default() -> Self {
        LimitsSection {
            text_characters: 8_000,
            group_members: 500,
            history_messages: 100,
            history_bytes: 262_144,
            batch_messages: 200,
            body_bytes: 131_072,
            batch_body_bytes: 4_194_304,
            frame_bytes: 131_072,
            entries_rows: 500,
            entries_bytes: 262_144,
            page_rows: 200,
            conversations: 1_000,
            search_results: 20,
            listed_sessions: 100,
            connections: 50_000,
            connections_per_address: 20_000,
            buffered_bytes: 67_108_864,
            buffered_bytes_per_address: 16_777_216,
            sends_in_flight: 64,
            frames_per_connection_per_second: 1_000,
            control_frames_per_connection_per_second: 10,
            faults_per_connection_per_minute: 60,
            sign_ups_per_address_per_minute: 30,
            log_ins_per_address_per_minute: 100,
            log_ins_per_name_per_minute: 10,
            log_ins_per_name_in_all_per_minute: 30,
            refusals_per_address_per_second: 100,
            sends_per_account_per_second: 100,
            typing_per_account_per_second: 2,
            typing_group_members: 100,
            watch_lists_per_account_per_minute: 30,
            watched_people: 200,
            searches_per_account_per_minute: 60,
            look_ups_per_account_per_minute: 1_200,
            fan_out_kib_per_account_per_second: 1_024,
            strangers_per_account_per_day: 50,
            stored_kib_per_account_per_day: 262_144,
            first_messages_per_account_per_day: 200,
            read_kib_per_account_per_second: 16_384,
            downloads_per_account_per_day: 10,
            remembered_callers: 100_000,
            friends: 5_000,
            stars: 1_000,
            invite_seconds: 2_592_000,
            invite_uses: 1_000,
        }
    }
}

impl LimitsSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let check = |key, value, range| within("limits", key, value, range);
        check("text_characters", self.text_characters, 1..=1_000_000)?;
        check("group_members", self.group_members, 1..=10_000)?;
        check("history_messages", self.history_messages, 0..=1_000)?;
        check("history_bytes", self.history_bytes, 1_024..=4_194_304)?;
        check("batch_messages", self.batch_messages, 1..=200)?;
        check("body_bytes", self.body_bytes, 1_024..=67_108_864)?;
        check("batch_body_bytes", self.batch_body_bytes, 1_024..=67_108_864)?;
        check("frame_bytes", self.frame_bytes, 1_024..=67_108_864)?;
        check("entries_rows", self.entries_rows, 1..=5_000)?;
        check("entries_bytes", self.entries_bytes, 1_024..=67_108_864)?;
        check("page_rows", self.page_rows, 1..=5_000)?;
        check("conversations", self.conversations, 1..=100_000)?;
        check("search_results", self.search_results, 1..=1_000)?;
        check("listed_sessions", self.listed_sessions, 1..=10_000)?;
        check("connections", self.connections, 1..=10_000_000)?;
        check("connections_per_address", self.connections_per_address, 1..=10_000_000)?;
        check("buffered_bytes", self.buffered_bytes, 1_048_576..=1 << 40)?;
        check("buffered_bytes_per_address", self.buffered_bytes_per_address, 1_048_576..=1 << 40)?;
        check("sends_in_flight", self.sends_in_flight, 1..=10_000)?;
        check("typing_group_members", self.typing_group_members, 0..=800)?;
        check("watched_people", self.watched_people, 0..=1_000)?;
        check("remembered_callers", self.remembered_callers, 2..=100_000_000)?;
        check("friends", self.friends, 1..=100_000)?;
        check("stars", self.stars, 1..=10_000)?;
        within("limits", "invite_seconds", self.invite_seconds, 60..=31_536_000)?;
        within("limits", "invite_uses", self.invite_uses, 1..=1_000_000)?;
        let check = |key, value| within("limits", key, value, 0..=100_000_000);
        check("frames_per_connection_per_second", self.frames_per_connection_per_second)?;
        check("control_frames_per_connection_per_second", self.control_frames_per_connection_per_second)?;
        check("faults_per_connection_per_minute", self.faults_per_connection_per_minute)?;
        check("sign_ups_per_address_per_minute", self.sign_ups_per_address_per_minute)?;
        check("log_ins_per_address_per_minute", self.log_ins_per_address_per_minute)?;
        check("log_ins_per_name_per_minute", self.log_ins_per_name_per_minute)?;
        check("log_ins_per_name_in_all_per_minute", self.log_ins_per_name_in_all_per_minute)?;
        check("refusals_per_address_per_second", self.refusals_per_address_per_second)?;
        check("sends_per_account_per_second", self.sends_per_account_per_second)?;
        check("typing_per_account_per_second", self.typing_per_account_per_second)?;
        check("watch_lists_per_account_per_minute", self.watch_lists_per_account_per_minute)?;
        check("searches_per_account_per_minute", self.searches_per_account_per_minute)?;
        check("look_ups_per_account_per_minute", self.look_ups_per_account_per_minute)?;
        check("fan_out_kib_per_account_per_second", self.fan_out_kib_per_account_per_second)?;
        check("strangers_per_account_per_day", self.strangers_per_account_per_day)?;
        check("stored_kib_per_account_per_day", self.stored_kib_per_account_per_day)?;
        check("first_messages_per_account_per_day", self.first_messages_per_account_per_day)?;
        check("downloads_per_account_per_day", self.downloads_per_account_per_day)?;
        check("read_kib_per_account_per_second", self.read_kib_per_account_per_second)
    }
}
