//! The bytes of files: where they lie, how they get there and back, and what they are.
//!
//! A [`FilePlace`] is a directory or a bucket of S3. The bytes of a file lie in some objects there ([`Segments`](crate::domain::Segments)
//! lists them), each of which is written once and never changed. So servers need no lock among each other: the one whose object gets
//! into the list first has written that part. Nothing here knows accounts, rows or the database.

mod address;
mod kind;
mod picture;
mod place;
mod read;
mod s3;
mod write;

pub(crate) use address::Address;
pub use kind::{OCTETS, SNIFFED, is_inline, media_type};
pub use picture::{MOST_PICTURE_BYTES, Picture, PictureError, PictureForm, PictureTurn};
pub use place::{FilePlace, Lying, PlaceError, objects_of};
pub use read::FileStream;
pub use write::SegmentWriter;
