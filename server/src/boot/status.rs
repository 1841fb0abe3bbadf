//! How an installation is, for operators: what the database knows. Nothing is changed.

use super::BootError;
use super::storage::check_installed;
use crate::config::{Config, DatabaseKind};
use crate::notify::postgres::SERVED;
use crate::store::{Facts, postgres, sqlite};

/// The facts about the installation in the database of `config`, also while it is served.
///
/// # Errors
/// When there is none, or it does not answer.
pub async fn status(config: &Config) -> Result<Facts, BootError> {
    let storage = &config.storage;
    match storage.database_url.kind() {
        DatabaseKind::Sqlite => {
            check_installed(config)?;
            let path = storage.file()?;
            let mut facts: Facts = vec![("database", format!("SQLite in {}", path.display()).into())];
            facts.extend(sqlite::status(&path).await?);
            Ok(facts)
        }
        DatabaseKind::Postgres => {
            let options = postgres::listening(storage.direct_url().with_password())?;
            Ok(postgres::status(&options, SERVED).await?)
        }
    }
}
