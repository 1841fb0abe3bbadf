//! Files in archives, on both databases: what an export reads of them, and how an import brings them back. Of files that are not whole
//! nothing is exported. Called by the snapshots and imports of both databases and, for one inbox, by `file_adoption`.

use uuid::Uuid;

use super::StoreError;
use super::file::{FILES, FileUse, StoredFile, files, id_of, use_of, words};
use super::sql::{SqlConnection, sql};
use crate::domain::{ClientId, FileId, Uid};
use crate::store::archive::{About, ArchiveSection, Record, RecordKey};

/// A use counts while its file is there.
const OF_WHOLE: &str = "EXISTS (SELECT 1 FROM files WHERE id = file AND state = 1)";

/// Where a walk over uses has come to.
type UseKey = (FileId, Uid, ClientId);

/// Before all.
const NO_FILE: FileId = FileId(Uuid::nil());

/// How many whole files and uses of them there are, and the number that stands for their state.
pub(super) async fn about(connection: &mut SqlConnection<'_>) -> Result<([u64; 2], u64), StoreError> {
    let of_files = sql(
        "SELECT count(*) AS files, CAST(coalesce(sum(size), 0) AS bigint) AS bytes, CAST(coalesce(max(made_at), 0) AS bigint) AS newest
         FROM files WHERE state = 1",
    );
    let of_uses = sql(format!(
        "SELECT count(*) AS uses, CAST(coalesce(max(used_at), 0) AS bigint) AS newest FROM file_uses WHERE {OF_WHOLE}"
    ));
    let (Some(of_files), Some(of_uses)) = (connection.row(of_files).await?, connection.row(of_uses).await?)
    else {
        return Ok(([0, 0], 0));
    };
    let (count, uses) = (of_files.number("files")?, of_uses.number("uses")?);
    let (bytes, newest) = (of_files.number("bytes")?, of_files.number("newest")?);
    let state = format!("{count} {bytes} {newest} {uses} {}", of_uses.number("newest")?);
    Ok(([count, uses], About::files_at(count, state)))
}

/// The records of `section`, which is one of files, behind `after`.
pub(super) async fn page(
    connection: &mut SqlConnection<'_>,
    section: ArchiveSection,
    after: Option<RecordKey>,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    if section == ArchiveSection::Files {
        let after = if let Some(RecordKey::File(file, _)) = after { file } else { NO_FILE };
        let files = files_after(connection, after, limit).await?;
        return Ok(files.into_iter().map(|file| Record::File(Box::new(file))).collect());
    }
    let after = match after {
        Some(RecordKey::FileUse(file, sender, client_id)) => (file, sender, client_id),
        _ => (NO_FILE, Uid(0), ClientId(Uuid::nil())),
    };
    let uses = uses_after(connection, after, limit).await?;
    Ok(uses.into_iter().map(|(file, of)| Record::FileUse(file, of)).collect())
}

/// Whole files with ids above `after`, in their order.
async fn files_after(
    connection: &mut SqlConnection<'_>,
    after: FileId,
    limit: usize,
) -> Result<Vec<StoredFile>, StoreError> {
    let larger = sql(format!("{FILES} WHERE state = 1 AND id > $1 ORDER BY id LIMIT $2"));
    files(&connection.rows(larger.bind(after).bind(limit)).await?)
}

/// Uses of whole files behind `after`, in their order.
async fn uses_after(
    connection: &mut SqlConnection<'_>,
    (file, sender, client_id): UseKey,
    limit: usize,
) -> Result<Vec<(FileId, FileUse)>, StoreError> {
    let larger = sql(format!(
        "SELECT file, sender, client_id, target, holders, used_at FROM file_uses
         WHERE (file, sender, client_id) > ($1, $2, $3) AND {OF_WHOLE} ORDER BY file, sender, client_id LIMIT $4"
    ));
    let larger = larger.bind(file).bind(sender).bind(client_id).bind(limit);
    connection.rows(larger).await?.iter().map(|row| Ok((id_of(row, "file")?, use_of(row)?))).collect()
}

/// Stores a whole file, unless there is one of that id.
pub(super) async fn import_file(
    connection: &mut SqlConnection<'_>,
    file: &StoredFile,
) -> Result<(), StoreError> {
    let insert = sql(
        "INSERT INTO files (id, owner, name, made_at, length, stored, segments, state, size, media_type, width, height, previews, check_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11, $12, $13) ON CONFLICT (id) DO NOTHING",
    );
    let facts = &file.facts;
    let (width, height) = facts.sides.unwrap_or_default();
    let insert = insert.bind(facts.id).bind(file.owner).bind(&*facts.name).bind(file.made_at);
    let insert = insert.bind(file.length).bind(file.stored).bind(file.segments.to_string()).bind(facts.size);
    let insert = insert.bind(&*facts.media_type).bind(width).bind(height).bind(words(&facts.previews));
    connection.change(insert.bind(file.check_at)).await.map(drop)
}

/// Stores a use. Of one that is there the later time is kept, and who holds it in either.
pub(super) async fn import_use(
    connection: &mut SqlConnection<'_>,
    file: FileId,
    of: &FileUse,
) -> Result<(), StoreError> {
    let known = sql(
        "SELECT sender, client_id, target, holders, used_at FROM file_uses WHERE file = $1 AND sender = $2 AND client_id = $3",
    );
    let known = connection.row(known.bind(file).bind(of.key.0).bind(of.key.1)).await?;
    let known = known.as_ref().map(use_of).transpose()?;
    let at = known.as_ref().map_or(of.at, |known| known.at.max(of.at));
    let mut holders: Vec<u32> = known.into_iter().flat_map(|known| known.holders).map(|uid| uid.0).collect();
    holders.extend(of.holders.iter().map(|uid| uid.0));
    holders.sort_unstable();
    holders.dedup();
    let holders = serde_json::to_string(&holders).expect("numbers are JSON");
    let put = sql(
        "INSERT INTO file_uses (file, sender, client_id, target, holders, used_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (file, sender, client_id) DO UPDATE SET holders = excluded.holders, used_at = excluded.used_at",
    );
    let put = put.bind(file).bind(of.key.0).bind(of.key.1).bind(of.target.to_string());
    connection.change(put.bind(holders).bind(at)).await.map(drop)
}
