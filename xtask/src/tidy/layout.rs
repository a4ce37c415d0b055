//! Rules about where files are and how they begin.
//! A newcomer finds a thing by the name of its file, and learns its purpose from the first lines.

use super::finding::Findings;
use super::sources::Sources;

/// Folders and file below `src/`.
const LEVELS_MAX: usize = 3;
/// Letters of a header that says what the file is for.
const HEADER_LETTERS_MIN: usize = 25;

/// Each file under `src/` begins with a header of at least one full sentence.
pub(super) fn header(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.is_in_src()) {
        let header = source.text.lines().map_while(|line| line.strip_prefix("//!"));
        let letters: usize = header.map(|line| line.trim().chars().count()).sum();
        if letters < HEADER_LETTERS_MIN {
            let text =
                format!("{letters} letters of `//!` at the top, at least {HEADER_LETTERS_MIN}");
            findings.add(&source.path, 1, text);
        }
    }
}

/// `foo.rs` beside `foo/`, never `foo/mod.rs`.
pub(super) fn no_mod_rs(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.path.ends_with("/mod.rs")) {
        // Cargo takes any file directly in `examples/` for an example, so a part of one is in a folder.
        if source.path.contains("/examples/") {
            continue;
        }
        let folder = source.path.trim_end_matches("/mod.rs");
        findings.add(&source.path, 1, format!("call it {folder}.rs"));
    }
}

/// `src/pool.rs`, `src/pool/write.rs` and `src/pool/write/queue.rs`; nothing is deeper but the tests of such a file.
pub(super) fn depth(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| !source.path.ends_with("/tests.rs")) {
        let Some(rest) = source.below_src() else { continue };
        let levels = rest.split('/').count();
        if levels > LEVELS_MAX {
            findings.add(
                &source.path,
                1,
                format!("{levels} levels under src, at most {LEVELS_MAX}"),
            );
        }
    }
}
