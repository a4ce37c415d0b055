//! One function, procedure, aggregate or window function, decoded from `pg_proc`.
//!
//! `pg_proc` has up to three arrays that describe a function's arguments, each of which is null if it
//! would say nothing new. We combine them into one list of [`Parameter`]s:
//!
//! ```text
//!   create function f(a int, out b text, variadic c int[]) …
//!     → a: int4 IN, b: text OUT, c: int4[] VARIADIC; the input arguments are (int4, int4[])
//! ```

use std::ops::Deref;

use trunkline_format::Oid;
use trunkline_format::catalog::{
    PG_PROC, ProcedureRow, RowError, array_chars, array_oids, array_texts, settings_of,
};

/// How an argument is used (`proargmodes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterMode {
    /// `IN`.
    In,
    /// `OUT`.
    Out,
    /// `INOUT`.
    InOut,
    /// `VARIADIC`: an input array that a call can give element by element.
    Variadic,
    /// A column of `RETURNS TABLE`.
    Table,
}

impl ParameterMode {
    fn from_code(code: u8) -> Option<Self> {
        match code {
            b'i' => Some(Self::In),
            b'o' => Some(Self::Out),
            b'b' => Some(Self::InOut),
            b'v' => Some(Self::Variadic),
            b't' => Some(Self::Table),
            _ => None,
        }
    }

    /// Whether a call supplies it.
    pub fn is_input(self) -> bool {
        matches!(self, Self::In | Self::InOut | Self::Variadic)
    }
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, in the database's encoding; empty if it has none.
    pub name: Box<[u8]>,
    /// The OID of its type.
    pub type_oid: Oid,
    /// How it is used.
    pub mode: ParameterMode,
}

/// A function, procedure, aggregate or window function. Dereferences to its row, in which the columns
/// that can be long are null, because they are decoded here.
#[derive(Debug, Clone, PartialEq)]
pub struct Procedure {
    row: ProcedureRow,
    parameters: Vec<Parameter>,
    defaults: Option<Box<[u8]>>,
    source: Box<[u8]>,
    binary: Option<Box<[u8]>>,
    body: Option<Box<[u8]>>,
    settings: Option<Box<[u8]>>,
    has_transforms: bool,
}

impl Deref for Procedure {
    type Target = ProcedureRow;

    fn deref(&self) -> &ProcedureRow {
        &self.row
    }
}

impl Procedure {
    /// Decodes a row. `payload` fetches and decompresses a stored value.
    ///
    /// # Errors
    /// [`RowError::Value`]: a column is not what it must be, or `payload` returned `None` for it.
    pub(super) fn of_row(
        mut row: ProcedureRow,
        mut payload: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Self, RowError> {
        let mut read = |column: &'static str, stored: Option<Box<[u8]>>| match stored {
            Some(stored) => payload(&stored).map(Some).ok_or_else(|| wrong(column, &stored)),
            None => Ok(None),
        };
        let types = read("proallargtypes", row.all_arguments.take())?;
        let modes = read("proargmodes", row.modes.take())?;
        let names = read("proargnames", row.names.take())?;
        let defaults = read("proargdefaults", row.defaults.take())?;
        let source = read("prosrc", row.source.take())?;
        let body = read("prosqlbody", row.body.take())?;
        let binary = read("probin", row.binary.take())?;
        let settings = read("proconfig", row.settings.take())?;
        let has_transforms = row.transforms.take().is_some();
        let types = match &types {
            Some(array) => array_oids(array).ok_or_else(|| wrong("proallargtypes", array))?,
            None => row.arguments.clone(),
        };
        let modes = match &modes {
            Some(array) => {
                let codes = array_chars(array).unwrap_or_default();
                let modes = codes.iter().map(|&code| ParameterMode::from_code(code));
                modes.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("proargmodes", array))?
            }
            None => vec![ParameterMode::In; types.len()],
        };
        let names = match &names {
            Some(array) => array_texts(array).ok_or_else(|| wrong("proargnames", array))?,
            None => vec![&b""[..]; types.len()],
        };
        let inputs = modes.iter().filter(|mode| mode.is_input()).count();
        for (column, found, expected) in [
            ("proargmodes", modes.len(), types.len()),
            ("proargmodes", inputs, row.arguments.len()),
            ("proargnames", names.len(), types.len()),
        ] {
            if found != expected {
                let found = i64::try_from(found).unwrap_or(i64::MAX);
                return Err(RowError::Value { table: PG_PROC.name, column, found });
            }
        }
        let parameters = types.into_iter().zip(modes).zip(names);
        let parameters = parameters
            .map(|((type_oid, mode), name)| Parameter { name: name.into(), type_oid, mode })
            .collect();
        let source = source.unwrap_or_default().into();
        let (defaults, body) = (defaults.map(Into::into), body.map(Into::into));
        let (binary, settings) = (binary.map(Into::into), settings.map(Into::into));
        Ok(Self { row, parameters, defaults, source, binary, body, settings, has_transforms })
    }

    /// A function that isn't in the catalog: its row, in which the columns that can be long are null,
    /// with its arguments and its source.
    pub fn described(row: ProcedureRow, parameters: Vec<Parameter>, source: &str) -> Self {
        Self {
            row,
            parameters,
            defaults: None,
            source: source.as_bytes().into(),
            binary: None,
            body: None,
            settings: None,
            has_transforms: false,
        }
    }

    /// All of its arguments, in the order of their declaration.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The arguments that a call supplies, in order. Their types are those of
    /// [`ProcedureRow::arguments`].
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.mode.is_input())
    }

    /// The default expressions of the last input arguments, as a `pg_node_tree`; `None` if there are
    /// none.
    pub fn defaults(&self) -> Option<&[u8]> {
        self.defaults.as_deref()
    }

    /// `prosrc`: the name of an internal function in C, or the text of a function in SQL or another
    /// language.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// `probin`: for a function in C, the file that has it.
    pub fn binary(&self) -> Option<&[u8]> {
        self.binary.as_deref()
    }

    /// `prosqlbody`: the body of a function in SQL that was parsed when it was created, as a
    /// `pg_node_tree`.
    pub fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Whether settings are in force while it runs (`proconfig`).
    pub fn has_settings(&self) -> bool {
        self.settings.is_some()
    }

    /// Names and values of the settings that are in force while it runs; `None` if the array is
    /// damaged.
    pub fn settings(&self) -> Option<Vec<(&[u8], &[u8])>> {
        match &self.settings {
            Some(array) => settings_of(array),
            None => Some(Vec::new()),
        }
    }

    /// Whether it uses transforms of types (`protrftypes`).
    pub fn has_transforms(&self) -> bool {
        self.has_transforms
    }
}

