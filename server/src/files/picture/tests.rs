//! Pictures with metadata, and such as are made to harm.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

use super::*;

/// What must not be told: it stands wherever a form has room for words.
const PLACE: &[u8] = b"54.32N 10.12E";

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// A photo: dark above and light below, so that one sees how it is turned.
fn photo(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |x, y| {
        let level = if y < height / 2 { 20 } else { 220 };
        Rgb([level, level, (x % 200) as u8])
    }))
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("encoded");
    bytes.into_inner()
}

/// Exif with a turn and a place.
fn told(turn: u16) -> Vec<u8> {
    [&exif::of_turn(turn)[..], PLACE].concat()
}

fn segment(marker: u8, said: &[u8]) -> Vec<u8> {
    let length = u16::try_from(said.len() + 2).expect("short").to_be_bytes();
    [&[0xff, marker][..], &length, said].concat()
}

/// The same photo with all that cameras and programs write beside it, and a film behind it.
fn told_jpeg(picture: &DynamicImage, turn: u16) -> Vec<u8> {
    let plain = encoded(picture, ImageFormat::Jpeg);
    let exif = [&b"Exif\0\0"[..], &told(turn)].concat();
    let xmp = [&b"http://ns.adobe.com/xap/1.0/\0"[..], PLACE].concat();
    let icc = [&b"ICC_PROFILE\0\x01\x01"[..], b"the colours"].concat();
    let said = [
        segment(0xe1, &exif),
        segment(0xe1, &xmp),
        segment(0xed, PLACE),
        segment(0xfe, PLACE),
        segment(0xe2, &icc),
    ];
    [&plain[..2], &said.concat(), &plain[2..], PLACE].concat()
}

fn chunk(kind: &[u8], said: &[u8]) -> Vec<u8> {
    let named = [kind, said].concat();
    let length = u32::try_from(said.len()).expect("short").to_be_bytes();
    [&length[..], &named, &crc32fast::hash(&named).to_be_bytes()].concat()
}

fn told_png(picture: &DynamicImage, turn: u16) -> Vec<u8> {
    let plain = encoded(picture, ImageFormat::Png);
    let said =
        [chunk(b"eXIf", &told(turn)), chunk(b"tEXt", &[b"Comment\0", PLACE].concat()), chunk(b"prVt", PLACE)];
    [&plain[..33], &said.concat(), &plain[33..], PLACE].concat()
}

fn told_webp(picture: &DynamicImage, turn: u16) -> Vec<u8> {
    let plain = encoded(picture, ImageFormat::WebP);
    let piece = |kind: &[u8], said: &[u8]| {
        let padding = vec![0; said.len() % 2];
        [kind, &u32::try_from(said.len()).expect("short").to_le_bytes(), said, &padding].concat()
    };
    let side = |side: u32| (side - 1).to_le_bytes()[..3].to_vec();
    let head = [&[0x0c, 0, 0, 0][..], &side(picture.width()), &side(picture.height())].concat();
    let chunks =
        [piece(b"VP8X", &head), plain[12..].to_vec(), piece(b"EXIF", &told(turn)), piece(b"XMP ", PLACE)]
            .concat();
    let length = u32::try_from(chunks.len() + 4).expect("short").to_le_bytes();
    [b"RIFF", &length[..], b"WEBP", &chunks, PLACE].concat()
}

