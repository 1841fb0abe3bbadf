//! What happens when the last byte of a file is there: it is looked at, and then it can be named and read.
//!
//! Nothing is remembered of a look that was cut off. The file is as it was, and is looked at again when its sender asks for it.

use hyper::body::Bytes;

use super::{FileError, Files, Upload};
use crate::domain::{FileFacts, Segment, Segments};
use crate::files::{Lying, MOST_PICTURE_BYTES, PictureError, PictureForm, PictureTurn, SNIFFED, media_type};
use crate::store::{FileState, StoredFile};

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
        let picture = turn.look_at(form, bytes).await.map_err(|error| match error {
            PictureError::TooLarge => FileError::PictureTooLarge,
            PictureError::Damaged => FileError::BadPicture,
        })?;
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
}
