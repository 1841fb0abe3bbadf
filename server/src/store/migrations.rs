//! The SQL of `migrations/`, compiled in. `build.rs` lists it.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// The migrations of SQLite.
pub(super) static SQLITE: LazyLock<Migrator> =
    LazyLock::new(|| migrator(include!(concat!(env!("OUT_DIR"), "/sqlite.rs"))));

/// The migrations and stored functions that a program puts into a PostgreSQL database.
#[derive(Debug)]
pub(super) struct PostgresSchema {
    pub(super) migrations: Migrator,
    /// The stored functions: the name, and the text that makes it.
    pub(super) functions: Vec<(&'static str, &'static str)>,
}

/// That of this program.
pub(super) static POSTGRES: LazyLock<PostgresSchema> = LazyLock::new(|| PostgresSchema {
    migrations: migrator(include!(concat!(env!("OUT_DIR"), "/postgres.rs"))),
    functions: Vec::from(include!(concat!(env!("OUT_DIR"), "/functions.rs"))),
});

/// `listed`: number, description, SQL.
fn migrator(listed: &[(i64, &'static str, &'static str)]) -> Migrator {
    let one = |&(number, description, sql): &(i64, &'static str, &'static str)| {
        Migration::new(number, description.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(listed.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_is_there_once_in_order() {
        for known in [&*SQLITE, &POSTGRES.migrations] {
            let numbers: Vec<i64> = known.iter().map(|migration| migration.version).collect();
            assert!(numbers.first() == Some(&1), "{numbers:?}");
            assert!(numbers.is_sorted(), "{numbers:?}");
            assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "{numbers:?}");
        }
    }
}
