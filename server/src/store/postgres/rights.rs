//! Whether the role of the URL may do what a server does. Asked once, when the database is opened and before anything is
//! changed: a right that is missing is told at the start, and not by the first send that needs it.

use sqlx::{PgConnection, Row as _};

use super::PgRefusal;

/// The first right that is missing: on the tables of the installation, which have one owner, or on the functions that tell one life
/// of the data from another. One round trip, and no prepared statement that a pooler could lose.
const ASK: &str = "WITH here AS (SELECT relnamespace AS schema, relowner AS owner FROM pg_class WHERE oid = to_regclass('meta')),
    wanted AS (
        SELECT lacked, 'TABLE ' || oid::regclass AS what FROM pg_class JOIN here ON relnamespace = schema AND relowner = owner,
            unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS lacked
            WHERE CASE WHEN relkind IN ('r', 'p') THEN NOT has_table_privilege(oid, lacked) END
            AND (lacked = 'SELECT' OR relname NOT IN ('_sqlx_migrations', 'functions'))
        UNION ALL SELECT 'USAGE', 'SEQUENCE ' || oid::regclass FROM pg_class JOIN here ON relnamespace = schema AND relowner = owner
            WHERE CASE WHEN relkind = 'S' THEN NOT has_sequence_privilege(oid, 'USAGE') END
        UNION ALL SELECT 'EXECUTE', 'FUNCTION ' || oid::regprocedure FROM pg_proc JOIN here ON pronamespace = schema AND proowner = owner
            WHERE NOT has_function_privilege(oid, 'EXECUTE')
        UNION ALL SELECT 'EXECUTE', 'FUNCTION ' || name
            FROM unnest(ARRAY['pg_control_system()', 'pg_walfile_name(pg_lsn)', 'pg_current_wal_flush_lsn()']) AS name
            WHERE NOT has_function_privilege(to_regprocedure(name), 'EXECUTE'))
    SELECT current_user::text, current_schema()::text, current_setting('search_path'),
        (SELECT ARRAY[lacked, what] FROM wanted ORDER BY what, lacked LIMIT 1)::text[]";

/// The role, the schema in which missing tables would be made, whether it may make them, and the owner of those that are
/// there, if it may not do what that one may.
const ASK_TO_CHANGE: &str = "SELECT current_user::text, current_schema()::text, has_schema_privilege(current_schema(), 'CREATE'),
    (SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = to_regclass('meta') AND NOT pg_has_role(relowner, 'USAGE'))";

/// Asks it.
pub(super) async fn check(connection: &mut PgConnection) -> Result<Result<(), PgRefusal>, sqlx::Error> {
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await?;
    let role: String = row.try_get(0)?;
    if row.try_get::<Option<String>, _>(1)?.is_none() {
        return Ok(Err(PgRefusal::Schema { role, path: row.try_get(2)? }));
    }
    match row.try_get::<Option<Vec<String>>, _>(3)?.as_deref() {
        Some([right, on]) => Ok(Err(PgRefusal::Right { role, right: right.clone(), on: on.clone() })),
        _ => Ok(Ok(())),
    }
}

/// Whether the role may make missing tables, and change those and the functions that are there.
pub(super) async fn may_change(connection: &mut PgConnection) -> Result<Result<(), PgRefusal>, sqlx::Error> {
    let row = sqlx::raw_sql(ASK_TO_CHANGE).fetch_one(connection).await?;
    let role = row.try_get(0)?;
    if let Some(owner) = row.try_get(3)? {
        return Ok(Err(PgRefusal::Owner { role, owner }));
    }
    Ok(if row.try_get(2)? { Ok(()) } else { Err(PgRefusal::Create { role, schema: row.try_get(1)? }) })
}
