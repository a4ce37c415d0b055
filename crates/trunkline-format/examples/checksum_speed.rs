//! Checksums one set of pages again and again and prints GB/s: `checksum_speed [pages]`.
//!
//! 32 pages (256 KiB, the default) fit in the L2 cache; 65536 pages (512 MiB) do not.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;
use trunkline_format::checksum::{page_checksum, page_checksum_portable};
use trunkline_format::{BLOCK_SIZE, PageBytes};

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(32), |arg| arg.parse())?;
    let mut pages = vec![[0_u8; BLOCK_SIZE]; count];
    for (i, byte) in pages.as_flattened_mut().iter_mut().enumerate() {
        *byte = (i * 7 + i / 8192) as u8;
    }
    measure("dispatched", &pages, page_checksum);
    measure("portable", &pages, page_checksum_portable);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn measure(name: &str, pages: &[PageBytes], checksum: fn(&PageBytes, u32) -> u16) {
    let rounds = (1 << 18) / pages.len().max(1) + 1;
    for _ in 0..3 {
        let start = Instant::now();
        let mut all = 0_u16;
        for _ in 0..rounds {
            for (block, page) in pages.iter().enumerate() {
                all ^= checksum(black_box(page), block as u32);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let bytes = (rounds * pages.len() * BLOCK_SIZE) as f64;
        println!("{name:10} {:6.1} GB/s (xor {all})", bytes / seconds / 1e9);
    }
}
