//! **Banned words**: finds the phrases and names listed in the tables of `docs/glossary.md`.
//!
//! The glossary contains the only list of banned words, so this check and human readers can't
//! disagree. A phrase is a sequence of words. We search for it in comments, documents, string
//! literals and the parts of identifiers. A phrase in a comment may continue on the next line. A
//! name is banned only if it is a whole identifier in code.
//!
//! ```text
//! | `abc`, `be abc` | xyz |        `abc` also hits fn is_abc() and AbcWaits
//! ```
//! An exception consists of a file and part of a line. If an exception no longer matches anything,
//! that's a finding too.

use std::collections::{BTreeMap, HashMap};

use super::code;
use super::finding::Findings;
use super::sources::{Source, Sources};

/// The document that contains the tables of phrases, names and exceptions.
const GLOSSARY: &str = "docs/glossary.md";
const PHRASES: &str = "## Phrases we do not use";
const TO_AVOID: &str = "## Phrases to avoid";
const NAMES: &str = "## Names we do not use";
const EXCEPTIONS: &str = "## Exceptions";

/// One use of a banned phrase or name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit<'a> {
    path: &'a str,
    /// 1-based.
    line: usize,
    /// The phrase as written in the glossary.
    phrase: &'a str,
    /// The advice in the second column.
    instead: &'a str,
}

/// No banned phrases or names, except where the glossary allows them.
pub(super) fn banned(sources: &Sources, findings: &mut Findings) {
    let Some(glossary) = sources.get(GLOSSARY) else {
        findings.add(GLOSSARY, 1, "is missing");
        return;
    };
    let (left, unused) = excused(sources, glossary, &[PHRASES]);
    for hit in left {
        findings.add(hit.path, hit.line, format!("`{}`: write {}", hit.phrase, hit.instead));
    }
    for (line, path) in unused {
        findings.add(GLOSSARY, line, format!("{path} needs this exception no longer"));
    }
}

/// Prints all hits below `folder`, including the phrases we should avoid, followed by the number of
/// hits in each directory.
pub(super) fn list(sources: &Sources, folder: &str) {
    let Some(glossary) = sources.get(GLOSSARY) else { return };
    let (hits, _) = excused(sources, glossary, &[PHRASES, TO_AVOID]);
    let to_avoid: Vec<&str> = banned_in(glossary, TO_AVOID).iter().map(|row| row.0).collect();
    // Per directory: banned phrases, and phrases to avoid.
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut total = [0; 2];
    for hit in hits.iter().filter(|hit| hit.path.starts_with(folder)) {
        let kind = usize::from(to_avoid.contains(&hit.phrase));
        let mark = ["", "avoid "][kind];
        println!("{}:{}: {mark}`{}`: write {}", hit.path, hit.line, hit.phrase, hit.instead);
        counts.entry(area(hit.path)).or_default()[kind] += 1;
        total[kind] += 1;
    }
    println!("banned  avoid  folder");
    for (area, [banned, avoid]) in &counts {
        println!("{banned:6} {avoid:6}  {area}");
    }
    println!("{:6} {:6}  in all", total[0], total[1]);
}

/// The directory to which a hit is attributed: `crates/x/src/pool`, `crates/x/tests`, `docs`.
fn area(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = match parts[..] {
        ["crates", _, "src", module, ..] => {
            return format!("{}/{}", parts[..3].join("/"), module.trim_end_matches(".rs"));
        }
        ["crates", ..] => 3,
        _ => 1,
    };
    parts[..depth.min(parts.len())].join("/")
}

/// Returns the hits for which there is no exception. Also returns the line and the file of each
/// exception that is no longer needed.
fn excused<'a>(
    sources: &'a Sources,
    glossary: &'a Source,
    tables: &[&str],
) -> (Vec<Hit<'a>>, Vec<(usize, &'a str)>) {
    // (line in the glossary, file, part of the line, whether it is used)
    let mut exceptions: Vec<(usize, &str, &str, bool)> = Vec::new();
    for (line, cells) in rows(glossary, EXCEPTIONS) {
        if let [path, piece, _why] = cells[..] {
            exceptions.push((line, path.trim_matches('`'), piece.trim_matches('`'), false));
        }
    }
    let by_path: HashMap<&str, &Source> =
        sources.files.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut left = hits(sources, glossary, tables);
    left.retain(|hit| {
        let text = by_path[hit.path].text.lines().nth(hit.line - 1).unwrap_or_default();
        let mut excuses = exceptions
            .iter_mut()
            .filter(|(_, path, piece, _)| *path == hit.path && text.contains(*piece));
        excuses.next().map(|exception| exception.3 = true).is_none()
    });
    exceptions.retain(|(.., used)| !used);
    (left, exceptions.into_iter().map(|(line, path, ..)| (line, path)).collect())
}

