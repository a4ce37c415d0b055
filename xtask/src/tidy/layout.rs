//! **Layout rules**: where files must be and how they must begin. Newcomers find things by file
//! name, and learn the purpose of a file from its first lines.

use super::finding::Findings;
use super::sources::Sources;

/// Maximum path depth below `src/`, including the file itself.
const LEVELS_MAX: usize = 3;
/// Minimum length of a file's header, in characters.
const HEADER_LETTERS_MIN: usize = 25;

/// Each file below `src/` starts with a header of at least one full sentence.
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

/// `foo.rs` next to `foo/`, never `foo/mod.rs`.
pub(super) fn no_mod_rs(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.path.ends_with("/mod.rs")) {
        // Cargo treats every file directly in `examples/` as an example, so modules that an example
        // uses must be in a subdirectory.
        if source.path.contains("/examples/") {
            continue;
        }
        let folder = source.path.trim_end_matches("/mod.rs");
        findings.add(&source.path, 1, format!("call it {folder}.rs"));
    }
}

/// Allows `src/pool.rs`, `src/pool/write.rs` and `src/pool/write/queue.rs`, but nothing deeper,
/// except such a file's tests.
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