fn wrong(column: &'static str, stored: &[u8]) -> RowError {
    let found = stored.first().copied().unwrap_or_default();
    RowError::Value { table: PG_PROC.name, column, found: found.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a function with two input arguments, whose stored values are already payloads.
    fn row(types: Option<&[u32]>, modes: Option<&[u8]>, names: Option<&[&str]>) -> ProcedureRow {
        let array = |element: u32, count: usize, bytes: Vec<u8>| -> Box<[u8]> {
            let header = [1, 0, element, count as u32, 1];
            header.iter().flat_map(|word| word.to_le_bytes()).chain(bytes).collect()
        };
        let text = |name: &&str| {
            let mut bytes = ((name.len() as u32 + 4) << 2).to_le_bytes().to_vec();
            bytes.extend(name.bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        ProcedureRow {
            oid: Oid(1),
            name: b"f"[..].into(),
            schema: Oid(11),
            language: Oid(12),
            variadic: Oid(0),
            support: Oid(0),
            kind: b'f',
            cost: 1.0,
            rows: 0.0,
            security_definer: false,
            leakproof: false,
            parallel: b's',
            strict: true,
            returns_set: false,
            volatility: b'i',
            argument_count: 2,
            default_count: 0,
            result: Oid(25),
            arguments: vec![Oid(23), Oid(1007)],
            all_arguments: types.map(|types| {
                array(26, types.len(), types.iter().flat_map(|oid| oid.to_le_bytes()).collect())
            }),
            modes: modes.map(|modes| array(18, modes.len(), modes.to_vec())),
            names: names.map(|names| array(25, names.len(), names.iter().flat_map(text).collect())),
            defaults: None,
            transforms: None,
            source: Some(b"f_c"[..].into()),
            binary: None,
            body: None,
            settings: None,
        }
    }

    fn decoded(row: ProcedureRow) -> Result<String, String> {
        let found = Procedure::of_row(row, |stored| Some(stored.to_vec()));
        let found = found.map_err(|error| error.to_string())?;
        let shown = found.parameters().iter().map(|parameter| {
            let name = String::from_utf8_lossy(&parameter.name);
            format!("{name} {} {:?}", parameter.type_oid, parameter.mode)
        });
        let inputs: Vec<Oid> = found.inputs().map(|parameter| parameter.type_oid).collect();
        assert_eq!((inputs, found.source()), (found.arguments.clone(), &b"f_c"[..]));
        Ok(shown.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn the_three_arrays_are_combined() {
        assert_eq!(decoded(row(None, None, None)).as_deref(), Ok(" 23 In,  1007 In"));
        let named = row(None, Some(b"iv"), Some(&["a", ""]));
        assert_eq!(decoded(named).as_deref(), Ok("a 23 In,  1007 Variadic"));
        let all = row(Some(&[23, 25, 1007]), Some(b"iov"), Some(&["a", "b", "c"]));
        assert_eq!(decoded(all).as_deref(), Ok("a 23 In, b 25 Out, c 1007 Variadic"));
    }

    #[test]
    fn arrays_that_contradict_each_other_are_refused() {
        let check = |row: ProcedureRow, column: &str, found: u8| {
            let text = format!("a row of pg_proc has the unknown value {found} in column {column}");
            assert_eq!(decoded(row), Err(text));
        };
        check(row(Some(&[23, 25, 1007]), None, None), "proargmodes", 3);
        check(row(Some(&[23, 25, 1007]), Some(b"io"), None), "proargmodes", 2);
        check(row(None, Some(b"i?"), None), "proargmodes", 1);
        check(row(None, None, Some(&["a"])), "proargnames", 1);
        let lost = Procedure::of_row(row(None, None, None), |_| None).map_err(|e| e.to_string());
        let text = "a row of pg_proc has the unknown value 102 in column prosrc";
        assert_eq!(lost, Err(text.to_owned()));
    }
}