fn told_gif(picture: &DynamicImage) -> Vec<u8> {
    let plain = encoded(picture, ImageFormat::Gif);
    let block = |label: u8, said: &[u8]| [&[0x21, label, said.len() as u8][..], said, &[0]].concat();
    let table = 13 + if plain[10] & 0x80 == 0 { 0 } else { 3 << ((plain[10] & 7) + 1) };
    let loops = [&b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"[..]].concat();
    let said = [block(0xfe, PLACE), loops, block(0xff, b"XMP DataXMP")];
    [&plain[..table], &said.concat(), &plain[table..], PLACE].concat()
}

async fn look_at(form: PictureForm, bytes: Vec<u8>) -> Result<Picture, PictureError> {
    PictureTurn::wait().await.look_at(form, bytes).await
}

#[tokio::test]
async fn the_place_of_a_photo_is_told_in_no_form() {
    let picture = photo(60, 40);
    for (form, format, bytes) in [
        (PictureForm::Jpeg, ImageFormat::Jpeg, told_jpeg(&picture, 1)),
        (PictureForm::Png, ImageFormat::Png, told_png(&picture, 1)),
        (PictureForm::WebP, ImageFormat::WebP, told_webp(&picture, 1)),
        (PictureForm::Gif, ImageFormat::Gif, told_gif(&picture)),
    ] {
        assert!(holds(&bytes, PLACE), "{form:?}");
        let before = image::load_from_memory_with_format(&bytes, format).expect("a picture");
        let found = look_at(form, bytes).await.expect("a picture");
        assert!(!holds(&found.bytes, PLACE) && !holds(&found.bytes, b"Exif"), "{form:?}");
        let after = image::load_from_memory_with_format(&found.bytes, format).expect("still a picture");
        assert!(before.to_rgba8() == after.to_rgba8(), "{form:?} has other pixels");
        assert_eq!((found.sides, found.media_type), (Some((60, 40)), kind::media_type(&found.bytes)));
    }
    let jpeg = look_at(PictureForm::Jpeg, told_jpeg(&picture, 1)).await.expect("a picture");
    assert!(holds(&jpeg.bytes, b"the colours") && holds(&jpeg.bytes, b"JFIF"));
    let gif = look_at(PictureForm::Gif, told_gif(&picture)).await.expect("a picture");
    assert!(holds(&gif.bytes, b"NETSCAPE2.0") && !holds(&gif.bytes, b"XMP"));
}

/// The original says how it is turned and nothing else; previews are turned already.
#[tokio::test]
async fn a_turned_photo_stays_turned() {
    let picture = photo(900, 600);
    for (form, bytes) in [
        (PictureForm::Jpeg, told_jpeg(&picture, 6)),
        (PictureForm::Png, told_png(&picture, 6)),
        (PictureForm::WebP, told_webp(&picture, 6)),
    ] {
        let found = look_at(form, bytes).await.expect("a picture");
        assert_eq!(found.sides, Some((600, 900)), "{form:?}");
        assert!(holds(&found.bytes, &exif::of_turn(6)) && !holds(&found.bytes, PLACE), "{form:?}");
        let (_, small) =
            found.previews.iter().find(|(preview, _)| *preview == Preview::Small).expect("a small one");
        let small = image::load_from_memory(small).expect("a picture").to_rgb8();
        assert_eq!((small.width(), small.height()), (320, 480), "{form:?}");
        // What was above is on the right.
        assert!(small.get_pixel(310, 240).0[0] < 60 && small.get_pixel(10, 240).0[0] > 180, "{form:?}");
    }
}

#[tokio::test]
async fn previews_have_two_sizes_and_are_left_out_where_they_save_nothing() {
    let sizes = |found: &Picture| -> Vec<(Preview, u32, u32)> {
        let size = |(preview, bytes): &(Preview, Vec<u8>)| {
            let picture = image::load_from_memory(bytes).expect("a picture");
            (*preview, picture.width(), picture.height())
        };
        found.previews.iter().map(size).collect()
    };
    let large = look_at(PictureForm::Jpeg, encoded(&photo(2_000, 1_000), ImageFormat::Jpeg))
        .await
        .expect("a picture");
    assert_eq!(sizes(&large), [(Preview::Small, 480, 240), (Preview::Large, 1_600, 800)]);
    let little =
        look_at(PictureForm::Jpeg, encoded(&photo(400, 300), ImageFormat::Jpeg)).await.expect("a picture");
    assert_eq!(sizes(&little), []);
    let clear = DynamicImage::ImageRgba8(RgbaImage::from_pixel(1_000, 500, Rgba([9, 9, 9, 0])));
    let clear = look_at(PictureForm::Png, encoded(&clear, ImageFormat::Png)).await.expect("a picture");
    assert_eq!(sizes(&clear), [(Preview::Small, 480, 240)]);
    assert_eq!(kind::media_type(&clear.previews[0].1), "image/png", "what is transparent stays so");
}

/// Their heads are enough to refuse them: nothing of them is decoded.
#[tokio::test]
async fn a_picture_of_too_many_pixels_is_refused_by_its_head() {
    let head = |width: u32, height: u32| {
        let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let said = [
            chunk(b"IHDR", &[&sides[..], &[8, 6, 0, 0, 0]].concat()),
            chunk(b"IDAT", &[0x78, 0x9c, 3, 0]),
            chunk(b"IEND", b""),
        ];
        [&b"\x89PNG\r\n\x1a\n"[..], &said.concat()].concat()
    };
    for (width, height) in [(50_000, 50_000), (16_385, 1), (8_000, 8_000)] {
        assert_eq!(look_at(PictureForm::Png, head(width, height)).await.err(), Some(PictureError::TooLarge));
    }
    let mut gif = encoded(&photo(8, 8), ImageFormat::Gif);
    gif[6..10].copy_from_slice(&[0xff; 4]);
    assert_eq!(look_at(PictureForm::Gif, gif).await.err(), Some(PictureError::TooLarge));
}

#[tokio::test]
async fn what_only_begins_like_a_picture_is_shown_to_nobody() {
    for (form, bytes) in [
        (PictureForm::Jpeg, b"\xff\xd8\xff<script>alert(1)</script>".to_vec()),
        (PictureForm::Png, b"\x89PNG\r\n\x1a\n<script>".to_vec()),
        (PictureForm::Gif, b"GIF89a/*<script>*/".to_vec()),
        (PictureForm::WebP, b"RIFF\xff\xff\xff\xffWEBP<script>".to_vec()),
        (PictureForm::Jpeg, b"\xff\xd8\xff".to_vec()),
        (PictureForm::Png, b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIDAT".to_vec()),
    ] {
        assert_eq!(look_at(form, bytes).await.err(), Some(PictureError::Damaged), "{form:?}");
    }
    // Its parts hold together, and what they say makes no picture.
    let hollow = [&b"\xff\xd8"[..], &segment(0xda, b"x"), b"<script>\xff\xd9"].concat();
    let found = look_at(PictureForm::Jpeg, hollow).await.expect("a file");
    assert_eq!((found.media_type, found.sides, found.previews.len()), (kind::OCTETS, None, 0));
}

/// Every cut and every changed byte ends in a picture or a refusal.
#[tokio::test]
async fn no_bytes_make_it_panic() {
    let picture = photo(30, 20);
    for (form, bytes) in [
        (PictureForm::Jpeg, told_jpeg(&picture, 3)),
        (PictureForm::Png, told_png(&picture, 3)),
        (PictureForm::WebP, told_webp(&picture, 3)),
        (PictureForm::Gif, told_gif(&picture)),
    ] {
        let strip = match form {
            PictureForm::Jpeg => jpeg::strip,
            PictureForm::Png => png::strip,
            PictureForm::Gif => gif::strip,
            PictureForm::WebP => webp::strip,
        };
        for at in 0..bytes.len() {
            _ = strip(&bytes[..at]);
            for value in [0, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Some(stripped) = strip(&changed) {
                    assert!(
                        strip(&stripped.bytes).is_some_and(|again| again.bytes == stripped.bytes),
                        "{form:?} {at} {value}"
                    );
                }
            }
        }
    }
}

/// A picture with thousands of scans costs a decoder a walk over all pixels for each.
#[test]
fn a_picture_of_many_scans_is_refused() {
    let scans = |count| [&b"\xff\xd8"[..], &segment(0xda, b"x").repeat(count), b"\xff\xd9"].concat();
    assert!(jpeg::strip(&scans(100)).is_some());
    assert!(jpeg::strip(&scans(101)).is_none());
}

/// What others see of a person is turned, has no place, and nothing around the middle.
#[tokio::test]
async fn a_square_is_the_middle_of_a_picture_turned_and_without_metadata() {
    // Dark above; on the left and the right, which are left out, red.
    let mut wide = photo(900, 600).to_rgb8();
    for (x, _, pixel) in wide.enumerate_pixels_mut() {
        if !(150..750).contains(&x) {
            *pixel = Rgb([255, 0, 0]);
        }
    }
    let wide = DynamicImage::ImageRgb8(wide);
    for (form, bytes) in [
        (PictureForm::Jpeg, told_jpeg(&wide, 6)),
        (PictureForm::Png, told_png(&wide, 6)),
        (PictureForm::WebP, told_webp(&wide, 6)),
    ] {
        let square = PictureTurn::wait().await.square(form, bytes).await.expect("a picture");
        assert!(
            !holds(&square, PLACE) && !holds(&square, b"Exif") && kind::media_type(&square) == "image/jpeg"
        );
        let square = image::load_from_memory(&square).expect("a picture").to_rgb8();
        assert_eq!((square.width(), square.height()), (256, 256), "{form:?}");
        // What was above is on the right.
        assert!(square.get_pixel(250, 128).0[0] < 60, "{form:?}");
        assert!(square.get_pixel(5, 128).0[0] > 180 && square.get_pixel(5, 128).0[1] > 180, "{form:?}");
    }
    let small =
        PictureTurn::wait().await.square(PictureForm::Png, encoded(&photo(30, 50), ImageFormat::Png)).await;
    let small = image::load_from_memory(&small.expect("a picture")).expect("a picture");
    assert_eq!((small.width(), small.height()), (30, 30), "it is not blown up");
    let none = PictureTurn::wait().await.square(PictureForm::Png, b"\x89PNG\r\n\x1a\nnothing".to_vec()).await;
    assert_eq!(none, Err(PictureError::Damaged));
}
