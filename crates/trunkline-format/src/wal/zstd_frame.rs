//! Decompresses one zstd frame of a known size, with bounded memory.
//!
//! A frame names the window that its decoder has to allocate, up to terabytes, and a block of four
//! bytes can stand for 128 kB. The server compresses an image in one call, so the window of a
//! genuine frame is never larger than a page. We refuse frames that ask for more before anything is
//! allocated, and stop after the block in which the output exceeds its size.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::ids::BLOCK_SIZE;

/// The largest window that we accept: twice that of a page.
const WINDOW_MAX: u64 = 2 * BLOCK_SIZE as u64;

/// Decompresses `frame` into `out`. Returns false if it doesn't fill it exactly.
pub(super) fn decompress(frame: &[u8], out: &mut [u8]) -> bool {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_MAX);
    let mut rest = frame;
    let limit = BlockDecodingStrategy::UptoBytes(out.len() + 1);
    decoder.init(&mut rest).is_ok()
        && decoder.decode_blocks(&mut rest, limit).is_ok()
        && decoder.is_finished()
        && rest.is_empty()
        && decoder.can_collect() == out.len()
        && matches!(decoder.read(out), Ok(length) if length == out.len())
}
