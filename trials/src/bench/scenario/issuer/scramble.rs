//! `scramble`: what it costs to write the code of a number, and to read it.

use std::hint::black_box;
use std::time::Instant;

use seqsvr_issuer::scramble::{BASE_58, Codec, CodecOptions, Key};
use seqsvr_issuer::{Range, Tag};

use super::TAG;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::{Failure, Result};

/// Codes in a run.
const CODES: usize = 1_000_000;
/// Ranges of numbers, by the length of their codes.
const RANGES: [(&str, u64); 2] = [("5 symbols", 9_999_999), ("11 symbols", 1 << 62)];

pub(in crate::bench::scenario) struct ScrambleCodes {
    codecs: Vec<(&'static str, u64, Codec)>,
}

impl Measured for ScrambleCodes {
    const NAME: &'static str = "scramble";
    const ABOUT: &'static str = "issuer: writing and reading short codes";

    async fn prepare(_: &Context) -> Result<Self> {
        let codec = |(name, last)| {
            let options = CodecOptions {
                range: Range { first: 1, last },
                alphabet: BASE_58.to_owned(),
                check_symbol: false,
                keys: vec![Key { version: 1, secret: "a secret for measurements".to_owned() }],
            };
            Ok((name, last, Codec::new(&Tag::new(TAG)?, &options)?))
        };
        Ok(ScrambleCodes { codecs: RANGES.into_iter().map(codec).collect::<Result<_>>()? })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let count = context.scaled(CODES);
        let mut samples = Vec::new();
        for (name, last, codec) in &self.codecs {
            // All over the range: some places take the permutation longer than others.
            let apart = last / count as u64;
            let numbers: Vec<u64> = (0..count as u64).map(|at| 1 + at * apart).collect();
            let began = Instant::now();
            for &number in &numbers {
                black_box(codec.encode(number)?);
            }
            let encoding = began.elapsed();
            let codes = numbers
                .iter()
                .map(|&number| codec.encode(number))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let began = Instant::now();
            for (code, number) in codes.iter().zip(&numbers) {
                let read = codec.decode(code)?;
                if read != *number {
                    return Err(Failure::new(format!("{code} was read as {read}; it stands for {number}")));
                }
            }
            let decoding = began.elapsed();
            for (what, took) in [("encode", encoding), ("decode", decoding)] {
                let each = took.as_secs_f64() * 1e9 / count as f64;
                samples
                    .push(Sample::new(format!("{what}, {name}"), each, "ns").target(Target::AtMost(100.0)));
            }
        }
        Ok(samples)
    }
}
