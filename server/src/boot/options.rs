//! From the configuration to what each part is told of it.

use std::time::Duration;

use crate::app::{AccountOptions, EphemeralOptions, FileOptions};
use crate::config::Config;
use crate::queue::Options;
use crate::table;

pub(super) fn account_options(config: &Config) -> AccountOptions {
    let section = &config.accounts;
    AccountOptions {
        sign_up: section.sign_up,
        open_invites: section.open_invites,
        sign_ups_per_invite: section.sign_ups_per_invite,
        session_days: section.session_days,
        password_memory_kib: section.password_memory_kib,
    }
}

pub(super) fn ephemeral_options(config: &Config) -> EphemeralOptions {
    EphemeralOptions {
        typing: config.messages.typing,
        presence: config.messages.presence,
        group_members: config.limits.typing_group_members,
    }
}

pub(super) fn file_options(config: &Config) -> FileOptions {
    let section = &config.files;
    FileOptions {
        most_bytes: u64::from(section.file_mib) << 20,
        account_bytes: u64::from(section.account_mib) << 20,
        refused: section.refused.clone(),
    }
}

pub(super) fn queue_options(config: &Config) -> Options {
    Options {
        queues: config.queues.count,
        text_characters: config.limits.text_characters,
        members: config.limits.group_members,
        fan_out_bytes: u64::from(config.limits.fan_out_kib_per_account_per_second) * 1_024,
        stored_kib_a_day: config.limits.stored_kib_per_account_per_day,
        first_messages: config.limits.first_messages_per_account_per_day,
        history_messages: config.limits.history_messages,
        stars: config.limits.stars,
        history_bytes: config.limits.history_bytes,
        edit: Duration::from_secs(config.messages.edit_seconds),
        recall: Duration::from_secs(config.messages.recall_seconds),
        ..Options::default()
    }
}

pub(super) fn table_options(config: &Config) -> table::Options {
    table::Options {
        kib_a_second: config.table.kib_per_key_per_second,
        read_within: Duration::from_secs(config.server.request_seconds.into()),
        ..table::Options::default()
    }
}
