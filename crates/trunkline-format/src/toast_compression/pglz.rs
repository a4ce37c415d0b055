//! **pglz decompression**: literal bytes, and matches that copy earlier output.
//!
//! ```text
//!   control │ item item item item item item item item │ control │ …
//!   bit 0 (the lowest first): one literal byte
//!   bit 1: a match   dddd llll  dddddddd  [eeeeeeee]   distance d, length l + 3, or 18 + e if l = 15
//! ```
//! For example, `00 41` decompresses to "A", and `02 41 07 01` decompresses to "A" followed by 10
//! more of them. This works because a match may overlap its own output.
//!
//! Mirrors `pglz_decompress` in PostgreSQL's `common/pg_lzcompress.c`.

/// `PGLZ_MAX_MATCH`: the maximum length of a match.
pub(super) const MATCH_MAX: usize = 3 + 15 + 255;

/// Decompresses `bytes` into `out`. Returns false if the decompressed data doesn't fill `out`
/// exactly, or if a match refers to data before the start of `out`. The contents of `out` are
/// undefined in that case. If the last match extends past the end of `out`, we truncate it, as the
/// server does.
pub(super) fn decompress(bytes: &[u8], out: &mut [u8]) -> bool {
    let (mut rest, mut at) = (bytes, 0);
    while at < out.len()
        && let Some((&control, items)) = rest.split_first()
    {
        rest = items;
        // The bit above the eight control bits shows when all eight items are processed.
        let mut control = u32::from(control) | 0x100;
        while control != 1 && at < out.len() && !rest.is_empty() {
            let done = match control & 1 {
                0 => literal(&mut rest, out, at),
                _ => copy(&mut rest, out, at),
            };
            let Some(end) = done else { return false };
            at = end;
            control >>= 1;
        }
    }
    at == out.len() && rest.is_empty()
}

/// Writes a literal byte at `at` and returns the offset after it.
#[inline]
fn literal(rest: &mut &[u8], out: &mut [u8], at: usize) -> Option<usize> {
    let (&byte, after) = rest.split_first()?;
    *rest = after;
    *out.get_mut(at)? = byte;
    Some(at + 1)
}

/// Copies a match to `at` and returns the offset after it.
#[inline]
fn copy(rest: &mut &[u8], out: &mut [u8], at: usize) -> Option<usize> {
    let (&[first, second], mut after) = rest.split_first_chunk()?;
    let distance = usize::from(first & 0xF0) << 4 | usize::from(second);
    let mut length = usize::from(first & 0x0F) + 3;
    if length == 18 {
        let (&more, behind) = after.split_first()?;
        length += usize::from(more);
        after = behind;
    }
    *rest = after;
    let start = at.checked_sub(distance)?;
    if distance == 0 {
        return None;
    }
    let end = at.saturating_add(length).min(out.len());
    if distance >= end - at {
        out.copy_within(start..start + (end - at), at);
        return Some(end);
    }
    // The match overlaps its own output, so it repeats the same bytes over and over. This means
    // that in each step we can copy twice as much as in the previous one.
    let mut done = at;
    while done < end {
        let step = (end - done).min(done - start);
        out.copy_within(start..start + step, done);
        done += step;
    }
    Some(end)
}
