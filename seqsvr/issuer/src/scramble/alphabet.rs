//! Numbers written in a given alphabet, at a fixed width, with an optional check symbol. Pure.

use thiserror::Error;

/// Letters and digits without `0`, `O`, `I` and `l`, which people confuse.
pub const BASE_58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Marks a byte that is no symbol.
const NONE: u8 = u8::MAX;

/// An alphabet that codes cannot be written in.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadAlphabet {
    /// Too few or too many symbols.
    #[error("the alphabet has {0} symbols; use 2 to 94")]
    Size(usize),
    /// A symbol that is no visible ASCII character.
    #[error("the alphabet holds {0:?}; use visible ASCII characters only")]
    Symbol(char),
    /// A symbol that stands twice.
    #[error("the alphabet holds {0:?} twice; use each symbol once")]
    Twice(char),
}

/// 2 to 94 different visible ASCII characters; the position of each is its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    symbols: Vec<u8>,
    values: [u8; 256],
    /// The values that `check` counts for every second symbol, by the symbol.
    doubled: [u8; 256],
    /// 2^64 / base, rounded up: for 32-bit numbers a multiplication by it is an exact division.
    reciprocal: u64,
    /// The largest power of the base below 2^32, and its exponent: digits are cut off in groups of it.
    group: u64,
    group_digits: usize,
}

impl Alphabet {
    /// Checks an alphabet.
    ///
    /// # Errors
    ///
    /// [`BadAlphabet`] says which symbol cannot stand in it.
    pub fn new(symbols: &str) -> Result<Self, BadAlphabet> {
        let size = symbols.chars().count();
        if !(2..=94).contains(&size) {
            return Err(BadAlphabet::Size(size));
        }
        let mut values = [NONE; 256];
        for (value, symbol) in (0_u8..).zip(symbols.chars()) {
            if !symbol.is_ascii_graphic() {
                return Err(BadAlphabet::Symbol(symbol));
            }
            if std::mem::replace(&mut values[symbol as usize], value) != NONE {
                return Err(BadAlphabet::Twice(symbol));
            }
        }
        let mut doubled_values = [0; 256];
        for (value, symbol) in symbols.bytes().enumerate() {
            doubled_values[usize::from(symbol)] = doubled(value, size) as u8;
        }
        let base = size as u64;
        let group_digits = (1..32).take_while(|&digits| base.pow(digits) < 1 << 32).count();
        Ok(Self {
            symbols: symbols.into(),
            values,
            doubled: doubled_values,
            reciprocal: u64::MAX / base + 1,
            group: base.pow(group_digits as u32),
            group_digits,
        })
    }

    /// How many symbols there are.
    pub fn base(&self) -> u64 {
        self.symbols.len() as u64
    }

    /// The symbols in the order of their values.
    pub fn symbols(&self) -> &str {
        std::str::from_utf8(&self.symbols).expect("checked to be ASCII")
    }

    /// How many symbols are needed to tell `size` numbers (1 and up) apart; at least one.
    pub(super) fn width(&self, size: u64) -> usize {
        let mut rest = (size - 1) / self.base();
        let mut width = 1;
        while rest > 0 {
            rest /= self.base();
            width += 1;
        }
        width
    }

    pub(super) fn symbol(&self, value: usize) -> Option<u8> {
        self.symbols.get(value).copied()
    }

    pub(super) fn value(&self, symbol: u8) -> Option<usize> {
        let value = self.values[usize::from(symbol)];
        (value != NONE).then_some(usize::from(value))
    }

    /// Writes `number` over the whole of `digits`, most significant first; it must fit.
    pub(super) fn write(&self, number: u64, digits: &mut [u8]) {
        let base = self.base() as u32;
        let mut rest = number;
        for group in digits.rchunks_mut(self.group_digits) {
            let mut part = (rest % self.group) as u32;
            rest /= self.group;
            for digit in group.iter_mut().rev() {
                let upper = ((u128::from(self.reciprocal) * u128::from(part)) >> 64) as u32;
                *digit = self.symbols[(part - upper * base) as usize];
                part = upper;
            }
        }
    }

