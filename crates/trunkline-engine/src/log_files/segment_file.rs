//! Reads one segment file, which may be plain, compressed or partial.
//!
//! | Name | Written by |
//! |---|---|
//! | `000000010000000000000002` | a server, or an archive |
//! | `….gz`, `….lz4`, `….zst` | archives, `pg_receivewal --compress` |
//! | `….partial`, `….gz.partial` | `pg_receivewal` while it receives; a server at the end of a timeline |
//!
//! A compressed file is decompressed as a whole, since these formats have no random access. We stop at
//! the size of a segment, so that a decompression bomb can't exhaust the memory.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use trunkline_format::wal::SegmentName;

use super::error::LogFilesError;

/// How much of a plain file is read at once.
pub(super) const CHUNK: usize = 1 << 20;

/// How a file contains its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// Whether the file may end before the segment does. Others are preferred.
    pub(super) is_partial: bool,
    compression: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Compression {
    None,
    Gzip,
    Lz4,
    Zstd,
}

const COMPRESSIONS: [(Compression, &str); 4] = [
    (Compression::None, ""),
    (Compression::Gzip, ".gz"),
    (Compression::Lz4, ".lz4"),
    (Compression::Zstd, ".zst"),
];

impl Form {
    pub(super) const PLAIN: Self = Self { is_partial: false, compression: Compression::None };

    /// The forms of complete files.
    pub(super) const COMPLETE: [Self; 4] = [
        Self::PLAIN,
        Self { is_partial: false, compression: Compression::Gzip },
        Self { is_partial: false, compression: Compression::Lz4 },
        Self { is_partial: false, compression: Compression::Zstd },
    ];

    /// What a complete file has behind its name.
    pub(super) fn suffix(self) -> &'static str {
        let found = COMPRESSIONS.iter().find(|(known, _)| *known == self.compression);
        found.map_or("", |(_, suffix)| suffix)
    }

    /// Splits a file name into the name of its segment, or whatever it is, and its form.
    pub(super) fn of_name(name: &str) -> (&str, Self) {
        let (rest, is_partial) = match name.strip_suffix(".partial") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        for (compression, suffix) in COMPRESSIONS.into_iter().skip(1) {
            if let Some(rest) = rest.strip_suffix(suffix) {
                return (rest, Self { is_partial, compression });
            }
        }
        (rest, Self { is_partial, compression: Compression::None })
    }

    pub(super) fn is_plain(self) -> bool {
        self.compression == Compression::None
    }
}

/// A file that contains a segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) name: SegmentName,
    pub(super) form: Form,
}

/// An open segment: a file, or what a compressed file contains.
#[derive(Debug)]
pub(super) enum OpenSegment {
    Plain(File, u64),
    Unpacked(Vec<u8>),
}

impl SegmentFile {
    /// Opens the file. `size` is that of a segment in bytes.
    pub(super) fn open(&self, size: u32) -> Result<OpenSegment, LogFilesError> {
        if !self.form.is_plain() {
            return read_whole(&self.path, self.form, size as usize).map(OpenSegment::Unpacked);
        }
        let file = open(&self.path)?;
        let length =
            file.metadata().map_err(|error| LogFilesError::io("read", &self.path, error))?.len();
        Ok(OpenSegment::Plain(file, length))
    }
}

