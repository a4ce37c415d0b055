//! Rules about where files are and how they begin.
//! A newcomer finds a thing by the name of its file, and learns its purpose from the first lines.

use super::finding::Findings;
use super::sources::Sources;

/// Folders and file below `src/`.
const LEVELS_MAX: usize = 3;

/// Each file under `src/` begins with two lines or more of `//!`.
pub(super) fn header(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.is_in_src()) {
        let lines = source.text.lines().take_while(|line| line.starts_with("//!")).count();
        if lines < 2 {
            findings.add(&source.path, 1, format!("{lines} lines of `//!` at the top, at least 2"));
        }
    }
}

/// `foo.rs` beside `foo/`, never `foo/mod.rs`.
pub(super) fn no_mod_rs(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.path.ends_with("/mod.rs")) {
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
