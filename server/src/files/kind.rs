//! What a file is, by its first bytes. The word of its sender counts for nothing: a browser gets the type that is found here.

/// Bytes at the beginning of a file that tell what it is.
pub const SNIFFED: usize = 4_096;

/// The type of everything that is not known.
pub const OCTETS: &str = "application/octet-stream";

/// What a browser may show or play in a page: these alone, all others are saved. Nothing among them runs a script.
const INLINE: [&str; 13] = [
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "audio/flac",
    "audio/aac",
    "audio/mp4",
    "audio/webm",
    "video/mp4",
    "video/webm",
];

/// Whether a browser may show or play it in a page.
pub fn is_inline(media_type: &str) -> bool {
    INLINE.contains(&media_type)
}

/// The media type of a file that begins with these bytes: up to [`SNIFFED`] of them, or all that it has.
pub fn media_type(head: &[u8]) -> &'static str {
    let at = |place: usize, bytes: &[u8]| head.get(place..).is_some_and(|rest| rest.starts_with(bytes));
    match head {
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
        _ if at(0, b"GIF87a") || at(0, b"GIF89a") => "image/gif",
        _ if at(0, b"RIFF") && at(8, b"WEBP") => "image/webp",
        _ if at(0, b"RIFF") && at(8, b"WAVE") => "audio/wav",
        _ if at(4, b"ftyp") => of_brand(head),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => of_matroska(head),
        _ if at(0, b"OggS") => of_ogg(head),
        _ if at(0, b"fLaC") => "audio/flac",
        _ if at(0, b"ID3") => "audio/mpeg",
        // A frame of MPEG-2 or MPEG-4 with AAC, then one of layer 3 of MPEG-1 or MPEG-2.
        [0xff, 0xf0 | 0xf1 | 0xf8 | 0xf9, ..] => "audio/aac",
        [0xff, 0xfa | 0xfb | 0xf2 | 0xf3, ..] => "audio/mpeg",
        _ if at(0, b"%PDF-") => "application/pdf",
        _ if at(0, b"PK\x03\x04") => "application/zip",
        [0x1f, 0x8b, ..] => "application/gzip",
        [b'M', b'Z', ..] => "application/vnd.microsoft.portable-executable",
        [0x7f, b'E', b'L', b'F', ..] => "application/x-elf",
        _ => OCTETS,
    }
}

/// MPEG-4 and what is built like it, by the word for which its readers look.
fn of_brand(head: &[u8]) -> &'static str {
    match head.get(8..12).unwrap_or_default() {
        b"M4A " | b"M4B " => "audio/mp4",
        b"avif" | b"avis" => "image/avif",
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"mif1" | b"msf1" => "image/heic",
        b"qt  " => "video/quicktime",
        b"isom" | b"iso2" | b"iso3" | b"iso4" | b"iso5" | b"iso6" | b"mp41" | b"mp42" | b"avc1" | b"M4V "
        | b"dash" => "video/mp4",
        _ => OCTETS,
    }
}

/// WebM has its codecs near the beginning; other files of its family no browser plays.
fn of_matroska(head: &[u8]) -> &'static str {
    match () {
        () if !holds(head, b"webm") => "video/x-matroska",
        () if holds(head, b"V_VP") || holds(head, b"V_AV1") => "video/webm",
        () if holds(head, b"A_OPUS") || holds(head, b"A_VORBIS") => "audio/webm",
        () => OCTETS,
    }
}

fn of_ogg(head: &[u8]) -> &'static str {
    match () {
        () if holds(head, b"theora") => "video/ogg",
        () if holds(head, b"OpusHead") || holds(head, b"\x01vorbis") || holds(head, b"\x7fFLAC") => {
            "audio/ogg"
        }
        () => OCTETS,
    }
}

fn holds(head: &[u8], word: &[u8]) -> bool {
    head.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_what_a_file_is() {
        for (head, kind) in [
            (&b"\xff\xd8\xff\xe0\0\x10JFIF"[..], "image/jpeg"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
            (b"\0\0\0\x20ftypisom", "video/mp4"),
            (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
            (b"\0\0\0\x20ftypheic", "image/heic"),
            (b"\x1a\x45\xdf\xa3\x42\x82\x84webm\x86A_OPUS", "audio/webm"),
            (b"\x1a\x45\xdf\xa3\x42\x82\x84webm\x86V_VP9\x86A_OPUS", "video/webm"),
            (b"\x1a\x45\xdf\xa3\x42\x82\x88matroska", "video/x-matroska"),
            (b"OggS\0\x02OpusHead", "audio/ogg"),
            (b"ID3\x04", "audio/mpeg"),
            (b"\xff\xfb\x90", "audio/mpeg"),
            (b"\xff\xf1\x50", "audio/aac"),
            (b"%PDF-1.7", "application/pdf"),
            (b"MZ\x90", "application/vnd.microsoft.portable-executable"),
        ] {
            assert_eq!(media_type(head), kind, "{head:?}");
        }
    }

    #[test]
    fn what_could_run_in_a_page_is_never_shown_in_one() {
        let svg = b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
        for head in [
            &svg[..],
            b"<!doctype html><script>1</script>",
            b"<svg onload=alert(1)>",
            b"#!/bin/sh",
            b"",
            b"%PDF-",
        ] {
            assert!(!is_inline(media_type(head)), "{head:?}");
        }
    }
}
