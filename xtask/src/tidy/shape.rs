//! **Text rules**: the length of files, whitespace, and words that must not be merged. They apply
//! to all text files, not just to Rust code.

use super::code;
use super::finding::Findings;
use super::sources::{Source, Sources};

const FILE_LINES_MAX: usize = 1000;
/// Files longer than this are worth a look; `tidy --verbose` lists them.
const FILE_LINES_AIM: usize = 400;
const FUNCTION_LINES_MAX: usize = 100;

/// Functions that may exceed the limit, as (path, name, lines). Don't add any functions to this
/// list. The functions already on it may become shorter, but never longer.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Pages that a program writes from measurements, and that are long because of their tables.
const GENERATED: [&str; 1] = ["docs/benchmarks.md"];

/// Files have at most 1,000 lines, unless they are generated.
pub(super) fn file_length(sources: &Sources, findings: &mut Findings) {
    let is_written = |source: &&Source| !GENERATED.contains(&&*source.path);
    for source in sources.files.iter().filter(|source| is_ours(source)).filter(is_written) {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            let text = format!("{lines} lines, at most {FILE_LINES_MAX}: split it by noun");
            findings.add(&source.path, FILE_LINES_MAX + 1, text);
        }
    }
}

/// Long files, for `--verbose`.
pub(super) fn notes(sources: &Sources) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    sources
        .rust()
        .filter(|source| lines(source) > FILE_LINES_AIM)
        .map(|source| format!("{}: {} lines, aim at {FILE_LINES_AIM}", source.path, lines(source)))
        .collect()
}

/// Functions have at most 100 lines, tests included.
pub(super) fn function_length(sources: &Sources, findings: &mut Findings) {
    ratcheted(sources, LONG_FUNCTIONS, findings);
}

/// Checks the length of functions against a given list of exceptions. If an entry is no longer
/// needed, that's a finding too.
pub(super) fn ratcheted(
    sources: &Sources,
    ratchet: &[(&str, &str, usize)],
    findings: &mut Findings,
) {
    let mut needed = vec![false; ratchet.len()];
    for source in sources.rust() {
        for function in code::functions(&source.code) {
            let name = function.name;
            let entry = ratchet.iter().position(|entry| (entry.0, entry.1) == (&source.path, name));
            let most = entry.map_or(FUNCTION_LINES_MAX, |index| ratchet[index].2);
            if let Some(index) = entry {
                needed[index] |= function.lines > FUNCTION_LINES_MAX;
            }
            if function.lines > most {
                let text = format!("{name} has {} lines, at most {most}", function.lines);
                findings.add(&source.path, source.line_of(function.at), text);
            }
        }
    }
    for (entry, _) in ratchet.iter().zip(needed).filter(|(_, needed)| !needed) {
        findings.add(entry.0, 1, format!("{} is short now: take it off the ratchet", entry.1));
    }
}

/// No line may end with whitespace or contain tabs, and a file must end with exactly one newline.
pub(super) fn white_space(sources: &Sources, findings: &mut Findings) {
    for source in sources.files.iter().filter(|source| is_ours(source)) {
        for (number, line) in source.lines() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.add(&source.path, number, "white space at the end of the line");
            } else if line.contains('\t') {
                findings.add(&source.path, number, "tab");
            }
        }
        if !source.text.is_empty() && !source.text.ends_with('\n') {
            findings.add(&source.path, source.text.lines().count(), "no line feed at the end");
        }
    }
}

/// No placeholder macros and no open notes.
pub(super) fn leftovers(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust() {
        for (number, line) in source.code_lines() {
            for word in ["todo!", "unimplemented!", "dbg!"] {
                if code::words(line, word).next().is_some() {
                    findings.add(&source.path, number, format!("{word} is not for merging"));
                }
            }
        }
    }
    // Split, because this file is checked as well. Documents may mention the words.
    let notes = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    for source in sources.files.iter().filter(|source| is_ours(source) && !is_prose(source)) {
        for (number, line) in source.lines() {
            for word in notes {
                if code::words(line, word).next().is_some() {
                    findings.add(&source.path, number, format!("{word}: answer it or file it"));
                }
            }
        }
    }
}

/// No machine-specific absolute paths outside tests.
pub(super) fn machine_path(sources: &Sources, findings: &mut Findings) {
    let folders =
        [concat!("/wo", "rk/"), concat!("/tm", "p/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];
    for source in sources.files.iter().filter(|source| is_ours(source)) {
        for (number, line) in source.lines().filter(|(number, _)| !source.is_test_line(*number)) {
            for folder in folders {
                if begins_path(line, folder) {
                    findings.add(&source.path, number, format!("names {folder} of one machine"));
                }
            }
        }
    }
}

/// Lint exceptions must use `expect`, not `allow`.
pub(super) fn expect_not_allow(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust() {
        for (number, line) in source.code_lines() {
            let attribute = ["#[allow(", "#![allow("].iter().any(|word| line.contains(word));
            let conditional =
                line.contains("cfg_attr") && code::words(line, "allow(").next().is_some();
            if attribute || conditional {
                findings.add(
                    &source.path,
                    number,
                    "allow: write #[expect(lint, reason = \"...\")]",
                );
            }
        }
    }
}

/// Does the line contain an absolute path that starts with `folder`?
fn begins_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || "._-/})>$~".contains(c))
    })
}

/// Excludes generated files, licences and patches (in patches, trailing whitespace is
/// significant).
fn is_ours(source: &Source) -> bool {
    let path = &source.path;
    let is_generated = path == "Cargo.lock" || path.starts_with("docs/benchmarks/");
    !is_generated && !path.starts_with("LICENSE") && !path.ends_with(".patch")
}

fn is_prose(source: &Source) -> bool {
    source.path.ends_with(".md")
}
