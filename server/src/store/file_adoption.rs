//! Files of rows that an import brings into one inbox, beside servers that may be at work.

use super::file::{FileUse, StoredFile, id_of};
use super::file_archive::{import_file, import_use};
use super::sql::sql;
use super::{Directory, StoreError};
use crate::domain::FileId;

/// See the module.
impl Directory {
    /// Writes down that rows are about to name files, as far as those are here and whole. Returns the ids of these.
    ///
    /// # Errors
    /// The store's errors; then nothing is written.
    pub async fn adopt_uses(&self, uses: &[(FileId, FileUse)]) -> Result<Vec<FileId>, StoreError> {
        self.adopt(None, uses).await
    }

    /// Takes in a whole file whose bytes are in their place, and that these rows name it. `false`: there is one of that id already, which
    /// goes or is not whole.
    ///
    /// # Errors
    /// The store's errors; then nothing is written.
    pub async fn adopt_file(&self, file: &StoredFile, uses: Vec<FileUse>) -> Result<bool, StoreError> {
        let id = file.facts.id;
        let uses: Vec<_> = uses.into_iter().map(|of| (id, of)).collect();
        Ok(!self.adopt(Some(file), &uses).await?.is_empty())
    }

    async fn adopt(
        &self,
        file: Option<&StoredFile>,
        uses: &[(FileId, FileUse)],
    ) -> Result<Vec<FileId>, StoreError> {
        let adopt = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            if let Some(file) = file {
                import_file(&mut tx.connection(), file).await?;
            }
            let mut ids: Vec<FileId> = uses.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            // Whoever lets a file go takes this lock, too.
            let whole = sql("SELECT id FROM files WHERE id = ANY($1) AND state = 1 ORDER BY id FOR UPDATE");
            let rows = tx.rows(whole.bind(&*ids)).await?;
            let whole = rows.iter().map(|row| id_of(row, "id")).collect::<Result<Vec<_>, _>>()?;
            for (id, of) in uses.iter().filter(|(id, _)| whole.contains(id)) {
                import_use(&mut tx.connection(), *id, of).await?;
            }
            tx.commit().await?;
            Ok(whole)
        };
        self.db.limited(adopt).await
    }
}
