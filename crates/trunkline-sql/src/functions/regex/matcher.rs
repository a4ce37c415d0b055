//! Compiled regular expressions, and how they match.
//!
//! ```text
//!   leftmost start ── any engine: it is the same whatever length is preferred
//!   end            ── all ends of matches from that start; the longest or the shortest
//!   groups         ── the same, for each part of the pattern within its parent's match
//! ```

use std::cell::RefCell;
use std::ops::Range;

use regex_automata::hybrid::dfa::{Cache, DFA, OverlappingState};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind, meta};
use regex_syntax::hir::Hir;

use super::flags::{Flags, TOO_COMPLEX, invalid};
use super::tree::{Kind, Part, Preference, parse};
use crate::error::SqlError;
use crate::functions::collation::{Collation, Letters};

/// The most memory that a compiled pattern may use, in bytes.
const SIZE_MAX: usize = 32 << 20;

/// A compiled regular expression.
#[derive(Debug)]
pub(in crate::functions) struct Regex {
    /// Finds where a match starts.
    search: meta::Regex,
    root: Matcher,
    groups: u32,
    needs_ascii_text: bool,
}

/// Where a group matched; the first is the whole match.
pub(in crate::functions) type Captures = Vec<Option<Range<usize>>>;

impl Regex {
    /// Compiles a pattern.
    pub(in crate::functions) fn new(
        pattern: &str,
        flags: Flags,
        collation: Collation,
    ) -> Result<Self, SqlError> {
        let parsed = parse(pattern, flags)?;
        let is_c = collation.letters() == Letters::Ascii;
        let ascii_is_unknown = collation.letters() == Letters::Unknown && flags.ignore_case;
        if !is_c && (parsed.needs_other_cases || ascii_is_unknown) {
            return Err(depends_on_locale());
        }
        let config = meta::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let search = meta::Builder::new().configure(config).build_from_hir(&parsed.root.language);
        let search = search.map_err(|_| invalid(TOO_COMPLEX))?;
        let needs_ascii_text = parsed.needs_ascii_text && !is_c;
        let (root, groups) = (Matcher::from(parsed.root), parsed.groups);
        Ok(Self { search, root, groups, needs_ascii_text })
    }

    /// The number of groups.
    pub(in crate::functions) fn groups(&self) -> u32 {
        self.groups
    }

    fn check(&self, text: &str) -> Result<(), SqlError> {
        if self.needs_ascii_text && !text.is_ascii() {
            return Err(depends_on_locale());
        }
        Ok(())
    }

    /// Whether there is a match anywhere.
    pub(in crate::functions) fn is_match(&self, text: &str) -> Result<bool, SqlError> {
        self.check(text)?;
        Ok(self.search.is_match(text))
    }

    /// The first match at or after byte `from`.
    pub(in crate::functions) fn find(
        &self,
        text: &str,
        from: usize,
    ) -> Result<Option<Range<usize>>, SqlError> {
        self.check(text)?;
        let input = Input::new(text).range(from.min(text.len())..);
        let Some(found) = self.search.search(&input).filter(|_| from <= text.len()) else {
            return Ok(None);
        };
        let ends = self.root.ends(text, found.start()..text.len())?;
        let end = if self.root.shortest { ends.first() } else { ends.last() };
        let end = end.ok_or_else(|| SqlError::internal("a match that has no end"))?;
        Ok(Some(found.start()..*end))
    }

    /// As [`Regex::find`], with all groups.
    pub(in crate::functions) fn captures(
        &self,
        text: &str,
        from: usize,
    ) -> Result<Option<Captures>, SqlError> {
        let Some(found) = self.find(text, from)? else { return Ok(None) };
        let mut captures = vec![None; self.groups as usize + 1];
        if self.groups > 0 && !self.root.dissect(text, found.clone(), &mut captures)? {
            return Err(SqlError::internal("a match whose parts don't match"));
        }
        if let Some(whole) = captures.first_mut() {
            *whole = Some(found);
        }
        Ok(Some(captures))
    }
}

