//! `~` and its kin, `regexp_count`, `regexp_instr`, `regexp_substr`, `substring(text from pattern)`.
//!
//! For example, `substring('foobar' from 'o(.)b')` is `o`: the first group, if there is one.

use std::ops::Range;

use arrow_array::ArrayRef;

use super::flags::Flags;
use super::matcher::{Captures, Regex};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::collation::Collation;
use crate::functions::rows::{Output, Reader, binary, each_row};

/// The kernels of this module.
pub(in crate::functions) const SEARCHING: &[(&str, Kernel)] = &[
    ("textregexeq", |call| test(call, false, true)),
    ("textregexne", |call| test(call, false, false)),
    ("texticregexeq", |call| test(call, true, true)),
    ("texticregexne", |call| test(call, true, false)),
    ("nameregexeq", |call| test(call, false, true)),
    ("nameregexne", |call| test(call, false, false)),
    ("nameicregexeq", |call| test(call, true, true)),
    ("nameicregexne", |call| test(call, true, false)),
    ("textregexsubstr", |call| {
        let mut compiler = Compiler::new(call)?;
        binary(call, |text: &str, pattern: &str| {
            let regex = compiler.get(pattern, Flags::NONE)?;
            let group = usize::from(regex.groups() > 0);
            let captures = regex.captures(text, 0)?;
            Ok(captures.and_then(|found| part(text, &found, group)))
        })
    }),
    ("regexp_like_no_flags", |call| test(call, false, true)),
    ("regexp_like", |call| {
        let form = Form { name: "regexp_like()", options: Some(2), check: |_| Ok(()) };
        search(call, &form, |text, regex, _| regex.is_match(text).map(Some))
    }),
    ("regexp_count_no_start", |call| count(call, None)),
    ("regexp_count_no_flags", |call| count(call, None)),
    ("regexp_count", |call| count(call, Some(3))),
    ("regexp_instr_no_start", |call| position(call, None)),
    ("regexp_instr_no_n", |call| position(call, None)),
    ("regexp_instr_no_endoption", |call| position(call, None)),
    ("regexp_instr_no_flags", |call| position(call, None)),
    ("regexp_instr_no_subexpr", |call| position(call, Some(5))),
    ("regexp_instr", |call| position(call, Some(5))),
    ("regexp_substr_no_start", |call| found_text(call, None)),
    ("regexp_substr_no_n", |call| found_text(call, None)),
    ("regexp_substr_no_flags", |call| found_text(call, None)),
    ("regexp_substr_no_subexpr", |call| found_text(call, Some(4))),
    ("regexp_substr", |call| found_text(call, Some(4))),
];

/// Compiles patterns, and keeps the last one: it is usually the same in all rows.
pub(in crate::functions) struct Compiler {
    collation: Collation,
    last: Option<(String, Flags, Regex)>,
}

impl Compiler {
    pub(in crate::functions) fn new(call: &Call<'_>) -> Result<Self, SqlError> {
        Ok(Self { collation: call.collation("regular expression")?, last: None })
    }

    pub(in crate::functions) fn get(
        &mut self,
        pattern: &str,
        flags: Flags,
    ) -> Result<&Regex, SqlError> {
        let is_last =
            |(last, options, _): &(String, Flags, Regex)| last == pattern && *options == flags;
        let last = match self.last.take().filter(is_last) {
            Some(last) => last,
            None => (pattern.to_owned(), flags, Regex::new(pattern, flags, self.collation)?),
        };
        Ok(&self.last.insert(last).2)
    }
}

fn test(call: &Call<'_>, ignore_case: bool, wanted: bool) -> Result<ArrayRef, SqlError> {
    let mut compiler = Compiler::new(call)?;
    let flags = Flags { ignore_case, ..Flags::NONE };
    binary(call, |text: &str, pattern: &str| {
        compiler.get(pattern, flags)?.is_match(text).map(|found| found == wanted)
    })
}

