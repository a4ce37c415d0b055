//! A function that an expression calls: either a comparison that Arrow computes, or a kernel.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Datum, Scalar};
use arrow_schema::DataType;
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cmp;
use datafusion::logical_expr::Operator;
use trunkline_format::Oid;
use trunkline_sql::catalog::oids::is_polymorphic;
use trunkline_sql::functions::{
    Argument, Call, CallSettings, Kernel, compare_with_elements, kernel,
};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::frame::failed;
use super::native::{NativeComparison, native_comparison};
use super::relabel::relabel;
use crate::environment::{Environment, Volatility};

/// A function with the types that it is called with.
#[derive(Clone)]
pub(crate) struct Function {
    /// `proname`, for `EXPLAIN`.
    pub(crate) name: String,
    pub(crate) volatility: Volatility,
    code: Code,
    /// The kernel, even if Arrow computes the same.
    kernel: Option<Kernel>,
    argument_types: Vec<Oid>,
    result_type: Oid,
    /// The carriers of the function's own result and of `result_type`, if they differ: a cast of
    /// `int2` to `oid` calls a function that returns `int4`.
    relabel: Option<(Carrier, Carrier)>,
    collation: Oid,
}

#[derive(Clone, Copy)]
enum Code {
    Native(NativeComparison),
    Kernel(Kernel),
}

impl Function {
    /// The function with this OID.
    ///
    /// # Errors
    /// 0A000: we haven't implemented it, or it would sort text by a locale.
    pub(crate) fn new(
        environment: &Environment,
        oid: Oid,
        argument_types: Vec<Oid>,
        result_type: Oid,
        collation: Oid,
    ) -> Result<Self, SqlError> {
        let info = environment.function(oid)?;
        let native = native_comparison(&info.source, environment.sorts_by_bytes(collation));
        // A nondeterministic collation may find texts equal that aren't.
        let native =
            native.filter(|native| !native.is_text || environment.is_deterministic(collation));
        let code = match native {
            Some(native) => Code::Native(native),
            None => match kernel(&info.source) {
                Some(kernel) => Code::Kernel(kernel),
                None => {
                    // Text that is compared by a locale has no kernel on purpose.
                    if native_comparison(&info.source, true).is_some() {
                        environment.require_bytewise(collation)?;
                    }
                    return Err(unsupported(environment, &info.name, &argument_types));
                }
            },
        };
        let kernel = kernel(&info.source);
        let mut relabel = None;
        if info.result != result_type && !is_polymorphic(info.result) {
            // Pseudo-types have no carrier, and their functions return what the call expects.
            let from = environment.carrier(info.result).ok();
            let carriers = from.zip(Some(environment.carrier(result_type)?));
            relabel = carriers.filter(|(from, to)| from.data_type() != to.data_type());
        }
        let (name, volatility) = (info.name, info.volatility);
        Ok(Self { name, volatility, code, kernel, argument_types, result_type, relabel, collation })
    }

    /// The comparison that Arrow computes, if that is what the function does.
    pub(crate) fn native(&self) -> Option<NativeComparison> {
        match self.code {
            Code::Native(native) => Some(native),
            Code::Kernel(_) => None,
        }
    }

    /// The type of the result.
    pub(super) fn result_type(&self) -> Oid {
        self.result_type
    }

    /// Computes one result. The last arguments are elements of an array instead of that array, and have
    /// the type `element`.
    pub(super) fn call_one(
        &self,
        arguments: &[Argument],
        element: Option<Oid>,
        settings: &CallSettings,
    ) -> Result<ArrayRef, SqlError> {
        let kernel = self.kernel.ok_or_else(|| {
            let name = &self.name;
            SqlError::unsupported(format!(
                "VARIADIC in a call of {name} is not supported by trunkline"
            ))
        })?;
        let others = self.argument_types.split_last().map_or(&[][..], |(_, others)| others);
        let elements = arguments.len().saturating_sub(others.len());
        let elements = std::iter::repeat_n(element.unwrap_or_default(), elements);
        let argument_types: Vec<Oid> = others.iter().copied().chain(elements).collect();
        let result = kernel(&Call {
            arguments,
            rows: 1,
            argument_types: &argument_types,
            result_type: self.result_type,
            collation: self.collation,
            row: None,
            settings,
        })?;
        self.relabeled(result)
    }

    /// The results as values of the type that the call has.
    fn relabeled(&self, result: ArrayRef) -> Result<ArrayRef, SqlError> {
        match self.relabel {
            Some((from, to)) => relabel(&result, from, to),
            None => Ok(result),
        }
    }