impl OpenSegment {
    /// The length of the segment in the file.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Plain(_, length) => *length,
            Self::Unpacked(bytes) => bytes.len() as u64,
        }
    }

    /// Advises the kernel that these bytes will be read soon.
    pub(super) fn advise(&self, offset: u64, bytes: NonZeroU64) {
        if let Self::Plain(file, _) = self {
            // Only advice, so an error means nothing.
            let _ = fadvise(file, offset, Some(bytes), Advice::WillNeed);
        }
    }

    /// Replaces `buffer` by up to `count` bytes from `offset` on.
    pub(super) fn read(
        &self,
        offset: u64,
        count: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), io::Error> {
        let count = self.length().saturating_sub(offset).min(count) as usize;
        match self {
            Self::Plain(file, _) => {
                buffer.resize(count, 0);
                file.read_exact_at(buffer, offset)
            }
            Self::Unpacked(bytes) => {
                buffer.clear();
                let part = bytes.get(offset as usize..offset as usize + count);
                buffer.extend_from_slice(part.unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// Opens a regular file; the log may come from anywhere.
fn open(path: &Path) -> Result<File, LogFilesError> {
    let metadata = std::fs::metadata(path);
    let metadata = metadata.map_err(|error| LogFilesError::io("open file", path, error))?;
    if metadata.is_dir() {
        return Err(LogFilesError::Directory { path: path.to_owned() });
    }
    if !metadata.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(LogFilesError::io("open file", path, source));
    }
    File::open(path).map_err(|error| LogFilesError::io("open file", path, error))
}

/// Reads and decompresses a file that contains at most `most` bytes.
pub(super) fn read_whole(path: &Path, form: Form, most: usize) -> Result<Vec<u8>, LogFilesError> {
    let bytes = read_start(path, form, most.saturating_add(1))?;
    if bytes.len() > most {
        let reason = format!("it contains more than {most} bytes");
        return Err(LogFilesError::Compressed { path: path.to_owned(), reason });
    }
    Ok(bytes)
}

/// Reads and decompresses the first `count` bytes of a file, or fewer if it has fewer.
pub(super) fn read_start(path: &Path, form: Form, count: usize) -> Result<Vec<u8>, LogFilesError> {
    let file = open(path)?;
    let (limit, mut bytes) = (count as u64, Vec::new());
    let read = match form.compression {
        Compression::None => file.take(limit).read_to_end(&mut bytes),
        Compression::Gzip => {
            flate2::read::MultiGzDecoder::new(file).take(limit).read_to_end(&mut bytes)
        }
        Compression::Lz4 => unpack_lz4(file, limit, &mut bytes),
        Compression::Zstd => unpack_zstd(file, limit, &mut bytes),
    };
    match read {
        // The end of a file that is still being written is cut in the middle of a frame.
        Err(_) if form.is_partial && !form.is_plain() => Ok(bytes),
        Err(error) if form.is_plain() => Err(LogFilesError::io("read", path, error)),
        Err(error) => {
            let reason = error.to_string();
            Err(LogFilesError::Compressed { path: path.to_owned(), reason })
        }
        Ok(_) => Ok(bytes),
    }
}

/// Decompresses all frames of a file.
fn unpack_lz4(file: File, limit: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut decoder = lz4_flex::frame::FrameDecoder::new(file);
    loop {
        // The decoder ends at the end of a frame, and goes on with the next one if asked again.
        let left = limit - bytes.len() as u64;
        if (&mut decoder).take(left).read_to_end(bytes)? == 0 || bytes.len() as u64 >= limit {
            return Ok(bytes.len());
        }
    }
}

/// Decompresses all frames of a file.
fn unpack_zstd(file: File, limit: u64, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut file = io::BufReader::new(file);
    while !file.fill_buf()?.is_empty() && (bytes.len() as u64) < limit {
        let decoder = ruzstd::decoding::StreamingDecoder::new(&mut file);
        let left = limit - bytes.len() as u64;
        decoder.map_err(io::Error::other)?.take(left).read_to_end(bytes)?;
    }
    Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_a_segment_is_stored() {
        for (name, segment, suffix, is_partial) in [
            ("000000010000000000000002", "000000010000000000000002", "", false),
            ("000000010000000000000002.gz", "000000010000000000000002", ".gz", false),
            ("000000010000000000000002.lz4.partial", "000000010000000000000002", ".lz4", true),
            ("00000002.history.zst", "00000002.history", ".zst", false),
            ("x.partial", "x", "", true),
            ("x.gz.done", "x.gz.done", "", false),
        ] {
            let (found, form) = Form::of_name(name);
            assert_eq!((found, form.suffix(), form.is_partial), (segment, suffix, is_partial));
        }
        assert!(Form::of_name("x").1 < Form::of_name("x.gz").1);
        assert!(Form::of_name("x.zst").1 < Form::of_name("x.partial").1);
    }
}
