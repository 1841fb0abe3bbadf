//! Where the bytes of files lie: a directory, or a bucket that speaks S3.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use hyper::body::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::s3;
use crate::domain::{FileId, Preview, Segments};

/// Bytes of one object in a directory, and of one write to it.
const IN_DIRECTORY: (usize, usize) = (16 << 20, 256 << 10);
/// The same in a bucket: there an object is written at once.
const IN_BUCKET: (usize, usize) = (8 << 20, 8 << 20);

/// Why bytes cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// There is no room for more.
    #[error("there is no room for more")]
    Full,
    /// An object is not there.
    #[error("there is no object {0}")]
    Missing(String),
    /// Anything else, which may pass.
    #[error("{0}")]
    Unavailable(String),
}

/// Where the bytes of files lie. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FilePlace {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Under which name within the bucket; empty: none.
    prefix: Path,
    /// The directory, unless it is a bucket.
    directory: Option<Arc<LocalDirectory>>,
    /// Bytes of one object.
    pub(super) segment: usize,
    /// Bytes of one write, which lie in memory meanwhile.
    pub(super) piece: usize,
}

#[derive(Debug)]
struct LocalDirectory {
    path: PathBuf,
    /// Whether it is there.
    made: OnceCell<()>,
}

/// An object of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lying {
    /// A part of its bytes, by its name.
    Segment(u64),
    /// A preview of it.
    Preview(Preview),
}

impl Lying {
    fn name(self) -> String {
        match self {
            Lying::Segment(name) => format!("{name:016x}"),
            Lying::Preview(preview) => preview.as_str().to_owned(),
        }
    }
}