/// What a group captured, if it took part in the match.
pub(super) fn part(text: &str, captures: &Captures, group: usize) -> Option<String> {
    let range = captures.get(group)?.clone()?;
    text.get(range).map(str::to_owned)
}

/// Fails if `g` is among the options of a function that can't use it.
pub(in crate::functions) fn refuse_global(flags: Flags, function: &str) -> Result<(), SqlError> {
    if !flags.global {
        return Ok(());
    }
    let message = format!("{function} does not support the \"global\" option");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

fn invalid_parameter(name: &str, value: i32) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": {value}");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Checks that a parameter is at least 1, and subtracts 1.
pub(super) fn from_one(name: &str, value: i32) -> Result<usize, SqlError> {
    usize::try_from(value)
        .ok()
        .and_then(|value| value.checked_sub(1))
        .ok_or_else(|| invalid_parameter(name, value))
}

/// A function with optional arguments.
struct Form {
    name: &'static str,
    /// Which argument are the options.
    options: Option<usize>,
    /// Checks the arguments that are integers, in order. The server does that first.
    check: fn(&[i32]) -> Result<(), SqlError>,
}

/// Calls a strict function of a text, a pattern, integers, and options. `compute` gets the integers.
fn search<R: Output>(
    call: &Call<'_>,
    form: &Form,
    compute: impl Fn(&str, &Regex, &[i32]) -> Result<Option<R>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut compiler = Compiler::new(call)?;
    let (text, pattern) = (Reader::<&str>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    let flags = form.options.map(|number| Reader::<&str>::new(call, number)).transpose()?;
    let numbers = (2..call.arguments.len()).filter(|number| Some(*number) != form.options);
    let numbers = numbers
        .map(|number| Reader::<i32>::new(call, number))
        .collect::<Result<Vec<_>, SqlError>>()?;
    let is_null = |row| call.arguments.iter().any(|argument| argument.is_null(row));
    each_row(call.rows, |row| {
        let found = text.get(row).zip(pattern.get(row)).filter(|_| !is_null(row));
        let Some((text, pattern)) = found else { return Ok(None) };
        let numbers: Vec<i32> = numbers.iter().filter_map(|number| number.get(row)).collect();
        (form.check)(&numbers)?;
        let flags = match flags.as_ref().and_then(|flags| flags.get(row)) {
            Some(options) => Flags::parse(options)?,
            None => Flags::NONE,
        };
        refuse_global(flags, form.name)?;
        compute(text, compiler.get(pattern, flags)?, &numbers)
    })
}

/// The byte at which a search begins that skips `characters`; `None` if the text is shorter.
pub(super) fn start_of(text: &str, characters: usize) -> Option<usize> {
    let ends = std::iter::once(text.len());
    text.char_indices().map(|(at, _)| at).chain(ends).nth(characters)
}

/// Where the search for the next match begins: after an empty match, one character later. `None` at
/// the end of the text.
pub(super) fn after(text: &str, found: &Range<usize>) -> Option<usize> {
    if !found.is_empty() {
        return Some(found.end);
    }
    let next = text.get(found.end..)?.chars().next()?;
    Some(found.end + next.len_utf8())
}

/// All matches from `start`.
pub(super) fn all_matches(
    regex: &Regex,
    text: &str,
    start: Option<usize>,
) -> Result<Vec<Range<usize>>, SqlError> {
    let (mut matches, mut from) = (Vec::new(), start);
    while let Some(at) = from {
        let Some(found) = regex.find(text, at)? else { break };
        from = after(text, &found);
        matches.push(found);
    }
    Ok(matches)
}

fn count(call: &Call<'_>, options: Option<usize>) -> Result<ArrayRef, SqlError> {
    let check = |numbers: &[i32]| from_one("start", number(numbers, 0, 1)).map(drop);
    let form = Form { name: "regexp_count()", options, check };
    search(call, &form, |text, regex, numbers| {
        let start = from_one("start", number(numbers, 0, 1))?;
        Ok(Some(all_matches(regex, text, start_of(text, start))?.len() as i32))
    })
}

/// An optional argument.
fn number(numbers: &[i32], at: usize, default: i32) -> i32 {
    numbers.get(at).copied().unwrap_or(default)
}

/// What match `number`, counted from 0, captured as `group`. Without groups in the pattern, the first
/// one is the whole match.
fn nth(
    regex: &Regex,
    text: &str,
    start: usize,
    number: usize,
    group: usize,
) -> Result<Option<Range<usize>>, SqlError> {
    let groups = regex.groups() as usize;
    if group > groups.max(1) {
        return Ok(None);
    }
    let mut from = start_of(text, start);
    for _ in 0..number {
        let Some(found) = from.map(|at| regex.find(text, at)).transpose()?.flatten() else {
            return Ok(None);
        };
        from = after(text, &found);
    }
    let Some(at) = from else { return Ok(None) };
    Ok(match regex.captures(text, at)? {
        Some(captures) => captures.get(group.min(groups)).cloned().flatten(),
        None => None,
    })
}

/// A group's number.
fn group(number: i32) -> Result<usize, SqlError> {
    usize::try_from(number).map_err(|_| invalid_parameter("subexpr", number))
}

/// Arguments: start, n, end option, group.
fn position(call: &Call<'_>, options: Option<usize>) -> Result<ArrayRef, SqlError> {
    let check = |numbers: &[i32]| {
        from_one("start", number(numbers, 0, 1))?;
        from_one("n", number(numbers, 1, 1))?;
        match number(numbers, 2, 0) {
            0 | 1 => group(number(numbers, 3, 0)).map(drop),
            end => Err(invalid_parameter("endoption", end)),
        }
    };
    let form = Form { name: "regexp_instr()", options, check };
    search(call, &form, |text, regex, numbers| {
        let start = from_one("start", number(numbers, 0, 1))?;
        let n = from_one("n", number(numbers, 1, 1))?;
        let found = nth(regex, text, start, n, group(number(numbers, 3, 0))?)?;
        Ok(Some(found.map_or(0, |range| {
            let at = if number(numbers, 2, 0) == 1 { range.end } else { range.start };
            text.get(..at).map_or(0, |before| before.chars().count() as i32 + 1)
        })))
    })
}

/// Arguments: start, n, group.
fn found_text(call: &Call<'_>, options: Option<usize>) -> Result<ArrayRef, SqlError> {
    let check = |numbers: &[i32]| {
        from_one("start", number(numbers, 0, 1))?;
        from_one("n", number(numbers, 1, 1))?;
        group(number(numbers, 2, 0)).map(drop)
    };
    let form = Form { name: "regexp_substr()", options, check };
    search(call, &form, |text, regex, numbers| {
        let start = from_one("start", number(numbers, 0, 1))?;
        let n = from_one("n", number(numbers, 1, 1))?;
        let found = nth(regex, text, start, n, group(number(numbers, 2, 0))?)?;
        Ok(found.and_then(|range| text.get(range)).map(str::to_owned))
    })
}

/// The parts of a text between matches. An empty match at either end of the text, or just after
/// another match, divides nothing.
pub(in crate::functions) fn split<'a>(
    regex: &Regex,
    text: &'a str,
) -> Result<Vec<&'a str>, SqlError> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for found in all_matches(regex, text, Some(0))? {
        if found.start < text.len() && found.end > start {
            parts.push(text.get(start..found.start).unwrap_or_default());
            start = found.end;
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    Ok(parts)
}

/// The groups of all matches, or of the first one only.
pub(in crate::functions) fn matches(
    regex: &Regex,
    text: &str,
    global: bool,
) -> Result<Vec<Captures>, SqlError> {
    let (mut found, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        let Some(captures) = regex.captures(text, at)? else { break };
        let whole = captures.first().cloned().flatten();
        from = whole.filter(|_| global).and_then(|whole| after(text, &whole));
        found.push(captures);
    }
    Ok(found)
}
