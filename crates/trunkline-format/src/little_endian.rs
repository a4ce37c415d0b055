//! Reads a little-endian number at a given byte offset. Returns `None` if the number would extend
//! past the end of the bytes. Writes one, or nothing if it doesn't fit.
//!
//! All decoders use these functions instead of indexing into a slice, because a bad offset on a
//! damaged page must not cause a panic. The byte order of the machine we run on doesn't matter.
//! Clusters created on a big-endian machine are rejected when we read their control file.

/// A number that is stored as little-endian bytes, or an array of bytes.
pub(crate) trait Number: Sized {
    /// Reads the value at the start of `bytes`.
    fn first_of(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Number for $type {
            #[inline]
            fn first_of(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().copied().map(Self::from_le_bytes)
            }
        })*
    };
}

numbers!(u8, i16, u16, i32, u32, i64, u64, f32, f64);

impl<const N: usize> Number for [u8; N] {
    #[inline]
    fn first_of(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied()
    }
}

/// The value at offset `at`.
#[inline]
pub(crate) fn read_at<T: Number>(bytes: &[u8], at: usize) -> Option<T> {
    T::first_of(bytes.get(at..)?)
}

/// The `N` u32s starting at `at`.
pub(crate) fn words<const N: usize>(bytes: &[u8], at: usize) -> Option<[u32; N]> {
    let (words, _) = bytes.get(at..)?.as_chunks::<4>();
    Some(words.first_chunk::<N>()?.map(u32::from_le_bytes))
}

/// Writes bytes at offset `at`. If they don't fit, nothing is written.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    let place = at.checked_add(N).and_then(|end| bytes.get_mut(at..end));
    if let Some(place) = place {
        place.copy_from_slice(&value);
    }
}
