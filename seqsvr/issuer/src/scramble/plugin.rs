//! The plugin that spells numbers as codes (S26). Owns the codecs of its tags; opened once, when every codec agrees
//! with the codes that exist.

use std::collections::BTreeMap;

use thiserror::Error;

use super::codec::Codec;
use super::fingerprint::CodecChanged;
use super::ledger::{CodeLedger, LedgerError};
use crate::{Issued, Plugin, Tag};

/// After the plugins that look at numbers.
const ORDER: i32 = 100;

/// Why codes cannot be given out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OpenScrambleError {
    /// A codec would write other codes than those that exist.
    #[error(transparent)]
    Changed(#[from] CodecChanged),
    /// The fingerprints cannot be read, so nobody knows.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// A [`Plugin`] that spells the numbers of its tags as codes, and reads them.
#[derive(Debug)]
pub struct Scramble {
    codecs: BTreeMap<Tag, Codec>,
}

impl Scramble {
    /// Compares the codecs with what `ledger` recorded when their key versions were first used, and records new versions.
    /// A recorded version that is no longer configured is no error: its codes are merely not read.
    ///
    /// # Errors
    ///
    /// [`OpenScrambleError::Changed`] when a key, alphabet, range or check symbol was changed for codes that exist.
    pub async fn open(
        codecs: BTreeMap<Tag, Codec>,
        ledger: &dyn CodeLedger,
    ) -> Result<Self, OpenScrambleError> {
        for (tag, codec) in &codecs {
            for (version, fingerprint) in codec.fingerprints() {
                if ledger.record(tag, version, fingerprint).await? != fingerprint {
                    return Err(CodecChanged { tag: tag.clone(), version }.into());
                }
            }
        }
        Ok(Self { codecs })
    }

    /// The tags that have codes.
    pub fn tags(&self) -> impl Iterator<Item = &Tag> {
        self.codecs.keys()
    }
}

impl Plugin for Scramble {
    fn name(&self) -> &str {
        "scramble"
    }

    fn order(&self) -> i32 {
        ORDER
    }

    fn after(&self, tag: &Tag, issued: &mut Issued) -> Result<(), String> {
        let Some(codec) = self.codecs.get(tag) else { return Ok(()) };
        let codes: Result<Vec<String>, _> =
            issued.numbers().map(|number| codec.encode(number).map(|code| code.to_string())).collect();
        issued.set_codes(codes.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn decode(&self, tag: &Tag, code: &str) -> Option<Result<u64, String>> {
        let codec = self.codecs.get(tag)?;
        Some(codec.decode(code).map_err(|error| error.to_string()))
    }
}
