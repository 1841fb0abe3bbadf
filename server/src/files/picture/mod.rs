//! Pictures: what is told of them, previews of them, and the place where a photo was taken, which nobody learns.
//!
//! The original keeps its pixels to the bit: `jpeg`, `png`, `webp` and `gif` leave out the parts of a file that hold metadata. The
//! turn of a photo and the profile of its colours stay. What follows the end of the picture goes, such as the film of a moving photo.

use super::kind;
use crate::domain::Preview;

mod exif;
mod gif;
mod jpeg;
mod png;
mod previews;
mod threads;
mod webp;

/// Bytes of a picture, at most: it lies in memory while it is looked at.
pub const MOST_PICTURE_BYTES: u64 = 32 << 20;

/// Pixels of a picture, at most, in all and in a row or column.
const MOST_PIXELS: u64 = 50_000_000;
const LONGEST_SIDE: u32 = 16_384;

/// A form in which pictures are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureForm {
    /// JPEG.
    Jpeg,
    /// PNG, also with movement.
    Png,
    /// GIF, also with movement.
    Gif,
    /// WebP, also with movement.
    WebP,
}

impl PictureForm {
    /// That of a media type, if it is one of a picture that can be looked at.
    pub fn of(media_type: &str) -> Option<PictureForm> {
        match media_type {
            "image/jpeg" => Some(PictureForm::Jpeg),
            "image/png" => Some(PictureForm::Png),
            "image/gif" => Some(PictureForm::Gif),
            "image/webp" => Some(PictureForm::WebP),
            _ => None,
        }
    }
}

/// Why a picture is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// It has more pixels than may be decoded.
    #[error("the picture has too many pixels")]
    TooLarge,
    /// It does not hold together.
    #[error("the picture is damaged")]
    Damaged,
}

/// A picture as others get it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The original without its metadata.
    pub bytes: Vec<u8>,
    /// Its type: that of any bytes where it cannot be shown.
    pub media_type: &'static str,
    /// Width and height as it is shown, where it can be.
    pub sides: Option<(u32, u32)>,
    /// Previews.
    pub previews: Vec<(Preview, Vec<u8>)>,
}

/// A picture file without its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stripped {
    bytes: Vec<u8>,
    /// The turn that is left in it, as Exif counts: 1 is none.
    turn: u16,
}

/// A turn to look at a picture: a few do so at a time. Its bytes are read when the turn has come.
pub struct PictureTurn(threads::Place);

impl PictureTurn {
    /// Waits for one.
    pub async fn wait() -> PictureTurn {
        PictureTurn(threads::Place::wait().await)
    }

    /// Looks at a picture, in a thread of its own.
    ///
    /// # Errors
    /// When it is too large, or does not hold together.
    pub async fn look_at(self, form: PictureForm, bytes: Vec<u8>) -> Result<Picture, PictureError> {
        self.0.run(move |memory| look(form, &bytes, memory)).await.unwrap_or(Err(PictureError::Damaged))
    }

    /// The middle of a picture as a small square, without metadata; of one that moves, the first image. A JPEG.
    ///
    /// # Errors
    /// When it is too large, or does not hold together.
    pub async fn square(self, form: PictureForm, bytes: Vec<u8>) -> Result<Vec<u8>, PictureError> {
        let square = move |memory: &threads::Memory| {
            let Stripped { bytes, turn } = strip(form, &bytes).ok_or(PictureError::Damaged)?;
            previews::square(form, &bytes, turn, memory)
        };
        self.0.run(square).await.unwrap_or(Err(PictureError::Damaged))
    }
}

fn strip(form: PictureForm, bytes: &[u8]) -> Option<Stripped> {
    match form {
        PictureForm::Jpeg => jpeg::strip(bytes),
        PictureForm::Png => png::strip(bytes),
        PictureForm::Gif => gif::strip(bytes),
        PictureForm::WebP => webp::strip(bytes),
    }
}

fn look(form: PictureForm, bytes: &[u8], memory: &threads::Memory) -> Result<Picture, PictureError> {
    let Stripped { bytes, turn } = strip(form, bytes).ok_or(PictureError::Damaged)?;
    match previews::make(form, &bytes, turn, memory) {
        Ok((sides, previews)) => {
            Ok(Picture { media_type: kind::media_type(&bytes), sides: Some(sides), previews, bytes })
        }
        // It has the form of a picture, and no decoder of ours shows it: a browser is not asked to either.
        Err(PictureError::Damaged) => {
            Ok(Picture { media_type: kind::OCTETS, sides: None, previews: Vec::new(), bytes })
        }
        Err(error) => Err(error),
    }
}

/// Reads a file part by part.
struct Parts<'b> {
    left: &'b [u8],
}

impl<'b> Parts<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|taken| taken[0])
    }
}

#[cfg(test)]
mod tests;
