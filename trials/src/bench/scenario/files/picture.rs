//! Photos that are measured: soft colours that run into each other with the noise of a camera over them.

use image::codecs::jpeg::JpegEncoder;
use image::{Rgb, RgbImage};

use crate::Result;

/// How good a camera's JPEG is, of 100.
const QUALITY: u8 = 90;
/// The most by which a colour differs from its neighbour's.
const NOISE: u32 = 32;

/// A photo of so many pixels; always the same.
pub(in crate::bench::scenario) fn jpeg(width: u32, height: u32) -> Result<Vec<u8>> {
    let mut chance = 0x2545_f491_u32;
    let mut next = || {
        chance ^= chance << 13;
        chance ^= chance >> 17;
        chance ^= chance << 5;
        chance >> 8
    };
    let photo = RgbImage::from_fn(width, height, |x, y| {
        let noise = next() % NOISE;
        let across = |at: u32, of: u32| at * 200 / of;
        Rgb([across(x, width), across(y, height), across(x + y, width + height)]
            .map(|colour| u8::try_from(colour + noise).unwrap_or(u8::MAX)))
    });
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, QUALITY).encode_image(&photo)?;
    Ok(bytes)
}
