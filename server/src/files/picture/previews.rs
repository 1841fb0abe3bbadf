//! Decodes a picture, within bounds, and makes its previews.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, Limits};

use super::threads::{Held, Memory};
use super::{LONGEST_SIDE, MOST_PIXELS, PictureError, PictureForm};
use crate::domain::Preview;

/// Memory of one decoded picture, at most.
const MOST_DECODED: u64 = 256 << 20;

/// Memory that a decoder may use beside that.
const MOST_BESIDE: u64 = 64 << 20;

/// A small preview has at most so many pixels in a row or column; a picture of so few bytes needs none if it is no larger.
const SMALL: (u32, usize) = (480, 64 << 10);
/// The same of a large one.
const LARGE: (u32, usize) = (1_600, 1 << 20);

/// Pixels of a side of the square in which people and groups are shown: twice as many as the largest disc has.
const SQUARE: u32 = 256;

/// A preview with transparent pixels that has more bytes is put on white, and is a JPEG then.
const MOST_TRANSPARENT: usize = 1 << 20;

/// Of 100.
const QUALITY: u8 = 80;

/// A profile of colours with more bytes is left out of previews.
const MOST_PROFILE: usize = 8 << 10;

/// The sides of the picture as it is shown.
type Sides = (u32, u32);

/// Previews, as they are encoded.
type Previews = Vec<(Preview, Vec<u8>)>;

/// A picture in memory.
struct Decoded {
    /// Not turned.
    shown: DynamicImage,
    orientation: Orientation,
    profile: Option<Vec<u8>>,
    _held: Held,
}

/// The first image of a picture. `turn` is that of Exif.
fn decode(form: PictureForm, bytes: &[u8], turn: u16, memory: &Memory) -> Result<Decoded, PictureError> {
    let format = match form {
        PictureForm::Jpeg => ImageFormat::Jpeg,
        PictureForm::Png => ImageFormat::Png,
        PictureForm::Gif => ImageFormat::Gif,
        PictureForm::WebP => ImageFormat::WebP,
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_DECODED + MOST_BESIDE);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(of_image)?;
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    if width.max(height) > LONGEST_SIDE || pixels > MOST_PIXELS || decoder.total_bytes() > MOST_DECODED {
        return Err(PictureError::TooLarge);
    }
    // That of colours of another kind would not fit: a preview has red, green and blue.
    let fits = |profile: &Vec<u8>| profile.len() <= MOST_PROFILE && profile.get(16..20) == Some(b"RGB ");
    let profile = decoder.icc_profile().ok().flatten().filter(fits);
    let held = memory.take(decoder.total_bytes());
    let shown = DynamicImage::from_decoder(decoder).map_err(of_image)?;
    let orientation =
        u8::try_from(turn).ok().and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms);
    Ok(Decoded { shown, orientation, profile, _held: held })
}

/// The sides of a picture, and its previews. `turn` is that of Exif.
pub(super) fn make(
    form: PictureForm,
    bytes: &[u8],
    turn: u16,
    memory: &Memory,
) -> Result<(Sides, Previews), PictureError> {
    let Decoded { mut shown, orientation, profile, _held } = decode(form, bytes, turn, memory)?;
    let (width, height) = (shown.width(), shown.height());
    let sides = if turn >= 5 { (height, width) } else { (width, height) };
    let mut previews = Vec::new();
    for (preview, (most, few)) in [(Preview::Large, LARGE), (Preview::Small, SMALL)] {
        if width.max(height) <= most && bytes.len() <= few {
            continue;
        }
        if shown.width().max(shown.height()) > most {
            shown = shown.thumbnail(most, most);
        }
        let mut turned = shown.clone();
        turned.apply_orientation(orientation);
        previews.push((preview, encode(&turned, profile.as_deref()).map_err(of_image)?));
    }
    previews.reverse();
    Ok((sides, previews))
}

/// The largest square in the middle of a picture, small, as JPEG.
pub(super) fn square(
    form: PictureForm,
    bytes: &[u8],
    turn: u16,
    memory: &Memory,
) -> Result<Vec<u8>, PictureError> {
    let Decoded { shown, orientation, profile, _held } = decode(form, bytes, turn, memory)?;
    let side = shown.width().min(shown.height());
    let mut square = shown.crop_imm((shown.width() - side) / 2, (shown.height() - side) / 2, side, side);
    if side > SQUARE {
        square = square.thumbnail_exact(SQUARE, SQUARE);
    }
    square.apply_orientation(orientation);
    jpeg(&square, profile.as_deref()).map_err(of_image)
}

fn encode(picture: &DynamicImage, profile: Option<&[u8]>) -> Result<Vec<u8>, ImageError> {
    if picture.color().has_alpha() {
        let coloured = picture.to_rgba8();
        if coloured.pixels().any(|pixel| pixel.0[3] < u8::MAX) {
            let mut bytes = Vec::new();
            let mut encoder = PngEncoder::new(&mut bytes);
            with_profile(&mut encoder, profile);
            DynamicImage::ImageRgba8(coloured).write_with_encoder(encoder)?;
            if bytes.len() <= MOST_TRANSPARENT {
                return Ok(bytes);
            }
        }
    }
    jpeg(picture, profile)
}

/// The picture as JPEG, on white where it is transparent.
fn jpeg(picture: &DynamicImage, profile: Option<&[u8]>) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    with_profile(&mut encoder, profile);
    DynamicImage::ImageRgb8(on_white(picture)).write_with_encoder(encoder)?;
    Ok(bytes)
}

/// Colours without their profile are a little off; that is no reason to have no preview.
fn with_profile(encoder: &mut impl ImageEncoder, profile: Option<&[u8]>) {
    if let Some(profile) = profile {
        _ = encoder.set_icc_profile(profile.to_vec());
    }
}

fn on_white(picture: &DynamicImage) -> image::RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let coloured = picture.to_rgba8();
    image::RgbImage::from_fn(coloured.width(), coloured.height(), |x, y| {
        let [red, green, blue, alpha] = coloured.get_pixel(x, y).0.map(u32::from);
        let on_white = |colour: u32| ((colour * alpha + 255 * (255 - alpha)) / 255) as u8;
        image::Rgb([on_white(red), on_white(green), on_white(blue)])
    })
}

fn of_image(error: ImageError) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooLarge,
        _ => PictureError::Damaged,
    }
}
