//! The functions that execute paths.

use arrow_array::ArrayRef;
use trunkline_format::text_input::JsonPath;
use trunkline_format::text_output::{Base, Type, write_text};

use super::failure::{Failure, SINGLETON_REQUIRED};
use super::methods::DEFAULT_COLLATION;
use super::value::Node;
use super::walk::Walk;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::json::container::{Kind, array};
use crate::functions::json::rows::rows;
use crate::functions::printing::{damaged, into_text};
use crate::functions::regex::Compiler;
use crate::functions::rows::{Output, Reader, each_row};
use crate::functions::set_rows::{NoRows, SetFunction, SetRows};
use crate::values::{Carrier, ColumnBuilder};

/// The kernels of this module. The functions for paths with time zones differ only in methods that we
/// don't have.
pub(in crate::functions) const PATH_QUERIES: &[(&str, Kernel)] = &[
    ("jsonb_path_exists", exists),
    ("jsonb_path_exists_tz", exists),
    ("jsonb_path_exists_opr", exists),
    ("jsonb_path_match", is_match),
    ("jsonb_path_match_tz", is_match),
    ("jsonb_path_match_opr", is_match),
    ("jsonb_path_query_array", query_array),
    ("jsonb_path_query_array_tz", query_array),
    ("jsonb_path_query_first", query_first),
    ("jsonb_path_query_first_tz", query_first),
];

/// The functions of this module that give rows.
pub(in crate::functions) const PATH_SETS: &[(&str, SetFunction)] =
    &[("jsonb_path_query", query), ("jsonb_path_query_tz", query)];

/// What a path gives for a value.
struct Executed<'a> {
    values: Vec<Node<'a>>,
    has_result: bool,
    /// The path failed, silently.
    is_failed: bool,
}

/// The arguments of a call: the value, the path, and unless it is an operator, the variables and
/// whether errors are suppressed.
struct Arguments<'a> {
    jsonb: Reader<'a, &'a [u8]>,
    path: Reader<'a, &'a [u8]>,
    others: Option<(Reader<'a, &'a [u8]>, Reader<'a, bool>)>,
    last: Option<(&'a [u8], JsonPath)>,
}

impl<'a> Arguments<'a> {
    fn new(call: &'a Call<'_>) -> Result<Self, SqlError> {
        let others = match call.arguments.len() {
            2 => None,
            _ => Some((Reader::new(call, 2)?, Reader::new(call, 3)?)),
        };
        let (jsonb, path) = (Reader::new(call, 0)?, Reader::new(call, 1)?);
        Ok(Self { jsonb, path, others, last: None })
    }

    /// Executes the path of a row; `None` if an argument is null. With `collects`, all values are
    /// returned.
    fn execute(
        &mut self,
        call: &'a Call<'_>,
        row: usize,
        collects: bool,
    ) -> Result<Option<(Executed<'a>, bool)>, SqlError> {
        let (Some(jsonb), Some(payload)) = (self.jsonb.get(row), self.path.get(row)) else {
            return Ok(None);
        };
        let (variables, silent) = match &self.others {
            None => (None, true),
            Some((variables, silent)) => match (variables.get(row), silent.get(row)) {
                (Some(variables), Some(silent)) => (Some(Node::root(variables)?), silent),
                _ => return Ok(None),
            },
        };
        if let Some(variables) = &variables
            && !variables.is_object()?
        {
            let message = "\"vars\" argument is not an object";
            let detail =
                "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
            let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
            return Err(error.with_detail(detail));
        }
        if self.last.as_ref().is_none_or(|(known, _)| *known != payload) {
            self.last = Some((payload, parsed(payload, call)?));
        }
        let Some((_, path)) = &self.last else { return Ok(None) };
        let root = Node::root(jsonb)?;
        let regexes = Call { collation: DEFAULT_COLLATION, ..*call };
        let mut walk = Walk {
            call,
            regexes: Compiler::new(&regexes)?,
            lax: path.lax,
            current: root.clone(),
            base: (jsonb.as_ptr() as usize, 0),
            root: root.clone(),
            variables,
            array_size: None,
            ignores_structure: path.lax,
            made: 0,
        };
        let mut values = Vec::new();
        // In strict mode, all values are needed to know that there is no error.
        let found = (collects || !path.lax).then_some(&mut values);
        let walked = walk.chain(&path.items, &root, found);
        let (has_result, is_failed) = match walked {
            Ok(has_result) => (has_result, false),
            Err(Failure::Path(_)) if silent => (false, true),
            Err(Failure::Path(error) | Failure::Statement(error)) => return Err(error),
        };
        Ok(Some((Executed { values, has_result, is_failed }, silent)))
    }
}

/// A stored path as a tree. The text of one that we can't read names what we don't have.
fn parsed(payload: &[u8], call: &Call<'_>) -> Result<JsonPath, SqlError> {
    if let Ok(path) = JsonPath::read(payload) {
        return Ok(path);
    }
    let mut text = Vec::new();
    let options = call.settings.text_options();
    write_text(&Type::Base(Base::Jsonpath), payload, &options, &mut text).map_err(damaged)?;
    Ok(JsonPath::parse(&into_text(text)?, call.settings.major)?)
}

fn each<R: Output>(
    call: &Call<'_>,
    collects: bool,
    result: impl Fn(Executed<'_>, bool) -> Result<Option<R>, SqlError>,
) -> Result<ArrayRef, SqlError> {
    let mut arguments = Arguments::new(call)?;
    each_row(call.rows, |row| match arguments.execute(call, row, collects)? {
        Some((executed, silent)) => result(executed, silent),
        None => Ok(None),
    })
}

fn exists(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    each(call, false, |executed, _| Ok((!executed.is_failed).then_some(executed.has_result)))
}

fn is_match(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    each(call, true, |executed, silent| match executed.values.as_slice() {
        [only] if only.kind == Kind::True => Ok(Some(true)),
        [only] if only.kind == Kind::False => Ok(Some(false)),
        [only] if only.kind == Kind::Null => Ok(None),
        _ if silent => Ok(None),
        _ => Err(SqlError::new(SINGLETON_REQUIRED, "single boolean result is expected")),
    })
}

fn query_array(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    each(call, true, |executed, _| {
        let values: Vec<_> = executed.values.iter().map(Node::value).collect();
        array(&values).map(Some)
    })
}

fn query_first(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    each(call, true, |executed, _| {
        executed.values.first().map(|value| value.value().to_jsonb()).transpose()
    })
}

fn query(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let mut arguments = Arguments::new(call)?;
    let Some((executed, _)) = arguments.execute(call, row, true)? else {
        return Ok(Box::new(NoRows));
    };
    let mut column = ColumnBuilder::new(Carrier::Bytes, executed.values.len());
    for value in &executed.values {
        column.append(&value.value().to_jsonb()?).map_err(damaged)?;
    }
    Ok(rows(vec![column.finish()]))
}