fn depends_on_locale() -> SqlError {
    let message = "classes and other cases of characters beyond ASCII in regular expressions are \
                   not supported by trunkline in this collation";
    SqlError::unsupported(message).with_hint("Add COLLATE \"C\" if only ASCII characters matter.")
}

/// Matches one part of a pattern.
#[derive(Debug)]
struct Matcher {
    language: Hir,
    group: u32,
    shortest: bool,
    node: Node,
    /// Compiled when it is first needed.
    engine: RefCell<Option<Engine>>,
}

#[derive(Debug)]
enum Node {
    Leaf,
    Sequence(Box<Matcher>, Box<Matcher>),
    Choice(Vec<Matcher>),
    Loop(Box<Matcher>, usize, usize),
    Same(Box<Matcher>),
}

#[derive(Debug)]
struct Engine {
    dfa: DFA,
    cache: Cache,
}

impl Engine {
    fn new(language: &Hir) -> Result<Self, SqlError> {
        let config = thompson::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(language);
        let nfa = nfa.map_err(|_| invalid(TOO_COMPLEX))?;
        let config = DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa);
        let dfa = dfa.map_err(|_| invalid(TOO_COMPLEX))?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }
}

impl From<Part> for Matcher {
    fn from(part: Part) -> Self {
        let boxed = |part: Part| Box::new(Self::from(part));
        let node = match part.kind {
            Kind::Plain => Node::Leaf,
            Kind::Concatenation(parts) => {
                let [first, second] = *parts;
                Node::Sequence(boxed(first), boxed(second))
            }
            Kind::Alternatives(parts) => Node::Choice(parts.into_iter().map(Self::from).collect()),
            Kind::Iteration(part, min, max) => {
                Node::Loop(boxed(*part), min as usize, max.map_or(usize::MAX, |max| max as usize))
            }
            Kind::Same(part) => Node::Same(boxed(*part)),
        };
        let shortest = part.preference == Preference::Shortest;
        let engine = RefCell::new(None);
        Self { language: part.language, group: part.group, shortest, node, engine }
    }
}

impl Matcher {
    /// All ends of matches of this part that begin at the start of `range`, ascending.
    fn ends(&self, text: &str, range: Range<usize>) -> Result<Vec<usize>, SqlError> {
        let mut engine = self.engine.borrow_mut();
        let engine = match &mut *engine {
            Some(engine) => engine,
            none => none.insert(Engine::new(&self.language)?),
        };
        let input = Input::new(text).range(range).anchored(Anchored::Yes);
        let (mut state, mut ends) = (OverlappingState::start(), Vec::new());
        loop {
            let step = engine.dfa.try_search_overlapping_fwd(&mut engine.cache, &input, &mut state);
            step.map_err(|error| SqlError::internal(error.to_string()))?;
            let Some(found) = state.get_match() else { return Ok(ends) };
            ends.push(found.offset());
        }
    }

    fn matches(&self, text: &str, range: Range<usize>) -> Result<bool, SqlError> {
        let end = range.end;
        Ok(self.ends(text, range)?.last() == Some(&end))
    }

    /// Divides a match of this part among its parts, and notes what its groups captured. Returns
    /// false if that is impossible.
    fn dissect(
        &self,
        text: &str,
        range: Range<usize>,
        captures: &mut Captures,
    ) -> Result<bool, SqlError> {
        let matched = match &self.node {
            Node::Leaf => true,
            Node::Same(part) => part.dissect(text, range.clone(), captures)?,
            Node::Sequence(first, second) => {
                sequence(first, second, text, range.clone(), captures)?
            }
            Node::Choice(parts) => {
                let mut matched = false;
                for part in parts {
                    matched = part.matches(text, range.clone())?
                        && part.dissect(text, range.clone(), captures)?;
                    if matched {
                        break;
                    }
                }
                matched
            }
            Node::Loop(part, min, max) => {
                Loop { part, min: *min, max: *max, text }.dissect(range.clone(), captures)?
            }
        };
        if matched && self.group > 0 {
            let group = captures.get_mut(self.group as usize);
            *group.ok_or_else(|| SqlError::internal("a group without a number"))? = Some(range);
        }
        Ok(matched)
    }