/// A phrase's words, the phrase as written, and the advice.
type Phrase<'a> = (Vec<String>, &'a str, &'a str);

/// Finds all uses of the phrases in these tables, or of banned names.
fn hits<'a>(sources: &'a Sources, glossary: &'a Source, tables: &[&str]) -> Vec<Hit<'a>> {
    let phrases = tables.iter().flat_map(|table| banned_in(glossary, table));
    let names = banned_in(glossary, NAMES);
    let mut by_first: HashMap<String, Vec<Phrase<'_>>> = HashMap::new();
    for (phrase, instead) in phrases {
        let words: Vec<String> = phrase.split_whitespace().map(str::to_lowercase).collect();
        if let Some(first) = words.first().cloned() {
            by_first.entry(first).or_default().push((words, phrase, instead));
        }
    }
    let mut hits = Vec::new();
    for source in sources.files.iter().filter(|source| is_checked(source)) {
        let path = source.path.as_str();
        let words = words(&source.text);
        for (index, word) in words.iter().enumerate() {
            for (wanted, phrase, instead) in by_first.get(&word.text).into_iter().flatten() {
                if continues(&words[index..], wanted) {
                    hits.push(Hit { path, line: word.line, phrase, instead });
                }
            }
        }
        for (name, instead) in &names {
            for at in code::words(&source.code, name) {
                hits.push(Hit { path, line: source.line_of(at), phrase: name, instead });
            }
        }
    }
    hits.sort();
    hits
}

/// Do these words start with the wanted words, separated only by whitespace?
fn continues(words: &[Word], wanted: &[String]) -> bool {
    words.len() >= wanted.len()
        && words.iter().zip(wanted).all(|(word, wanted)| word.text == *wanted)
        && words[1..wanted.len()].iter().all(|word| word.joins_the_last)
}

/// One word of a text, in lower case. If an identifier consists of several parts, each part is a
/// word.
struct Word {
    text: String,
    /// 1-based.
    line: usize,
    /// True if there is only whitespace, an underscore or a comment marker between this word and
    /// the previous one.
    joins_the_last: bool,
}

/// Splits a text into words. A word ends at any character that isn't a letter. In an identifier
/// such as AbcWaits, a capital letter after a lower-case letter starts a new word.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut line = 1;
    let mut current = String::new();
    let mut joins = true;
    let mut before = ' ';
    let mut finish = |current: &mut String, line: usize, joins: &mut bool| {
        if !current.is_empty() {
            words.push(Word { text: std::mem::take(current), line, joins_the_last: *joins });
            *joins = true;
        }
    };
    for c in text.chars() {
        if c.is_alphabetic() {
            if c.is_uppercase() && before.is_lowercase() {
                finish(&mut current, line, &mut joins);
            }
            current.extend(c.to_lowercase());
        } else {
            finish(&mut current, line, &mut joins);
            // A slash or an exclamation mark belongs to a comment marker only at the start of a
            // line or directly after a space or another slash.
            joins &= c.is_whitespace()
                || c == '_'
                || (matches!(c, '/' | '!') && " \n/".contains(before));
            line += usize::from(c == '\n');
        }
        before = c;
    }
    finish(&mut current, line, &mut joins);
    words
}

/// One table's banned phrases or names, each with the advice next to it.
fn banned_in<'a>(glossary: &'a Source, table: &str) -> Vec<(&'a str, &'a str)> {
    let mut banned = Vec::new();
    for (_, cells) in rows(glossary, table) {
        if let [phrases, instead] = cells[..] {
            banned.extend(phrases.split('`').skip(1).step_by(2).map(|phrase| (phrase, instead)));
        }
    }
    banned
}

/// Returns the cells and the line number of each row that starts with a word in backticks.
fn rows<'a>(glossary: &'a Source, table: &str) -> Vec<(usize, Vec<&'a str>)> {
    let mut rows = Vec::new();
    let mut inside = false;
    for (number, line) in glossary.lines() {
        inside = if line.starts_with('#') { line == table } else { inside };
        if inside && line.starts_with("| `") {
            rows.push((number, line.trim_matches(['|', ' ']).split(" | ").collect()));
        }
    }
    rows
}

/// Skips the glossary, because it defines these words, and licences, because we didn't write them.
fn is_checked(source: &Source) -> bool {
    let path = &source.path;
    let prose = path.ends_with(".rs") || path.ends_with(".md");
    prose && path != GLOSSARY && !path.starts_with("LICENSE")
}
