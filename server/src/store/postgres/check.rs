//! Whether a connection leads to a database on which what is committed stays, in order. Asked on every new one: a
//! failover or a changed setting is noticed by the next.

use std::collections::HashMap;

use sqlx::{PgConnection, Row as _};
use tracing::warn;

/// The oldest release that has what the statements use.
const OLDEST_RELEASE: u32 = 150_000;

/// One round trip, and no prepared statement that a pooler could lose.
const ASK: &str = "SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'server_version', 'server_encoding', \
     'transaction_read_only', 'transaction_isolation', 'fsync', 'synchronous_commit', 'client_min_messages', 'lock_timeout', 'statement_timeout', \
     'idle_in_transaction_session_timeout') UNION ALL SELECT 'in_recovery', pg_is_in_recovery()::text";

/// Why a database cannot be used, and how to correct it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PgRefusal {
    /// It is too old.
    #[error("it is PostgreSQL {0}; use version 15 or newer")]
    Release(String),
    /// It cannot store every text.
    #[error("its encoding is {0}; make a database with ENCODING 'UTF8' (and TEMPLATE template0)")]
    Encoding(String),
    /// It follows another one.
    #[error("it is a standby, which cannot be written to; name the primary in the URL")]
    Standby,
    /// Transactions cannot write.
    #[error(
        "its transactions are read-only; set default_transaction_read_only to off for the database and the role"
    )]
    ReadOnly,
    /// Transactions would see older facts than the statements are written for.
    #[error(
        "its transactions are {0:?}; set default_transaction_isolation to 'read committed' for the database and the role"
    )]
    Isolation(String),
    /// A power cut loses or destroys everything.
    #[error(
        "its fsync is off, so a power cut would destroy it; set fsync to on in postgresql.conf and reload"
    )]
    Fsync,
    /// A power cut or a failover loses what was acknowledged.
    #[error(
        "its synchronous_commit is {0}, so it would lose acknowledged messages; set it to on for the database and the role"
    )]
    SynchronousCommit(String),
    /// That a standby may lack what was committed would not be heard.
    #[error(
        "its client_min_messages is error, which hides the warning that a wait for a standby was cancelled; set it to warning for the database and the role"
    )]
    Warnings,
    /// The role may not do what a server does.
    #[error(
        "its role {role} lacks {right} on {on}; let the owner run GRANT {right} ON {on} TO {role}, and the same for the other objects of that schema"
    )]
    Right {
        /// The role.
        role: String,
        /// The right that it lacks.
        right: String,
        /// The object of that right.
        on: String,
    },
    /// The role may not make the tables that are missing.
    #[error(
        "tables or functions are missing, and its role {role} lacks CREATE on SCHEMA {schema}; run `tidemark migrate` with the role that \
         owns the database, or let that one run GRANT CREATE ON SCHEMA {schema} TO {role}"
    )]
    Create {
        /// The role.
        role: String,
        /// Where they would be.
        schema: String,
    },
    /// The role may not change the tables and functions that are there.
    #[error(
        "its tables or functions are those of another version, and its role {role} may not change what {owner} owns; run `tidemark \
         migrate` of this version with the role {owner}"
    )]
    Owner {
        /// The role.
        role: String,
        /// The role that owns them.
        owner: String,
    },
    /// No schema can be used.
    #[error(
        "its role {role} may use no schema of its search_path, which is {path}; let the owner of the schema run GRANT USAGE ON SCHEMA … TO {role}"
    )]
    Schema {
        /// The role.
        role: String,
        /// Where tables are looked for.
        path: String,
    },
    /// A pooler gives a prepared statement of one connection to another.
    #[error(
        "a pooler in front of it mixes up prepared statements; use PgBouncer 1.21 or newer with max_prepared_statements, or connect to \
         PostgreSQL itself"
    )]
    Pooler,
    /// A crash of the primary would not be noticed.
    #[error(
        "a pooler in front of it hides when the primary crashes; with [storage] replication = \"synchronous\" connect to PostgreSQL itself"
    )]
    Hidden,
    /// A server that was stopped would hold up the others.
    #[error(
        "its {0} is 0, because a pooler dropped the setting; run ALTER ROLE … SET {0} = '{1}' for the role in the URL"
    )]
    Unlimited(&'static str, &'static str),
    /// A fact is missing in its answer.
    #[error(
        "it does not report its {0}; connect to PostgreSQL itself, or to a pooler that passes everything on"
    )]
    Untold(&'static str),
}