    /// Reads what `write` wrote; `None` for a foreign symbol or a number beyond 64 bits.
    pub(super) fn read(&self, digits: &[u8]) -> Option<u64> {
        digits.iter().try_fold(0_u64, |number, &digit| {
            number.checked_mul(self.base())?.checked_add(self.value(digit)? as u64)
        })
    }

    /// The symbol that, after `symbols` (all of this alphabet), shows any single wrong symbol and nearly every swap
    /// of neighbours.
    pub(super) fn check(&self, symbols: &[u8]) -> u8 {
        let base = self.symbols.len();
        let mut sum = 0;
        for pair in symbols.rchunks(2) {
            let (&last, first) = pair.split_last().expect("chunks are not empty");
            sum += usize::from(self.doubled[usize::from(last)]);
            sum += first.first().map_or(0, |&symbol| usize::from(self.values[usize::from(symbol)]));
        }
        self.symbols[(base - sum % base) % base]
    }
}

/// A permutation of the values that is not the identity: Luhn's, where the base is even (there plain doubling would map two
/// values to one).
fn doubled(value: usize, base: usize) -> usize {
    if base.is_multiple_of(2) { 2 * value / base + 2 * value % base } else { 2 * value % base }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_alphabet() -> impl Strategy<Value = Alphabet> {
        let visible: Vec<char> = ('!'..='~').collect();
        (Just(visible).prop_shuffle(), 2_usize..=94)
            .prop_map(|(visible, size)| Alphabet::new(&visible[..size].iter().collect::<String>()).unwrap())
    }

    #[test]
    fn wrong_alphabets_are_refused() {
        let error = |symbols| Alphabet::new(symbols).unwrap_err();
        assert_eq!(error("a"), BadAlphabet::Size(1));
        assert_eq!(error("abca"), BadAlphabet::Twice('a'));
        assert_eq!(error("abc d"), BadAlphabet::Symbol(' '));
        assert_eq!(error("abcé"), BadAlphabet::Symbol('é'));
        assert_eq!(Alphabet::new(BASE_58).unwrap().base(), 58);
    }

    #[test]
    fn widths_are_as_short_as_they_can_be() {
        let alphabet = Alphabet::new(BASE_58).unwrap();
        for (size, width) in [(1, 1), (58, 1), (59, 2), (58 * 58, 2), (58 * 58 + 1, 3), (1 << 63, 11)] {
            assert_eq!(alphabet.width(size), width, "{size}");
        }
        assert_eq!(Alphabet::new("01").unwrap().width(1 << 63), 63);
    }

    proptest! {
        #[test]
        fn a_number_reads_as_written(alphabet in any_alphabet(), number: u64, shorter in 0_u32..64) {
            let number = number >> 1 >> shorter;
            let mut digits = vec![0; alphabet.width(number + 1)];
            alphabet.write(number, &mut digits);
            prop_assert_eq!(alphabet.read(&digits), Some(number));
        }

        #[test]
        fn a_single_wrong_symbol_is_noticed(
            alphabet in any_alphabet(), values in prop::collection::vec(0_usize..94, 1..20), at: usize, other: usize,
        ) {
            let base = alphabet.symbols.len();
            let mut symbols: Vec<u8> = values.iter().map(|value| alphabet.symbols[value % base]).collect();
            let check = alphabet.check(&symbols);
            let (at, other) = (at % symbols.len(), alphabet.symbols[other % base]);
            prop_assume!(symbols[at] != other);
            symbols[at] = other;
            prop_assert_ne!(alphabet.check(&symbols), check);
        }
    }

    #[test]
    fn nearly_every_swap_of_neighbours_is_noticed() {
        for symbols in [BASE_58, "0123456789abcdefghjkmnpqrstvwxyz", "01234567890"[..9].as_ref()] {
            let alphabet = Alphabet::new(symbols).unwrap();
            let missed: usize = alphabet
                .symbols
                .iter()
                .flat_map(|&a| alphabet.symbols.iter().map(move |&b| (a, b)))
                .filter(|(a, b)| a != b && alphabet.check(&[*a, *b]) == alphabet.check(&[*b, *a]))
                .count();
            assert!(missed <= 2, "{symbols}: {missed}");
        }
    }
}