    /// Forgets what the groups of this part captured.
    fn forget(&self, captures: &mut Captures) {
        if let Some(group) = captures.get_mut(self.group as usize).filter(|_| self.group > 0) {
            *group = None;
        }
        match &self.node {
            Node::Leaf => {}
            Node::Same(part) | Node::Loop(part, ..) => part.forget(captures),
            Node::Sequence(first, second) => {
                first.forget(captures);
                second.forget(captures);
            }
            Node::Choice(parts) => parts.iter().for_each(|part| part.forget(captures)),
        }
    }
}

/// Divides a match between two parts. The first one has its preference.
fn sequence(
    first: &Matcher,
    second: &Matcher,
    text: &str,
    range: Range<usize>,
    captures: &mut Captures,
) -> Result<bool, SqlError> {
    let mut ends = first.ends(text, range.clone())?;
    if !first.shortest {
        ends.reverse();
    }
    for middle in ends {
        if second.matches(text, middle..range.end)? {
            if first.dissect(text, range.start..middle, captures)?
                && second.dissect(text, middle..range.end, captures)?
            {
                return Ok(true);
            }
            first.forget(captures);
            second.forget(captures);
        }
    }
    Ok(false)
}

/// A part that is repeated.
struct Loop<'a> {
    part: &'a Matcher,
    min: usize,
    max: usize,
    text: &'a str,
}

impl Loop<'_> {
    /// Divides a match among repetitions. An empty repetition is allowed only if there would be too
    /// few otherwise. An empty match is one empty repetition rather than none, if the part allows
    /// that and prefers long matches.
    fn dissect(&self, range: Range<usize>, captures: &mut Captures) -> Result<bool, SqlError> {
        let min = self.min.max(1);
        let allows_none = self.min == 0 && range.is_empty();
        if allows_none && self.part.shortest {
            return Ok(true);
        }
        let Some(places) = self.places(range, min)? else { return Ok(allows_none) };
        // Only the last repetition's groups count.
        let [.., start, end] = places.as_slice() else { return Ok(false) };
        self.part.forget(captures);
        self.part.dissect(self.text, *start..*end, captures)
    }

    /// Where the repetitions begin, and where the last one ends.
    fn places(&self, range: Range<usize>, min: usize) -> Result<Option<Vec<usize>>, SqlError> {
        let mut places = vec![range.start];
        // For each repetition, the ends that have not been tried; the next one is the last.
        let mut untried: Vec<Vec<usize>> = vec![self.ends(range.start..range.end)?];
        loop {
            let Some(ends) = untried.last_mut() else { return Ok(None) };
            let Some(end) = ends.pop() else {
                untried.pop();
                places.pop();
                continue;
            };
            let (start, count) = (places.last().copied().unwrap_or_default(), untried.len());
            let left = self.text.get(end..range.end).map_or(0, |rest| rest.chars().count());
            if end == range.end && count >= min && (end > start || count <= min) {
                places.push(end);
                return Ok(Some(places));
            }
            let is_needed = count < min && min - count >= left;
            if count >= self.max || end == range.end && !is_needed || end == start && !is_needed {
                continue;
            }
            places.push(end);
            untried.push(self.ends(end..range.end)?);
        }
    }

    /// The ends of one repetition, in the order in which they are not to be tried.
    fn ends(&self, range: Range<usize>) -> Result<Vec<usize>, SqlError> {
        let mut ends = self.part.ends(self.text, range)?;
        if self.part.shortest {
            ends.reverse();
        }
        Ok(ends)
    }
}
