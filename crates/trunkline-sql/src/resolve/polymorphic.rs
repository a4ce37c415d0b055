//! Polymorphic functions: `anyelement`, `anyarray`, `anycompatible` and the others.
//!
//! There are two families. In the first, all arguments must have the same type, or be arrays or ranges
//! of it. In the second, named `anycompatible…`, arguments are converted to their common type.
//!
//! ```text
//!   array_append(anycompatiblearray, anycompatible) → anycompatiblearray
//!     called with (int4[], int8): int8 is the common type, so it is (int8[], int8) → int8[]
//! ```
//!
//! [`can_coerce`] says whether a call fits, for choosing among functions (`can_coerce_type`,
//! `check_generic_type_consistency`). [`settle`] replaces the polymorphic types in the function that
//! was chosen, and reports what is wrong (`enforce_generic_type_consistency`).

use trunkline_format::Oid;

use super::coercion::{CoercionContext, can_convert};
use super::common_type::{Unmatched, select};
use crate::catalog::{Namespace, SqlCatalog, oids};
use crate::error::{SqlError, SqlState};

/// One type that all arguments of a kind must have.
type Slot = Option<Oid>;

/// What the arguments of a call say about a family.
#[derive(Default)]
struct Family {
    /// The type of array arguments. Only the first family has it.
    array: Slot,
    range: Slot,
    multirange: Slot,
    /// In the first family, the type of elements, if known.
    element: Slot,
    /// In the second family, the types of which the common one is chosen.
    candidates: Vec<Oid>,
    /// Arguments of the first family, unknown ones included.
    count: usize,
    is_nonarray: bool,
    is_enum: bool,
    has_array: bool,
    has_range: bool,
    has_multirange: bool,
}

