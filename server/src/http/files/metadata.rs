//! What a client says of a file in `Upload-Metadata`: pairs of a key and a value in Base64, with commas between them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::http::error::Problem;

/// Bytes of the header.
const MOST: usize = 16 << 10;

/// The name of the file, by the keys that clients of tus use; `file` where there is none.
pub(super) fn name(header: Option<&[u8]>) -> Result<String, Problem> {
    let malformed = || {
        Problem::invalid_query(
            "the header Upload-Metadata has keys with values in Base64: filename cGllci5qcGc=",
        )
    };
    let Some(header) = header else { return Ok("file".to_owned()) };
    let text = std::str::from_utf8(header).ok().filter(|text| text.len() <= MOST).ok_or_else(malformed)?;
    for pair in text.split(',') {
        let (key, value) = pair.trim().split_once(' ').unwrap_or((pair.trim(), ""));
        if !matches!(key, "filename" | "name") {
            continue;
        }
        let bytes = BASE64_STANDARD.decode(value.trim()).map_err(|_| malformed())?;
        return String::from_utf8(bytes).map_err(|_| Problem::invalid_utf8());
    }
    Ok("file".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_among_other_pairs() {
        for (header, expected) in [
            (None, Some("file")),
            (Some(&b""[..]), Some("file")),
            (Some(b"filetype aW1hZ2U="), Some("file")),
            (Some(b"filename cGllci5qcGc="), Some("pier.jpg")),
            (Some(b"filetype aW1hZ2U=, name cGllci5qcGc= ,is_confidential"), Some("pier.jpg")),
            (Some(b"filename ???"), None),
            (Some(b"filename /w=="), None),
            (Some(b"\xff"), None),
        ] {
            assert_eq!(name(header).ok().as_deref(), expected, "{header:?}");
        }
    }
}
