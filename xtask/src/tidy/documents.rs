//! **Document rules**: ARCHITECTURE.md may refer only to files that exist, README.md must show the
//! two main commands, decisions must be short, and every cited heading must exist. No file may cite
//! a document outside the repository.

use super::finding::Findings;
use super::sources::{Source, Sources};

const MAP: &str = "ARCHITECTURE.md";
const FIRST_PAGE: &str = "README.md";
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo xtask ci"];
const DECISION_LINES_MAX: usize = 120;
/// Endings of file names. If a word has one of these endings, we treat it as a reference to a file.
const ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".sh", ".patch"];

/// ARCHITECTURE.md mentions every crate, and only files that exist.
pub(super) fn architecture(sources: &Sources, findings: &mut Findings) {
    let Some(map) = sources.get(MAP) else {
        findings.add(MAP, 1, "is missing");
        return;
    };
    for (package, _) in sources.packages() {
        let mentioned = tokens(&map.text).any(|word| word.trim_end_matches('/').ends_with(package));
        if !mentioned {
            findings.add(MAP, 1, format!("does not mention {package}"));
        }
    }
    for (number, line) in map.lines() {
        for word in tokens(line).filter(|word| is_path(word)) {
            if !exists(sources, word.trim_end_matches('/')) {
                findings.add(MAP, number, format!("names {word}, which is not there"));
            }
        }
    }
}

/// README.md shows the commands to try and to check trunkline.
pub(super) fn readme(sources: &Sources, findings: &mut Findings) {
    let Some(page) = sources.get(FIRST_PAGE) else {
        findings.add(FIRST_PAGE, 1, "is missing");
        return;
    };
    for command in COMMANDS {
        if !page.text.contains(command) {
            findings.add(FIRST_PAGE, 1, format!("lacks the command {command}"));
        }
    }
}

/// A decision record is at most two pages long.
pub(super) fn decision_length(sources: &Sources, findings: &mut Findings) {
    for source in sources.files.iter().filter(|source| source.path.starts_with("docs/decisions/")) {
        let lines = source.text.lines().count();
        if lines > DECISION_LINES_MAX {
            let text = format!("{lines} lines, at most {DECISION_LINES_MAX}");
            findings.add(&source.path, DECISION_LINES_MAX + 1, text);
        }
    }
}

/// Every `document#anchor` in code and documents points to an existing heading.
pub(super) fn citations(sources: &Sources, findings: &mut Findings) {
    for source in sources.files.iter().filter(|source| source.is_rust() || is_document(source)) {
        for (number, line) in source.lines() {
            for (at, _) in line.match_indices(".md#") {
                let word = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
                let begin = line[..at].rfind(|c| !word(c)).map_or(0, |before| before + 1);
                let document = line[begin..at + ".md".len()].trim_start_matches("./");
                let heading = line[at + ".md#".len()..].split(|c| !word(c) || c == '.').next();
                let heading = heading.unwrap_or_default();
                let cited = sources.files.iter().filter(|cited| cited.path.ends_with(document));
                if !cited.flat_map(|cited| cited.text.lines()).any(|line| slug(line) == heading) {
                    let text = format!("{document} has no heading {heading}");
                    findings.add(&source.path, number, text);
                }
            }
        }
    }
}

/// The anchor of a heading; empty for any other line.
fn slug(line: &str) -> String {
    let Some(title) = line.strip_prefix('#') else { return String::new() };
    let title = title.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// No file cites notes or designs kept outside the repository.
pub(super) fn outside(sources: &Sources, findings: &mut Findings) {
    // Split, because this file is checked as well.
    let elsewhere = [
        concat!("desi", "gn.md"),
        concat!("desi", "gn §"),
        concat!("fac", "ts/"),
        concat!("(fac", "ts:"),
        concat!("see", "ds/"),
        concat!("hard le", "sson"),
        concat!("our no", "tes"),
    ];
    for source in sources.files.iter().filter(|source| source.is_rust() || is_document(source)) {
        for (number, line) in source.lines() {
            for word in elsewhere.iter().filter(|word| line.contains(*word)) {
                let text = format!("`{word}` is not in the tree: cite docs/postgres-lessons.md");
                findings.add(&source.path, number, text);
            }
        }
    }
}

fn is_document(source: &Source) -> bool {
    source.path.ends_with(".md") || source.path.ends_with(".patch")
}

/// Splits the text into words that could be paths.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"._-/".contains(c))
        .map(|word| word.trim_end_matches('.').trim_start_matches("./"))
}

/// Does the word look like a path? We assume so if it has a known ending, or if it starts with one
/// of our directories.
fn is_path(word: &str) -> bool {
    let file = ENDINGS.iter().any(|end| word.len() > end.len() && word.ends_with(end));
    let below = ["crates/", "docs/", "xtask/", ".ci/"].iter().any(|top| word.starts_with(top));
    file || below
}

/// Accepts full paths, path suffixes (`method/uring.rs`), and directories.
fn exists(sources: &Sources, word: &str) -> bool {
    let end = format!("/{word}");
    let folder = format!("{word}/");
    let inner = format!("/{word}/");
    sources.files.iter().any(|source| {
        let path = &source.path;
        path == word || path.ends_with(&end) || path.starts_with(&folder) || path.contains(&inner)
    })
}
