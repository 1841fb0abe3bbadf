//! `[limits]`: what one caller may ask for, and all of them together (I9). A rate allows a burst of ten times its value,
//! sign-ups and log-ins of an address one of twice their value; 0 lifts it.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};
use crate::queue;

/// The limits of requests, rows, connections and memory. Fields that serde skips are no settings: programs that have the server within
/// them, such as tests, may choose others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Characters of one text: of a message, an edit, a moment, a comment.
    pub text_characters: usize,
    /// People in one group.
    pub group_members: usize,
    /// Messages that somebody gets who joins a group whose history is visible; 0: none.
    pub history_messages: usize,
    /// Open connections.
    pub connections: usize,
    /// Open connections from one address (IPv6: one /64), proxies that are trusted excepted.
    pub connections_per_address: usize,
    /// Bytes of request bodies and of answers that are held in memory at the same time.
    pub buffered_bytes: usize,
    /// Frames from one connection, each fragment, ping and pong counted; beyond it the connection is closed.
    pub frames_per_connection_per_second: u32,
    /// New accounts from one address.
    pub sign_ups_per_address_per_minute: u32,
    /// Attempts to log in from one address.
    pub log_ins_per_address_per_minute: u32,
    /// Attempts to log in under one name from one address (IPv6: one /64), or on one device on which somebody has logged in under that
    /// name before.
    pub log_ins_per_name_per_minute: u32,
    /// Messages and read markers of one account; beyond it requests are refused, and nothing is read from its sockets for a while.
    pub sends_per_account_per_second: u32,
    /// KiB of rows that one account has stored with groups and friends, with a burst of a minute's worth; then what it says to many is
    /// refused.
    pub fan_out_kib_per_account_per_second: u32,
    /// KiB of rows that one account reads; then its sockets are slowed down, and its requests refused.
    pub read_kib_per_account_per_second: u32,
    /// People that one account puts into groups in a day without being their friend or having heard of them; beyond it requests are
    /// refused.
    pub strangers_per_account_per_day: u32,
    /// KiB of rows that one account has stored in a day, with everybody; beyond it what would store more is refused.
    pub stored_kib_per_account_per_day: u32,
    /// People to whom one account writes for the first time in a day without being their friend or having heard of them; beyond it such
    /// messages are refused.
    pub first_messages_per_account_per_day: u32,

    /// Bytes of all that somebody gets who joins a group whose history is visible.
    #[serde(skip)]
    pub history_bytes: usize,
    /// Bytes of one WebSocket message from a client.
    #[serde(skip)]
    pub frame_bytes: usize,
    /// Rows of one `entries` frame.
    #[serde(skip)]
    pub entries_rows: usize,
    /// Rows of one page of a conversation.
    #[serde(skip)]
    pub page_rows: usize,
    /// Lines of the conversation list.
    #[serde(skip)]
    pub conversations: usize,
    /// People found by one search.
    #[serde(skip)]
    pub search_results: usize,
    /// Lines of an account's list of sessions.
    #[serde(skip)]
    pub listed_sessions: usize,
    /// Bytes of request bodies and of answers that are held in memory at the same time for one address (IPv6: one /64).
    #[serde(skip)]
    pub buffered_bytes_per_address: usize,
    /// Refused frames of one connection; beyond it the connection is closed.
    #[serde(skip)]
    pub faults_per_connection_per_minute: u32,
    /// Attempts to log in under one name from all addresses together; devices on which somebody has logged in under that name before
    /// are not counted.
    #[serde(skip)]
    pub log_ins_per_name_in_all_per_minute: u32,
    /// Refused requests (a status from 400 to 499, or 503) and unknown tokens of one address (IPv6: one /64); beyond it their
    /// answers wait, for five seconds at most.
    #[serde(skip)]
    pub refusals_per_address_per_second: u32,
    /// Members of the largest group in which it is shown who is typing.
    #[serde(skip)]
    pub typing_group_members: usize,
    /// Searches of one account for people, with a burst of a minute's worth.
    #[serde(skip)]
    pub searches_per_account_per_minute: u32,
    /// People whom one account looks up by their uids, or puts into groups, with a burst of a minute's worth.
    #[serde(skip)]
    pub look_ups_per_account_per_minute: u32,
    /// Downloads by one account of all that is kept of it, in a day.
    #[serde(skip)]
    pub downloads_per_account_per_day: u32,
    /// Friends and friend requests of one account.
    #[serde(skip)]
    pub friends: usize,
    /// Starred messages of one account; beyond it another star is refused.
    #[serde(skip)]
    pub stars: usize,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let queue = queue::Options::default();
        LimitsSection {
            text_characters: queue.text_characters,
            group_members: queue.members,
            history_messages: queue.history_messages,
            connections: 50_000,
            connections_per_address: 20_000,
            buffered_bytes: 64 << 20,
            frames_per_connection_per_second: 1_000,
            sign_ups_per_address_per_minute: 30,
            log_ins_per_address_per_minute: 100,
            log_ins_per_name_per_minute: 10,
            sends_per_account_per_second: 100,
            fan_out_kib_per_account_per_second: 1_024,
            read_kib_per_account_per_second: 16_384,
            strangers_per_account_per_day: 50,
            stored_kib_per_account_per_day: 262_144,
            first_messages_per_account_per_day: 200,
            history_bytes: queue.history_bytes,
            frame_bytes: 128 << 10,
            entries_rows: 500,
            page_rows: 200,
            conversations: 1_000,
            search_results: 20,
            listed_sessions: 100,
            buffered_bytes_per_address: 16 << 20,
            faults_per_connection_per_minute: 60,
            log_ins_per_name_in_all_per_minute: 30,
            refusals_per_address_per_second: 100,
            typing_group_members: 100,
            searches_per_account_per_minute: 60,
            look_ups_per_account_per_minute: 1_200,
            downloads_per_account_per_day: 10,
            friends: 5_000,
            stars: queue.stars,
        }
    }
}

impl LimitsSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let check = |key, value, range| within("limits", key, value, range);
        // A draft is a setting, of at most 65,536 bytes (`MOST_SETTING_BYTES`), and a character has up to 6 bytes in JSON.
        check("text_characters", self.text_characters, 1..=10_000)?;
        check("group_members", self.group_members, 1..=10_000)?;
        check("history_messages", self.history_messages, 0..=1_000)?;
        check("connections", self.connections, 1..=10_000_000)?;
        check("connections_per_address", self.connections_per_address, 1..=10_000_000)?;
        check("buffered_bytes", self.buffered_bytes, 1 << 20..=1 << 40)?;
        let check = |key, value| within("limits", key, value, 0..=100_000_000);
        check("frames_per_connection_per_second", self.frames_per_connection_per_second)?;
        check("sign_ups_per_address_per_minute", self.sign_ups_per_address_per_minute)?;
        check("log_ins_per_address_per_minute", self.log_ins_per_address_per_minute)?;
        check("log_ins_per_name_per_minute", self.log_ins_per_name_per_minute)?;
        check("sends_per_account_per_second", self.sends_per_account_per_second)?;
        check("fan_out_kib_per_account_per_second", self.fan_out_kib_per_account_per_second)?;
        check("read_kib_per_account_per_second", self.read_kib_per_account_per_second)?;
        check("strangers_per_account_per_day", self.strangers_per_account_per_day)?;
        check("stored_kib_per_account_per_day", self.stored_kib_per_account_per_day)?;
        check("first_messages_per_account_per_day", self.first_messages_per_account_per_day)
    }
}
