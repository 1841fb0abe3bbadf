//! Compressed bodies: zlib, which the protocol calls `deflate`.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::error::{ErrorCode, TableError};

/// The decompressed bytes, if they are at most `most`.
///
/// # Errors
///
/// It is not whole zlib data, or it has more bytes.
pub fn decompress(bytes: &[u8], most: usize) -> Result<Vec<u8>, TableError> {
    let mut whole = Vec::new();
    // A limit beyond `u64` is no limit.
    let one_more = u64::try_from(most).map_or(u64::MAX, |most| most.saturating_add(1));
    ZlibDecoder::new(bytes)
        .take(one_more)
        .read_to_end(&mut whole)
        .map_err(|_| TableError::invalid("The body cannot be decompressed: it is incomplete zlib data."))?;
    if whole.len() > most {
        let message = format!("The decompressed body exceeds the limit of {most} bytes.");
        return Err(TableError::new(ErrorCode::RequestBodyTooLarge, message));
    }
    Ok(whole)
}

/// `bytes`, compressed for speed.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes it")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_small_body_that_becomes_huge_is_refused_at_its_limit() {
        let bomb = compress(&vec![0; 50 << 20]);
        assert!(bomb.len() < 1 << 20);
        let refused = decompress(&bomb, 5 << 20).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RequestBodyTooLarge);
    }

    #[test]
    fn data_that_is_cut_off_is_refused() {
        let whole = compress(b"abcabcabcabc");
        for length in 0..whole.len() {
            assert!(decompress(&whole[..length], 100).is_err(), "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(decompress(&compress(&bytes), bytes.len()).unwrap(), bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decompress(&bytes, 1 << 20);
        }
    }
}