/// Asks it.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Result<(), PgRefusal>, sqlx::Error> {
    let rows = sqlx::raw_sql(ASK).fetch_all(connection).await?;
    let mut told = HashMap::with_capacity(rows.len());
    for row in rows {
        told.insert(row.try_get::<String, _>(0)?, row.try_get::<String, _>(1)?);
    }
    Ok(judge(&told))
}

fn judge(told: &HashMap<String, String>) -> Result<(), PgRefusal> {
    let of = |name: &'static str| told.get(name).map(String::as_str).ok_or(PgRefusal::Untold(name));
    if of("server_version_num")?.parse().unwrap_or(0) < OLDEST_RELEASE {
        return Err(PgRefusal::Release(of("server_version")?.to_owned()));
    }
    if of("server_encoding")? != "UTF8" {
        return Err(PgRefusal::Encoding(of("server_encoding")?.to_owned()));
    }
    if of("in_recovery")? != "false" {
        return Err(PgRefusal::Standby);
    }
    if of("transaction_read_only")? != "off" {
        return Err(PgRefusal::ReadOnly);
    }
    if of("transaction_isolation")? != "read committed" {
        return Err(PgRefusal::Isolation(of("transaction_isolation")?.to_owned()));
    }
    if of("fsync")? != "on" {
        return Err(PgRefusal::Fsync);
    }
    if let weak @ ("off" | "local") = of("synchronous_commit")? {
        return Err(PgRefusal::SynchronousCommit(weak.to_owned()));
    }
    if of("client_min_messages")? == "error" {
        return Err(PgRefusal::Warnings);
    }
    for (timeout, proposed) in
        [("lock_timeout", "2s"), ("statement_timeout", "10s"), ("idle_in_transaction_session_timeout", "5s")]
    {
        if of(timeout)? == "0" {
            return Err(PgRefusal::Unlimited(timeout, proposed));
        }
    }
    Ok(())
}

/// Whether PostgreSQL keeps sums of its pages: `on` or `off`. If not, that is written to the log.
pub(super) async fn sums(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let sums = sqlx::query_scalar("SELECT current_setting('data_checksums')");
    let sums: String = sums.fetch_one(connection).await?;
    if sums != "on" {
        warn!(
            "data_checksums is off, so PostgreSQL does not notice when its disk damages data; stop it and run `pg_checksums --enable`"
        );
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 12] = [
        ("server_version_num", "150004"),
        ("server_version", "15.4"),
        ("server_encoding", "UTF8"),
        ("in_recovery", "false"),
        ("transaction_read_only", "off"),
        ("transaction_isolation", "read committed"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("client_min_messages", "warning"),
        ("lock_timeout", "2000"),
        ("statement_timeout", "10000"),
        ("idle_in_transaction_session_timeout", "5000"),
    ];

    fn with(name: &str, value: Option<&str>) -> Result<(), PgRefusal> {
        let told = GOOD.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut told = HashMap::from(told);
        match value {
            Some(value) => drop(told.insert(name.to_owned(), value.to_owned())),
            None => drop(told.remove(name)),
        }
        judge(&told)
    }

    #[test]
    fn only_a_database_that_keeps_what_it_commits_is_used() {
        for (name, value, refused) in [
            ("server_version_num", "140011", PgRefusal::Release("15.4".into())),
            ("server_encoding", "SQL_ASCII", PgRefusal::Encoding("SQL_ASCII".into())),
            ("in_recovery", "true", PgRefusal::Standby),
            ("transaction_read_only", "on", PgRefusal::ReadOnly),
            ("transaction_isolation", "serializable", PgRefusal::Isolation("serializable".into())),
            ("fsync", "off", PgRefusal::Fsync),
            ("synchronous_commit", "off", PgRefusal::SynchronousCommit("off".into())),
            ("synchronous_commit", "local", PgRefusal::SynchronousCommit("local".into())),
            ("client_min_messages", "error", PgRefusal::Warnings),
            ("lock_timeout", "0", PgRefusal::Unlimited("lock_timeout", "2s")),
        ] {
            assert_eq!(with(name, Some(value)), Err(refused), "{name} = {value}");
        }
        for (name, value) in GOOD {
            assert_eq!(with(name, Some(value)), Ok(()));
            if name != "server_version" {
                assert_eq!(with(name, None), Err(PgRefusal::Untold(name)));
            }
        }
        for strong in ["remote_write", "remote_apply"] {
            assert_eq!(with("synchronous_commit", Some(strong)), Ok(()));
        }
    }
}