impl FilePlace {
    /// The directory at `path`. It is made with its first file, for its owner alone.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn directory(path: &FilePath) -> io::Result<FilePlace> {
        let path = std::path::absolute(path)?;
        let prefix = Path::from_absolute_path(&path).map_err(io::Error::other)?;
        let store = Arc::new(LocalFileSystem::new().with_fsync(true));
        let (segment, piece) = IN_DIRECTORY;
        let directory = Some(Arc::new(LocalDirectory { path, made: OnceCell::new() }));
        Ok(FilePlace { store, prefix, directory, segment, piece })
    }

    /// A bucket of S3, by its URL.
    ///
    /// # Errors
    /// The fault of the URL.
    pub fn bucket(url: &str) -> Result<FilePlace, String> {
        let (store, prefix) = s3::open(url)?;
        let (segment, piece) = IN_BUCKET;
        Ok(FilePlace { store, prefix, directory: None, segment, piece })
    }

    /// One that forgets everything when it is dropped.
    #[cfg(any(test, feature = "test-support"))]
    pub fn in_memory() -> FilePlace {
        let store = Arc::new(object_store::memory::InMemory::new());
        let (segment, piece) = IN_BUCKET;
        FilePlace { store, prefix: Path::default(), directory: None, segment, piece }
    }

    /// Whether a URL of a bucket has a fault, and which.
    ///
    /// # Errors
    /// The fault.
    pub fn check_url(url: &str) -> Result<(), String> {
        s3::open(url).map(drop)
    }

    /// Bytes that one upload or download keeps in memory, about.
    pub fn buffered(&self) -> usize {
        self.piece * 2
    }

    fn folder(&self, id: FileId) -> Path {
        let [shared, own] = folders(id);
        self.prefix.clone().join(shared).join(own)
    }

    pub(super) fn path(&self, id: FileId, what: Lying) -> Path {
        self.folder(id).join(what.name())
    }

    /// Sees to it that the directory is there, before the first object is written.
    pub(super) async fn make_directory(&self) -> Result<(), PlaceError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let make = async {
            let path = directory.path.clone();
            let make = move || fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            match spawn_blocking(make).await {
                Ok(made) => made.map_err(|error| of_io(&error)),
                Err(panic) => Err(PlaceError::Unavailable(panic.to_string())),
            }
        };
        directory.made.get_or_try_init(|| make).await.copied()
    }

    /// Writes one object, whole.
    ///
    /// # Errors
    /// Then nothing of it is there.
    pub async fn put(&self, id: FileId, what: Lying, bytes: Bytes) -> Result<(), PlaceError> {
        self.make_directory().await?;
        self.store.put(&self.path(id, what), PutPayload::from(bytes)).await.map_err(of_store)?;
        Ok(())
    }

    /// Whether all objects of a file are there, each with its length.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub async fn has_all(
        &self,
        id: FileId,
        segments: &Segments,
        previews: &[Preview],
    ) -> Result<bool, PlaceError> {
        let segments = segments.0.iter().map(|segment| (Lying::Segment(segment.name), Some(segment.length)));
        for (what, length) in segments.chain(previews.iter().map(|preview| (Lying::Preview(*preview), None)))
        {
            match self.store.head(&self.path(id, what)).await.map_err(of_store) {
                Ok(found) if length.is_none_or(|length| length == found.size) => {}
                Ok(_) | Err(PlaceError::Missing(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Removes these objects. Those that are not there are removed already.
    pub async fn remove(&self, id: FileId, what: &[Lying]) -> Result<(), PlaceError> {
        for what in what {
            match self.store.delete(&self.path(id, *what)).await.map_err(of_store) {
                Ok(()) | Err(PlaceError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes all objects of a file but those in `keep`, also those that were begun and never finished.
    pub async fn remove_others(&self, id: FileId, keep: &[Lying]) -> Result<(), PlaceError> {
        let keep: Vec<String> = keep.iter().map(|what| what.name()).collect();
        if let Some(directory) = &self.directory {
            let folder: PathBuf = directory.path.join(folders(id).iter().collect::<PathBuf>());
            return match spawn_blocking(move || remove_files(&folder, &keep)).await {
                Ok(removed) => removed.map_err(|error| of_io(&error)),
                Err(panic) => Err(PlaceError::Unavailable(panic.to_string())),
            };
        }
        let mut found = self.store.list(Some(&self.folder(id)));
        while let Some(object) = found.try_next().await.map_err(of_store)? {
            let is_kept = object.location.filename().is_some_and(|name| keep.iter().any(|kept| kept == name));
            if !is_kept {
                self.store.delete(&object.location).await.map_err(of_store)?;
            }
        }
        Ok(())
    }
}

/// Where the objects of a file lie in a directory.
pub fn objects_of(id: FileId, segments: &Segments, previews: &[Preview]) -> Vec<PathBuf> {
    let folder: PathBuf = folders(id).iter().collect();
    let segments = segments.0.iter().map(|segment| Lying::Segment(segment.name));
    segments
        .chain(previews.iter().copied().map(Lying::Preview))
        .map(|what| folder.join(what.name()))
        .collect()
}

/// Removes the files in a folder but those in `keep`, and the folder if it is empty then.
fn remove_files(folder: &FilePath, keep: &[String]) -> io::Result<()> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for file in files {
        let file = file?;
        if !file.file_name().to_str().is_some_and(|name| keep.iter().any(|kept| kept == name)) {
            fs::remove_file(file.path())?;
        }
    }
    if keep.is_empty() {
        fs::remove_dir(folder)?;
        // It stays while other files lie there.
        _ = folder.parent().map(fs::remove_dir);
    }
    Ok(())
}

/// The names of the folders of a file. Files share the first one by their first two digits, since some file systems are slow with many
/// in one.
fn folders(id: FileId) -> [String; 2] {
    let id = id.0.simple().to_string();
    [id[..2].to_owned(), id]
}

/// An error of a store in our words.
pub(super) fn of_store(error: object_store::Error) -> PlaceError {
    if let object_store::Error::NotFound { path, .. } = error {
        return PlaceError::Missing(path);
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        if let Some(error) = one.downcast_ref::<io::Error>()
            && let PlaceError::Full = of_io(error)
        {
            return PlaceError::Full;
        }
        cause = one.source();
    }
    PlaceError::Unavailable(error.to_string())
}

pub(super) fn of_io(error: &io::Error) -> PlaceError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => PlaceError::Full,
        _ => PlaceError::Unavailable(error.to_string()),
    }
}