    /// Computes the results for `rows` rows.
    pub(crate) fn call(
        &self,
        arguments: &[Argument],
        rows: usize,
        settings: &CallSettings,
    ) -> Result<Argument, SqlError> {
        // If all arguments are constants, one result is enough, unless it may differ each time.
        let constant = self.volatility != Volatility::Volatile
            && arguments.iter().all(Argument::is_constant)
            && !arguments.is_empty();
        let rows = if constant { 1 } else { rows };
        let result = match self.code {
            Code::Native(native) => compare(native, arguments)?,
            Code::Kernel(kernel) => kernel(&Call {
                arguments,
                rows,
                argument_types: &self.argument_types,
                result_type: self.result_type,
                collation: self.collation,
                row: None,
                settings,
            })?,
        };
        let result = self.relabeled(result)?;
        if result.len() != rows {
            let (name, found) = (&self.name, result.len());
            return Err(SqlError::internal(format!("{name} returned {found} rows of {rows}")));
        }
        Ok(if constant { Argument::constant(result) } else { Argument::column(result) })
    }
}

impl Function {
    /// Compares the first argument with the elements of the second one, an array. The function's
    /// second type is that of the elements. With `all`, every comparison must be true, otherwise at
    /// least one.
    pub(super) fn call_with_elements(
        &self,
        arguments: &[Argument],
        all: bool,
        rows: usize,
        settings: &CallSettings,
    ) -> Result<Argument, SqlError> {
        let kernel = self.kernel.ok_or_else(|| {
            let name = &self.name;
            SqlError::unsupported(format!("{name} with ANY or ALL is not supported by trunkline"))
        })?;
        let constant =
            self.volatility != Volatility::Volatile && arguments.iter().all(Argument::is_constant);
        let call = Call {
            arguments,
            rows: if constant { 1 } else { rows },
            argument_types: &self.argument_types,
            result_type: self.result_type,
            collation: self.collation,
            row: None,
            settings,
        };
        let result = compare_with_elements(kernel, &call, all)?;
        Ok(if constant { Argument::constant(result) } else { Argument::column(result) })
    }
}

/// The error for a function without a kernel, with its name and argument types as in PostgreSQL.
fn unsupported(environment: &Environment, name: &str, types: &[Oid]) -> SqlError {
    let catalog = &environment.settings.catalog;
    let shown = |oid: &Oid| match catalog.type_row(*oid) {
        Some(row) => String::from_utf8_lossy(&row.name).into_owned(),
        None => oid.to_string(),
    };
    let types: Vec<String> = types.iter().map(shown).collect();
    let message = format!("function {name}({}) is not supported by trunkline", types.join(", "));
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// Compares two arguments with Arrow's kernels. If either value is null, the result is null.
fn compare(native: NativeComparison, arguments: &[Argument]) -> Result<ArrayRef, SqlError> {
    let [left, right] = arguments else {
        return Err(SqlError::internal("a comparison has two arguments"));
    };
    let (mut a, mut b) = (Arc::clone(left.array()), Arc::clone(right.array()));
    if native.widens {
        let wider = wider(a.data_type(), b.data_type());
        a = cast(&a, &wider).map_err(failed)?;
        b = cast(&b, &wider).map_err(failed)?;
    }
    // With two constants, both are arrays of one value, so the result has one value too.
    let both = left.is_constant() && right.is_constant();
    let datum = |array: ArrayRef, constant: bool| -> Box<dyn Datum> {
        if constant && !both { Box::new(Scalar::new(array)) } else { Box::new(array) }
    };
    let (a, b) = (datum(a, left.is_constant()), datum(b, right.is_constant()));
    let compared = match native.operator {
        Operator::Eq => cmp::eq(&*a, &*b),
        Operator::NotEq => cmp::neq(&*a, &*b),
        Operator::Lt => cmp::lt(&*a, &*b),
        Operator::LtEq => cmp::lt_eq(&*a, &*b),
        Operator::Gt => cmp::gt(&*a, &*b),
        _ => cmp::gt_eq(&*a, &*b),
    };
    Ok(Arc::new(compared.map_err(failed)?))
}

/// The type that holds the values of two integer types.
pub(crate) fn wider(left: &DataType, right: &DataType) -> DataType {
    match (left, right) {
        (DataType::Int64, _) | (_, DataType::Int64) => DataType::Int64,
        (DataType::Int32, _) | (_, DataType::Int32) => DataType::Int32,
        _ => left.clone(),
    }
}
