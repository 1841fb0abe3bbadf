//! Tests that need several servers of one PostgreSQL.

mod alerts;
mod base_backup;
mod failover;
mod held_up;
mod moving;
mod others;
mod patroni;
mod pooler;
mod presence;
mod refusals;
mod requests;
mod rights;
mod servers;
mod standby;
mod strangers;
mod told;
mod two_versions;