/// Why arguments don't fit. Types are named by what was declared.
enum Conflict {
    /// Two arguments declared alike have different types.
    NotAlike(&'static str, Oid, Oid),
    /// Two arguments contradict each other: the names of what was declared, and the types found.
    Inconsistent(&'static str, &'static str, Oid, Oid),
    /// An argument isn't what was declared: its declared name, such as `an array`, and its type.
    WrongKind(&'static str, &'static str, Oid),
    /// An array of unknown element type can't be used here.
    ElementUnknown,
    /// All arguments that would decide are literals.
    Undetermined(&'static str),
    NoArrayType(Oid),
    IsArray(&'static str, Oid),
    NotEnum(Oid),
    Unmatched(Oid, Oid),
    NoCommonType,
    RangeMismatch(&'static str, Oid, Oid),
}

/// Whether values of the types `sources` can be converted to the types `targets`, pair by pair. Targets
/// may be polymorphic, in which case the sources must agree with each other.
pub fn can_coerce(
    catalog: &SqlCatalog,
    sources: &[Oid],
    targets: &[Oid],
    context: CoercionContext,
) -> bool {
    let pairs = || sources.iter().zip(targets).filter(|(source, target)| source != target);
    let fits = |(&source, &target): (&Oid, &Oid)| {
        oids::is_polymorphic(target) || can_convert(catalog, source, target, context)
    };
    let is_plain = !pairs().any(|(_, &target)| oids::is_polymorphic(target));
    pairs().all(fits) && (is_plain || is_consistent(catalog, sources, targets))
}

/// Whether arguments of these types agree with the declared types, as far as those are polymorphic.
fn is_consistent(catalog: &SqlCatalog, actual: &[Oid], declared: &[Oid]) -> bool {
    let mut exact = Family::default();
    let mut compatible = Family::default();
    let checked = exact.collect(catalog, actual, declared, true).and_then(|()| {
        compatible.collect(catalog, actual, declared, false)?;
        exact
            .check_exact(catalog, exact.array == Some(oids::ANYARRAY) && exact.element.is_none())?;
        compatible.choose(catalog)?;
        Ok(())
    });
    checked.is_ok()
}

impl Family {
    /// Notes what the arguments of a family say.
    fn collect(
        &mut self,
        catalog: &SqlCatalog,
        actual: &[Oid],
        declared: &[Oid],
        is_exact: bool,
    ) -> Result<(), Conflict> {
        for (&actual, &declared) in actual.iter().zip(declared) {
            let belongs = match is_exact {
                true => oids::is_polymorphic_exact(declared),
                false => oids::is_polymorphic_compatible(declared),
            };
            if belongs {
                self.count += 1;
                self.note_kind(declared);
                if actual != oids::UNKNOWN {
                    self.note(catalog, actual, declared)?;
                }
            }
        }
        Ok(())
    }

    /// Notes what a declared type or result demands.
    fn note_kind(&mut self, declared: Oid) {
        match declared {
            oids::ANYNONARRAY | oids::ANYCOMPATIBLENONARRAY => self.is_nonarray = true,
            oids::ANYENUM => self.is_enum = true,
            oids::ANYCOMPATIBLEARRAY => self.has_array = true,
            oids::ANYCOMPATIBLERANGE => self.has_range = true,
            oids::ANYCOMPATIBLEMULTIRANGE => self.has_multirange = true,
            _ => {}
        }
    }

    fn note(&mut self, catalog: &SqlCatalog, actual: Oid, declared: Oid) -> Result<(), Conflict> {
        let base = catalog.base_type(actual);
        match declared {
            oids::ANYELEMENT | oids::ANYNONARRAY | oids::ANYENUM => {
                same("anyelement", &mut self.element, actual)
            }
            oids::ANYARRAY => same("anyarray", &mut self.array, base),
            oids::ANYRANGE => same("anyrange", &mut self.range, base),
            oids::ANYMULTIRANGE => same("anymultirange", &mut self.multirange, base),
            oids::ANYCOMPATIBLEARRAY => {
                let element = catalog.element_type(base);
                let wrong = Conflict::WrongKind("anycompatiblearray", "an array", base);
                self.candidates.push(element.ok_or(wrong)?);
                Ok(())
            }
            oids::ANYCOMPATIBLERANGE => same("anycompatiblerange", &mut self.range, base),
            oids::ANYCOMPATIBLEMULTIRANGE => {
                same("anycompatiblemultirange", &mut self.multirange, base)
            }
            _ => {
                self.candidates.push(actual);
                Ok(())
            }
        }
    }

    /// Finds the range type from the multirange type, or checks that they agree.
    fn match_ranges(
        &mut self,
        catalog: &SqlCatalog,
        (range, multirange): (&'static str, &'static str),
    ) -> Result<(), Conflict> {
        let Some(found) = self.multirange else { return Ok(()) };
        let wrong = Conflict::WrongKind(multirange, "a multirange", found);
        let inner = catalog.multirange_range(found).ok_or(wrong)?;
        match self.range {
            Some(known) if known != inner => {
                Err(Conflict::Inconsistent(multirange, range, found, known))
            }
            _ => {
                self.range = Some(inner);
                Ok(())
            }
        }
    }

    /// Derives the element type of the first family from arrays and ranges, and checks it.
    /// `is_any_array` allows an argument whose own type is `anyarray`, as columns of `pg_stats` have.
    fn check_exact(&mut self, catalog: &SqlCatalog, is_any_array: bool) -> Result<(), Conflict> {
        if let Some(array) = self.array {
            let element = match array {
                oids::ANYARRAY if is_any_array => oids::ANYELEMENT,
                oids::ANYARRAY => return Err(Conflict::ElementUnknown),
                _ => {
                    let wrong = Conflict::WrongKind("anyarray", "an array", array);
                    catalog.element_type(array).ok_or(wrong)?
                }
            };
            self.agree("anyarray", array, element)?;
        }
        self.match_ranges(catalog, ("anyrange", "anymultirange"))?;
        if let Some(range) = self.range {
            let wrong = Conflict::WrongKind("anyrange", "a range", range);
            let subtype = catalog.range_subtype(range).ok_or(wrong)?;
            self.agree("anyrange", range, subtype)?;
        }
        let element = self.element.filter(|&element| element != oids::ANYELEMENT);
        if self.is_nonarray
            && let Some(element) = element
            && catalog.base_element_type(element).is_some()
        {
            return Err(Conflict::IsArray("anynonarray", element));
        }
        if self.is_enum && self.element != Some(oids::ANYELEMENT) {
            let element = self.element.unwrap_or(oids::NONE);
            if !catalog.is_enum(element) {
                return Err(Conflict::NotEnum(element));
            }
        }
        Ok(())
    }

    /// Checks that an array or range has the elements that other arguments have.
    fn agree(&mut self, declared: &'static str, of: Oid, element: Oid) -> Result<(), Conflict> {
        match self.element {
            Some(known) if known != element => {
                Err(Conflict::Inconsistent(declared, "anyelement", of, known))
            }
            _ => {
                self.element = Some(element);
                Ok(())
            }
        }
    }

    /// Chooses the common type of the second family. `None` if all of its arguments are unknown.
    fn choose(&mut self, catalog: &SqlCatalog) -> Result<Slot, Conflict> {
        self.match_ranges(catalog, ("anycompatiblerange", "anycompatiblemultirange"))?;
        let mut subtype = None;
        if let Some(range) = self.range {
            let wrong = Conflict::WrongKind("anycompatiblerange", "a range", range);
            let found = catalog.range_subtype(range).ok_or(wrong)?;
            subtype = Some(found);
            self.candidates.push(found);
        }
        if self.candidates.is_empty() {
            return Ok(None);
        }
        let chosen = select(catalog, &self.candidates)
            .map_err(|Unmatched { expected, found, .. }| Conflict::Unmatched(expected, found))?;
        let can = |from: Oid| can_convert(catalog, from, chosen, CoercionContext::Implicit);
        if !self.candidates.iter().all(|&from| can(from)) {
            return Err(Conflict::NoCommonType);
        }
        if let (Some(range), Some(subtype)) = (self.range, subtype)
            && subtype != chosen
        {
            return Err(match self.multirange.filter(|_| !self.has_range) {
                Some(multirange) => {
                    Conflict::RangeMismatch("anycompatiblemultirange", multirange, chosen)
                }
                None => Conflict::RangeMismatch("anycompatiblerange", range, chosen),
            });
        }
        if self.is_nonarray && catalog.base_element_type(chosen).is_some() {
            return Err(Conflict::IsArray("anycompatiblenonarray", chosen));
        }
        Ok(Some(chosen))
    }
}

fn same(declared: &'static str, slot: &mut Slot, found: Oid) -> Result<(), Conflict> {
    match *slot {
        Some(known) if known != found => Err(Conflict::NotAlike(declared, known, found)),
        _ => {
            *slot = Some(found);
            Ok(())
        }
    }
}

/// Replaces the polymorphic types in `declared` by those to which the arguments are converted, and
/// returns the type of the result. An argument of a type such as `anyelement` keeps its type, and a
/// literal gets the type that the others decide.
///
/// # Errors
/// 42804: the arguments contradict each other, or don't decide a type. 42704: there is no array type
/// for the element type that they decide.
pub(super) fn settle(
    names: &Namespace<'_>,
    actual: &[Oid],
    declared: &mut [Oid],
    result: Oid,
) -> Result<Oid, SqlError> {
    if !declared.iter().any(|&oid| oids::is_polymorphic(oid)) {
        return Ok(result);
    }
    settle_types(names.catalog(), actual, declared, result)
        .map_err(|conflict| conflict.into_error(names))
}

fn settle_types(
    catalog: &SqlCatalog,
    actual: &[Oid],
    declared: &mut [Oid],
    result: Oid,
) -> Result<Oid, Conflict> {
    let mut exact = Family::default();
    let mut compatible = Family::default();
    exact.note_kind(result);
    compatible.note_kind(result);
    exact.collect(catalog, actual, declared, true)?;
    compatible.collect(catalog, actual, declared, false)?;
    if exact.count > 0 {
        let returns_element = result != oids::ANYARRAY && oids::is_polymorphic_exact(result);
        exact.check_exact(catalog, exact.count == 1 && !returns_element)?;
        if exact.element.is_none() {
            return Err(Conflict::Undetermined(""));
        }
    }
    let mut common = None;
    if compatible.count > 0 {
        common = compatible.choose(catalog)?.or(Some(oids::TEXT));
        if compatible.has_range && compatible.range.is_none() {
            return Err(Conflict::Undetermined("anycompatiblerange"));
        }
        if compatible.has_multirange && compatible.multirange.is_none() {
            return Err(Conflict::Undetermined("anycompatiblemultirange"));
        }
    }
    for (&actual, declared) in actual.iter().zip(declared.iter_mut()) {
        *declared = match actual {
            _ if !oids::is_polymorphic(*declared) => *declared,
            oids::UNKNOWN => resolved(catalog, *declared, &exact, &compatible, common)?,
            _ if oids::is_polymorphic_compatible(*declared) => {
                resolved(catalog, *declared, &exact, &compatible, common)?
            }
            // These take domains as they are.
            _ if [oids::ANYELEMENT, oids::ANYNONARRAY].contains(declared) => actual,
            _ => catalog.base_type(actual),
        };
    }
    resolved(catalog, result, &exact, &compatible, common)
}

/// The type that a declared type stands for.
fn resolved(
    catalog: &SqlCatalog,
    declared: Oid,
    exact: &Family,
    compatible: &Family,
    common: Slot,
) -> Result<Oid, Conflict> {
    let array_of = |element: Oid| catalog.array_type(element).ok_or(Conflict::NoArrayType(element));
    let element = exact.element.ok_or(Conflict::Undetermined(""));
    let common = common.ok_or(Conflict::Undetermined(""));
    match declared {
        oids::ANYELEMENT | oids::ANYNONARRAY | oids::ANYENUM => element,
        oids::ANYARRAY => match exact.array {
            Some(array) => Ok(array),
            None => array_of(element?),
        },
        oids::ANYRANGE => exact.range.ok_or(Conflict::Undetermined("anyrange")),
        oids::ANYMULTIRANGE => match (exact.multirange, exact.range) {
            (Some(multirange), _) => Ok(multirange),
            (None, Some(range)) => {
                catalog.range_multirange(range).ok_or(Conflict::Undetermined("anymultirange"))
            }
            _ => Err(Conflict::Undetermined("anymultirange")),
        },
        oids::ANYCOMPATIBLE | oids::ANYCOMPATIBLENONARRAY => common,
        oids::ANYCOMPATIBLEARRAY => array_of(common?),
        oids::ANYCOMPATIBLERANGE => {
            compatible.range.ok_or(Conflict::Undetermined("anycompatiblerange"))
        }
        oids::ANYCOMPATIBLEMULTIRANGE => {
            compatible.multirange.ok_or(Conflict::Undetermined("anycompatiblemultirange"))
        }
        other => Ok(other),
    }
}

impl Conflict {
    fn into_error(self, names: &Namespace<'_>) -> SqlError {
        let show = |oid: Oid| names.type_name(oid);
        let mismatch = |message: String| SqlError::new(SqlState::DATATYPE_MISMATCH, message);
        let versus = |one: Oid, other: Oid| format!("{} versus {}", show(one), show(other));
        match self {
            Self::NotAlike(declared, one, other) => {
                mismatch(format!("arguments declared \"{declared}\" are not all alike"))
                    .with_detail(versus(one, other))
            }
            Self::Inconsistent(first, second, one, other) => mismatch(format!(
                "argument declared {first} is not consistent with argument declared {second}"
            ))
            .with_detail(versus(one, other)),
            Self::WrongKind(declared, kind, found) => mismatch(format!(
                "argument declared {declared} is not {kind}{} but type {}",
                if kind == "an array" { "" } else { " type" },
                show(found)
            )),
            Self::ElementUnknown => {
                mismatch("cannot determine element type of \"anyarray\" argument".to_owned())
            }
            Self::Undetermined("") => mismatch(
                "could not determine polymorphic type because input has type unknown".to_owned(),
            ),
            Self::Undetermined(declared) => mismatch(format!(
                "could not determine polymorphic type {declared} because input has type unknown"
            )),
            Self::NoArrayType(element) => {
                let message = format!("could not find array type for data type {}", show(element));
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            }
            Self::IsArray(declared, found) => {
                mismatch(format!("type matched to {declared} is an array type: {}", show(found)))
            }
            Self::NotEnum(found) => {
                mismatch(format!("type matched to anyenum is not an enum type: {}", show(found)))
            }
            Self::Unmatched(expected, found) => mismatch(format!(
                "argument types {} and {} cannot be matched",
                show(expected),
                show(found)
            )),
            Self::NoCommonType => mismatch(
                "arguments of anycompatible family cannot be cast to a common type".to_owned(),
            ),
            Self::RangeMismatch(declared, range, chosen) => mismatch(format!(
                "{declared} type {} does not match anycompatible type {}",
                show(range),
                show(chosen)
            )),
        }
    }
}
