//! What happens when the last byte of a file is there: it is looked at, and then it can be named and read.
//!
//! Nothing is remembered of a look that was cut off. The file is as it was, and is looked at again when its sender asks for it.

use hyper::body::Bytes;

use super::{FileError, Files, Upload};
use crate::domain::{FileFacts, FileId, Preview, Segment, Segments, Uid};
use crate::files::{Lying, MOST_PICTURE_BYTES, PictureError, PictureForm, PictureTurn, SNIFFED, media_type};
use crate::store::{FileState, FileUse, StoredFile};

impl Files {
    /// Makes a file whole whose last byte is there. Several servers may do so at once: one of them does.
    ///
    /// # Errors
    /// When it is refused for what it is: then it is gone. When storage fails: then it is as it was.
    pub(super) async fn finish(&self, file: StoredFile) -> Result<Upload, FileError> {
        let (id, owner) = (file.facts.id, file.owner);
        let whole = match self.look(&file).await {
            Ok(whole) => whole,
            Err(error @ (FileError::TypeRefused(_) | FileError::PictureTooLarge | FileError::BadPicture)) => {
                self.remove(&file).await?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        if self.directory.finish_file(&whole.facts, &whole.segments, whole.check_at).await? {
            // What is not needed any more would go with the file anyway.
            _ = self.place.remove_others(id, &Files::needed(&whole)).await;
        }
        let now = self.own(owner, id).await?;
        Ok(Upload::of(&now))
    }

    /// The file as it can be read, with all its objects in their place.
    async fn look(&self, file: &StoredFile) -> Result<StoredFile, FileError> {
        let (id, length) = (file.facts.id, file.length);
        let head = self.place.read_whole(id, &file.segments, 0..SNIFFED as u64).await?;
        let media_type = media_type(&head);
        if let Some(refused) = self.options.refuses(&file.facts.name, Some(media_type)) {
            return Err(FileError::TypeRefused(refused.to_owned()));
        }
        let facts = FileFacts { size: length, media_type: media_type.to_owned(), ..file.facts.clone() };
        let whole = StoredFile { facts, state: FileState::Whole, check_at: self.in_a_day(), ..file.clone() };
        match PictureForm::of(media_type) {
            Some(form) => self.look_at_picture(form, whole).await,
            None => Ok(whole),
        }
    }

    async fn look_at_picture(
        &self,
        form: PictureForm,
        mut whole: StoredFile,
    ) -> Result<StoredFile, FileError> {
        let id = whole.facts.id;
        if whole.length > MOST_PICTURE_BYTES {
            return Err(FileError::PictureTooLarge);
        }
        let turn = PictureTurn::wait().await;
        let bytes = self.place.read_whole(id, &whole.segments, 0..whole.length).await?;
        let picture = turn.look_at(form, bytes).await?;
        let segment = Segment { name: rand::random(), length: picture.bytes.len() as u64 };
        whole.facts.size = segment.length;
        whole.facts.media_type = picture.media_type.to_owned();
        whole.facts.sides = picture.sides;
        whole.facts.previews = picture.previews.iter().map(|(preview, _)| *preview).collect();
        whole.segments = Segments(vec![segment]);
        let objects = [(Lying::Segment(segment.name), picture.bytes)].into_iter();
        let previews = picture.previews.into_iter().map(|(preview, bytes)| (Lying::Preview(preview), bytes));
        for (what, bytes) in objects.chain(previews) {
            self.place.put(id, what, Bytes::from(bytes)).await?;
        }
        Ok(whole)
    }

    /// Writes down that a row is about to make a picture of `owner` that of a person or a group, and makes its square if there is none.
    ///
    /// # Errors
    /// When `owner` has no such file, or it is no picture that can be shown; when storage fails.
    pub(in crate::app) async fn make_square(
        &self,
        owner: Uid,
        id: FileId,
        of: &FileUse,
    ) -> Result<(), FileError> {
        let used = self.directory.use_files(&[id], Some(owner), of).await?.pop();
        let StoredFile { facts, segments, .. } = used.ok_or(FileError::Unknown)?;
        let form = PictureForm::of(&facts.media_type).filter(|_| facts.sides.is_some());
        let form = form.ok_or(FileError::NoPicture)?;
        if facts.previews.contains(&Preview::Square) {
            return Ok(());
        }
        let turn = PictureTurn::wait().await;
        let bytes = self.place.read_whole(id, &segments, 0..facts.size).await?;
        let square = turn.square(form, bytes).await?;
        self.place.put(id, Lying::Preview(Preview::Square), Bytes::from(square)).await?;
        let previews = [&facts.previews[..], &[Preview::Square]].concat();
        Ok(self.directory.set_previews(id, &previews).await?)
    }
}

impl From<PictureError> for FileError {
    fn from(error: PictureError) -> FileError {
        match error {
            PictureError::TooLarge => FileError::PictureTooLarge,
            PictureError::Damaged => FileError::BadPicture,
        }
    }
}
