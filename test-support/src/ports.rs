//! Ports for servers whose address must be known before they listen, or that come back on the same one.
//!
//! A port that was free a moment ago may be taken by then: by a connection, to which the system gives any port of its
//! own range, or by another test that looked at the same time. So ports come from below that range, in blocks, and
//! whoever listens on the first port of a block owns the rest of it. A program owns its blocks until it ends.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::Mutex;

/// Where the blocks lie: above the usual services, below the ports that Linux gives to connections (32,768 and up).
const PORTS: Range<u16> = 10_000..32_000;

/// How many ports a block has, with the first, which nobody is given.
const BLOCK: u16 = 50;

/// How many blocks are tried, at random, before there is no port.
const TRIES: usize = 2_000;

/// A block of this program.
struct Block {
    /// Says to every other program that the block is taken.
    _first: TcpListener,
    left: Range<u16>,
}

static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// A port of the loopback on which nothing listens, and which no other caller is given while this program runs.
///
/// # Panics
///
/// When no port is left.
pub fn free_port() -> u16 {
    let mut blocks = BLOCKS.lock().expect("nobody panics with it");
    for _ in 0..TRIES {
        let of_this_program = blocks.last_mut().and_then(|block| block.left.find(|port| is_free(*port)));
        match of_this_program {
            Some(port) => return port,
            None => blocks.extend(block()),
        }
    }
    panic!(
        "there is no free port from {} to {}: is something listening on all of them?",
        PORTS.start, PORTS.end
    )
}

/// A block drawn at random, unless somebody has it.
fn block() -> Option<Block> {
    let first = PORTS.start + BLOCK * rand::random_range(0..(PORTS.end - PORTS.start) / BLOCK);
    let held = TcpListener::bind(("127.0.0.1", first)).ok()?;
    Some(Block { _first: held, left: first + 1..first + BLOCK })
}

/// Some other server of the machine may listen in the middle of a block.
fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice_and_every_one_can_be_listened_on() {
        let given: Vec<u16> = (0..3 * BLOCK).map(|_| free_port()).collect();
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        for port in given {
            assert!(PORTS.contains(&port));
            TcpListener::bind(("127.0.0.1", port)).expect("nobody else listens there");
        }
    }

    #[test]
    fn a_block_that_somebody_has_is_not_taken() {
        free_port();
        let blocks = BLOCKS.lock().expect("nobody panics with it");
        for block in blocks.iter() {
            let first = block._first.local_addr().expect("it is bound");
            assert!(TcpListener::bind(first).is_err());
        }
    }
}
