//! The statements of a repository in a database, once for SQLite and PostgreSQL, which read them alike but for the
//! expression of the time and the begin of a transaction that writes.

/// Implements [`Repository`](super::Repository) for a type that has:
///
/// - `hold()`: a connection for this call alone, as something with `connection()`, and `keep()` once its work succeeded;
/// - `unavailable(error)`: the error for callers.
///
/// `$now`: milliseconds since 1970, by the database's clock.
macro_rules! repository {
    ($repository:ident, $row:ty, now = $now:literal, begin = $begin:literal) => {
        impl $repository {
            /// A row as `biz_tag, start, max, step, updated_at`.
            fn row(stored: &$row) -> Result<TagRow, sqlx::Error> {
                let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
                let values = Values { start: number(1)?, max: number(2)?, step: number(3)? };
                Ok(TagRow { tag: Self::tag(stored)?, values, updated_at: number(4)? })
            }

            fn tag(stored: &$row) -> Result<Tag, sqlx::Error> {
                Tag::new(stored.try_get(0)?).map_err(|bad| sqlx::Error::Decode(bad.into()))
            }

            fn extension(stored: &$row) -> Result<Extension, sqlx::Error> {
                let number = |index| stored.try_get::<i64, _>(index).map(i64::cast_unsigned);
                let range = Range { first: number(1)?, last: number(2)? };
                Ok(Extension { tag: Self::tag(stored)?, range, used_at: number(3)? })
            }
        }

        #[async_trait]
        impl Repository for $repository {
            async fn get(&self, tag: &Tag) -> Result<Option<TagRow>, RepositoryError> {
                const GET: &str =
                    "SELECT biz_tag, start, max, step, updated_at FROM issuer_tags WHERE biz_tag = $1";
                let mut held = self.hold().await?;
                let found = sqlx::query(GET).bind(tag.as_str()).fetch_optional(held.connection()).await;
                let row = found.and_then(|found| found.as_ref().map(Self::row).transpose());
                let row = row.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(row)
            }

            async fn list(&self) -> Result<Vec<TagRow>, RepositoryError> {
                const LIST: &str = "SELECT biz_tag, start, max, step, updated_at FROM issuer_tags";
                let mut held = self.hold().await?;
                let found = sqlx::query(LIST).fetch_all(held.connection()).await;
                let rows = found.and_then(|found| found.iter().map(Self::row).collect::<Result<Vec<_>, _>>());
                let mut rows = rows.map_err(|error| self.unavailable(error))?;
                held.keep();
                // Here: databases differ in how they sort text.
                rows.sort_by(|a, b| a.tag.cmp(&b.tag));
                Ok(rows)
            }

            async fn create(&self, tag: &Tag, values: Values) -> Result<bool, RepositoryError> {
                const CREATE: &str = concat!(
                    "INSERT INTO issuer_tags (biz_tag, start, max, step, updated_at) VALUES ($1, $2, $3, $4, ",
                    $now,
                    ") ON CONFLICT (biz_tag) DO NOTHING"
                );
                let query = sqlx::query(CREATE).bind(tag.as_str()).bind(values.start.cast_signed());
                let query = query.bind(values.max.cast_signed()).bind(values.step.cast_signed());
                let mut held = self.hold().await?;
                let created = $crate::sql::confirmed(query.execute(held.connection())).await;
                let created = created.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(created.rows_affected() > 0)
            }

            async fn take(&self, tag: &Tag, expected: u64, values: Values) -> Result<bool, RepositoryError> {
                const TAKE: &str = concat!(
                    "UPDATE issuer_tags SET start = $3, max = $4, step = $5, updated_at = ",
                    $now,
                    " WHERE biz_tag = $1 AND max = $2"
                );
                check_forward(tag, expected, values)?;
                let query = sqlx::query(TAKE).bind(tag.as_str()).bind(expected.cast_signed());
                let query = query.bind(values.start.cast_signed()).bind(values.max.cast_signed());
                let query = query.bind(values.step.cast_signed());
                let mut held = self.hold().await?;
                let taken = $crate::sql::confirmed(query.execute(held.connection())).await;
                let taken = taken.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(taken.rows_affected() > 0)
            }

            async fn remove(&self, tag: &Tag) -> Result<bool, RepositoryError> {
                const REMOVE: &str = "DELETE FROM issuer_tags WHERE biz_tag = $1";
                let mut held = self.hold().await?;
                let remove = sqlx::query(REMOVE).bind(tag.as_str());
                let removed = $crate::sql::confirmed(remove.execute(held.connection())).await;
                let removed = removed.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(removed.rows_affected() > 0)
            }

            async fn reconcile(&self, extension: &Extension) -> Result<bool, RepositoryError> {
                const RECORD: &str = "INSERT INTO issuer_extensions (biz_tag, first, last, used_at) \
                    VALUES ($1, $2, $3, $4) ON CONFLICT (biz_tag, first) DO NOTHING";
                const RAISE: &str = concat!(
                    "INSERT INTO issuer_tags (biz_tag, start, max, step, updated_at) VALUES ($1, $2, $3, $4, ",
                    $now,
                    ") ON CONFLICT (biz_tag) DO UPDATE SET max = excluded.max, updated_at = excluded.updated_at ",
                    "WHERE excluded.max > issuer_tags.max"
                );
                let Extension { tag, range, used_at } = extension;
                let numbers = |query: sqlx::query::Query<'static, _, _>, third: u64| {
                    let query = query.bind(tag.to_string()).bind(range.first.cast_signed());
                    query.bind(range.last.cast_signed()).bind(third.cast_signed())
                };
                let mut held = self.hold().await?;
                let record = async {
                    let mut transaction = held.connection().begin_with($begin).await?;
                    let record = numbers(sqlx::query(RECORD), *used_at);
                    let inserted = record.execute(&mut *transaction).await?;
                    numbers(sqlx::query(RAISE), range.count()).execute(&mut *transaction).await?;
                    transaction.commit().await?;
                    Ok(inserted.rows_affected())
                };
                let recorded: Result<u64, sqlx::Error> = $crate::sql::confirmed(record).await;
                let recorded = recorded.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(recorded > 0)
            }

            async fn extensions(&self, of: &Tag) -> Result<Vec<Extension>, RepositoryError> {
                const EXTENSIONS: &str = "SELECT biz_tag, first, last, used_at FROM issuer_extensions \
                    WHERE biz_tag = $1 ORDER BY first";
                let mut held = self.hold().await?;
                let found = sqlx::query(EXTENSIONS).bind(of.as_str()).fetch_all(held.connection()).await;
                let extensions = found.and_then(|found| found.iter().map(Self::extension).collect());
                let extensions = extensions.map_err(|error| self.unavailable(error))?;
                held.keep();
                Ok(extensions)
            }
        }
    };
}
pub(super) use repository;
