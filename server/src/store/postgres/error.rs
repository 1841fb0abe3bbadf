//! Why a PostgreSQL database is not used.

use std::io::ErrorKind;

use sqlx::migrate::MigrateError;

use super::PgRefusal;
use crate::store::StoreError;

/// Why a database cannot be opened; the text says what to do, and never has the password of the URL.
#[derive(Debug, thiserror::Error)]
pub enum PgOpenError {
    /// The URL cannot be used.
    #[error("the URL of the database {why}")]
    Url {
        /// The reason.
        why: String,
    },
    /// Nothing answers there, or it does not let us in.
    #[error("cannot connect to {place}: {source}; {}", advice(source))]
    Connect {
        /// Which database.
        place: String,
        /// The error of the connection.
        source: sqlx::Error,
    },
    /// Nothing answered in time.
    #[error("{place} does not answer; check that it runs there")]
    Silent {
        /// Which database.
        place: String,
    },
    /// No server has used it yet.
    #[error("{place} has no tables of Tidemark; name the right database with --database-url")]
    Unused {
        /// Which database.
        place: String,
    },
    /// It lacks migrations of this version.
    #[error("{place} is of an earlier version; run `tidemark migrate` first")]
    Outdated {
        /// Which database.
        place: String,
    },
    /// It is set up in a way that would lose or mix up messages.
    #[error("{place} cannot be used: {refusal}")]
    Refused {
        /// Which database.
        place: String,
        /// The reason.
        refusal: PgRefusal,
    },
    /// Something does not go with how its tables lie.
    #[error("the tables of {place} {why}")]
    Layout {
        /// Which database.
        place: String,
        /// How they lie, and what that means for the operation.
        why: String,
    },
    /// It has tables of the time before 0.1.0.
    #[error(
        "{place} was made by another build before 0.1.0; export it with that program (tidemark export), and import it into an empty database \
         with this one (tidemark import)"
    )]
    Earlier {
        /// Which database.
        place: String,
    },
    /// A newer server has changed it so that this one would go wrong.
    #[error(
        "{place} was changed by a newer version: it needs a program that knows migration {oldest}, and this one \
         knows those up to {known}; run the newer version"
    )]
    Newer {
        /// Which database.
        place: String,
        /// The migration that must be known.
        oldest: i64,
        /// The newest one that is.
        known: i64,
    },
    /// A migration failed, or a stored function cannot be made.
    #[error("{place} cannot be migrated: {source}")]
    Migration {
        /// Which database.
        place: String,
        /// Why.
        source: MigrateError,
    },
    /// The URL for notifications leads to another database.
    #[error(
        "[storage] listen_url leads to {place}, which is not the database of database_url, so servers could not wake each other's \
         devices; name the same database and the same schema in both"
    )]
    Elsewhere {
        /// Where it leads.
        place: String,
    },
    /// Something in it cannot be read.
    #[error("{place} cannot be read: {source}")]
    Unreadable {
        /// Which database.
        place: String,
        /// Why.
        source: StoreError,
    },
}

impl PgOpenError {
    /// Whether it may be over by itself soon: nobody listens there yet, the database is starting, or all connections are taken.
    pub(super) fn may_pass(&self) -> bool {
        const STARTING: &str = "57P03";
        const STOPPING: [&str; 2] = ["57P01", "57P02"];
        const TOO_MANY_CONNECTIONS: &str = "53300";
        /// The class of a pooler's errors while the database behind it is gone.
        const CONNECTION_CLASS: &str = "08";
        match self {
            PgOpenError::Silent { .. } => true,
            PgOpenError::Connect { source: sqlx::Error::Io(error), .. } => {
                !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied)
            }
            PgOpenError::Connect { source, .. } => {
                let code = source.as_database_error().and_then(|error| error.code()).unwrap_or_default();
                code == STARTING
                    || STOPPING.contains(&&*code)
                    || code == TOO_MANY_CONNECTIONS
                    || code.starts_with(CONNECTION_CLASS)
            }
            _ => false,
        }
    }
}

/// Advice for a connection that was not made.
fn advice(source: &sqlx::Error) -> &'static str {
    // In the words of the library for TLS.
    if source.to_string().contains("CaUsedAsEndEntity") {
        return "PostgreSQL uses the certificate of an authority as its own; let that authority sign one for it (ssl_cert_file)";
    }
    let is_about_tls = match source {
        sqlx::Error::Tls(_) => true,
        // An error of the handshake.
        sqlx::Error::Io(error) => error.kind() == ErrorKind::InvalidData,
        _ => false,
    };
    match is_about_tls {
        true => {
            "check sslmode and sslrootcert in the URL, and in PostgreSQL's configuration ssl, its certificate and the name in the certificate"
        }
        false => "check that it runs there, and the user and password",
    }
}
