//! Operators, functions, casts and common types, compared with what servers make of the same calls.
//! The header of the files of expected results describes them.

use std::collections::BTreeMap;

use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::catalog::{Namespace, ObjectName, SearchPath, TypeOperators, oids};
use trunkline_sql::resolve::{
    CoercionContext, FunctionArguments, ResolvedCall, array_operator, binary_operator, can_coerce,
    common_type, function, is_common_type, prefix_operator, sort_operators,
};

use crate::fixtures::catalog;

const FILES: [(u32, &str); 2] = [
    (15, include_str!("../../testdata/resolve_15.txt")),
    (18, include_str!("../../testdata/resolve_18.txt")),
];

/// A call in the words of the server's messages.
enum Call {
    /// An operator with its operands: `integer + date`.
    Operator(String),
    /// A prefix operator.
    Prefix(String),
    /// A function with its arguments.
    Function(String),
}

impl Call {
    /// The messages if there is no such operator or function, and if there are several.
    fn messages(&self) -> (String, String) {
        match self {
            Self::Operator(call) | Self::Prefix(call) => (
                format!("operator does not exist: {call}"),
                format!("operator is not unique: {call}"),
            ),
            Self::Function(call) => (
                format!("function {call} does not exist"),
                format!("function {call} is not unique"),
            ),
        }
    }

    fn missing_hint(&self) -> &'static str {
        match self {
            Self::Operator(_) => {
                "No operator matches the given name and argument types. \
                 You might need to add explicit type casts."
            }
            Self::Prefix(_) => {
                "No operator matches the given name and argument type. \
                 You might need to add an explicit type cast."
            }
            Self::Function(_) => {
                "No function matches the given name and argument types. \
                 You might need to add explicit type casts."
            }
        }
    }

    fn ambiguous_hint(&self) -> &'static str {
        match self {
            Self::Operator(_) | Self::Prefix(_) => {
                "Could not choose a best candidate operator. \
                 You might need to add explicit type casts."
            }
            Self::Function(_) => {
                "Could not choose a best candidate function. \
                 You might need to add explicit type casts."
            }
        }
    }
}

/// Expected results of a version, and the names that they are in.
struct Expected<'c> {
    names: Namespace<'c>,
    types: Vec<&'static str>,
    /// How the server spells types.
    spelled: BTreeMap<&'static str, &'static str>,
    /// Code and message of the errors that are not the usual ones.
    errors: Vec<(&'static str, &'static str)>,
    differences: Vec<String>,
    compared: BTreeMap<&'static str, usize>,
}

impl Expected<'_> {
    fn oid(&self, name: &str) -> Oid {
        if name == "unknown" {
            return oids::UNKNOWN;
        }
        self.names.type_named(ObjectName::unqualified(name)).expect("a type").oid
    }

    /// A type in messages, as the server spells it.
    fn spelled(&self, name: &str) -> String {
        self.spelled.get(name).map_or_else(|| name.to_owned(), |spelled| (*spelled).to_owned())
    }

    /// A result in the notation of the files. `call` is what the message says if there is no such
    /// operator or function, such as `operator does not exist: integer + date`.
    fn shown(&self, found: Result<Oid, SqlError>, expected: &str, call: &Call) -> String {
        let error = match found {
            Ok(oid) => {
                let row = self.names.catalog().data_type(oid).expect("a type");
                return String::from_utf8_lossy(&row.name).into_owned();
            }
            Err(error) => error,
        };
        let at = expected.strip_prefix('!').and_then(|number| number.parse::<usize>().ok());
        let found = (error.code().as_str(), error.message());
        if at.is_some_and(|at| self.errors.get(at) == Some(&found)) {
            return expected.to_owned();
        }
        let (missing, ambiguous) = call.messages();
        match (found.0, error.hint()) {
            ("42883", Some(hint)) if found.1 == missing && hint == call.missing_hint() => {
                "-".to_owned()
            }
            ("42725", Some(hint)) if found.1 == ambiguous && hint == call.ambiguous_hint() => {
                "?".to_owned()
            }
            _ => format!("{} {error} {:?}", error.code().as_str(), error.hint()),
        }
    }

    fn compare(&mut self, kind: &'static str, call: &str, found: &str, expected: &str) {
        *self.compared.entry(kind).or_default() += 1;
        if found != expected {
            self.differences.push(format!("{kind} {call}: {found}, expected {expected}"));
        }
    }

    /// Compares a line that has a result for each type.
    fn compare_row(
        &mut self,
        kind: &'static str,
        call: &str,
        row: &'static str,
        find: impl Fn(&Self, Oid) -> Result<Oid, SqlError>,
        message: impl Fn(&Self, &str) -> Call,
    ) {
        for (name, expected) in self.types.clone().into_iter().zip(row.split(' ')) {
            // The call failed on the server when it ran, so its type isn't known.
            if expected != "x" {
                let found = find(self, self.oid(name));
                let found = self.shown(found, expected, &message(self, name));
                self.compare(kind, &format!("{call} {name}"), &found, expected);
            }
        }
    }

    fn compare_line(&mut self, line: &'static str) {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let [kind, name, left, results] = *fields.as_slice() else { return };
        let named = ObjectName::unqualified(name);
        let call = format!("{left} {name}");
        let is_type = ["operator", "any"].contains(&kind);
        let left_oid = if is_type { self.oid(left) } else { oids::NONE };
        let shown_left = self.spelled(left);
        match kind {
            "types" => self.types = results.split(' ').collect(),
            "spelled" => self.compare_spellings(results),
            "error" => self.errors.push((left, results)),
            "operator" => self.compare_row(
                "operator",
                &call,
                results,
                |expected, right| {
                    binary_operator(&expected.names, named, left_oid, right)
                        .map(|found| found.result)
                },
                |expected, right| {
                    Call::Operator(format!("{shown_left} {name} {}", expected.spelled(right)))
                },
            ),
            "prefix" => self.compare_row(
                "prefix",
                name,
                results,
                |expected, right| {
                    prefix_operator(&expected.names, named, right).map(|found| found.result)
                },
                |expected, right| Call::Prefix(format!("{name} {}", expected.spelled(right))),
            ),
            "any" => self.compare_row(
                "any",
                &call,
                results,
                |expected, array| {
                    array_operator(&expected.names, named, left_oid, array)
                        .map(|found| found.result)
                },
                |expected, array| {
                    let element = match array {
                        "int2vector" => "int2",
                        "oidvector" => "oid",
                        _ => array.strip_prefix('_').unwrap_or(array),
                    };
                    Call::Operator(format!("{shown_left} {name} {}", expected.spelled(element)))
                },
            ),
            "sort" => self.compare_orders(results),
            "classes" => self.compare_classes(results),
            "common" => self.compare_common(left, results),
            "cast" => self.compare_casts(left, results),
            "functions" => results.split(" & ").for_each(|calls| self.compare_calls(calls)),
            _ => self.differences.push(format!("unknown line {line}")),
        }
    }

    fn compare_spellings(&mut self, results: &'static str) {
        for spelling in results.split("; ") {
            let (name, expected) = spelling.split_once('=').expect("a name");
            self.spelled.insert(name, expected);
            let found = self.names.type_name(self.oid(name));
            self.compare("spelled", name, &found, expected);
        }
    }

    fn compare_orders(&mut self, results: &'static str) {
        for (name, expected) in self.types.clone().into_iter().zip(results.split(' ')) {
            let (oid, shown) = (self.oid(name), self.names.type_name(self.oid(name)));
            let find = |needs_order| {
                sort_operators(&self.names, oid, needs_order).map_err(|error| error.to_string())
            };
            let missing = |what| format!("could not identify {what} operator for type {shown}");
            let found = match (find(true), find(false)) {
                (Ok(_), Ok(_)) => "o",
                (Err(error), Ok(_)) if error == missing("an ordering") => "e",
                (Err(_), Err(error)) if error == missing("an equality") => "-",
                _ => "another error",
            };
            self.compare("sort", name, found, expected);
        }
    }

    fn compare_classes(&mut self, results: &'static str) {
        for result in results.split("; ") {
            let (name, expected) = result.split_once('=').expect("a type");
            let found = self.names.catalog().type_operators(self.oid(name));
            let TypeOperators { less, equal, greater, compare, hash, hash_extended, .. } = found;
            let found = [less, equal, greater, compare, hash, hash_extended];
            let found = found.map(|oid| oid.map_or_else(|| "0".to_owned(), |oid| oid.to_string()));
            self.compare("classes", name, &found.join(" "), expected);
        }
    }

    fn compare_common(&mut self, left: &str, results: &'static str) {
        let left_oid = self.oid(left);
        for (name, expected) in self.types.clone().into_iter().zip(results.split(' ')) {
            let types = [left_oid, self.oid(name)];
            let pairs = [(types[0], 3), (types[1], 7)];
            let found = match common_type(&self.names, "COALESCE", &pairs) {
                Ok(common) if !is_common_type(self.names.catalog(), common, &types) => {
                    "c".to_owned()
                }
                Ok(common) => self.shown(Ok(common), expected, &Call::Operator(String::new())),
                Err(error) => {
                    let base = |oid: Oid| self.names.type_name(self.names.catalog().base_type(oid));
                    let [one, other] = types.map(base);
                    let message = format!("COALESCE types {one} and {other} cannot be matched");
                    assert_eq!(
                        (error.message(), error.offset(), error.code().as_str()),
                        (&*message, Some(7), "42804")
                    );
                    "-".to_owned()
                }
            };
            self.compare("common", &format!("{left} {name}"), &found, expected);
        }
    }

    fn compare_casts(&mut self, left: &str, results: &'static str) {
        let source = self.oid(left);
        for (name, expected) in self.types.clone().into_iter().zip(results.split(' ')) {
            let target = self.oid(name);
            let can = |context| can_coerce(self.names.catalog(), &[source], &[target], context);
            let contexts = [
                ("i", CoercionContext::Implicit),
                ("a", CoercionContext::Assignment),
                ("e", CoercionContext::Explicit),
            ];
            let found = contexts.into_iter().find(|&(_, context)| can(context));
            let found = found.map_or("-", |(code, _)| code);
            self.compare("cast", &format!("{left} {name}"), found, expected);
        }
    }

    fn compare_calls(&mut self, calls: &'static str) {
        let (name, results) = calls.split_once(' ').expect("a name");
        for call in results.split("; ") {
            let (arguments, expected) = call.rsplit_once('=').expect("a result");
            let arguments = arguments.split(' ').filter(|argument| !argument.is_empty());
            let (mut types, mut names, mut is_variadic) = (Vec::new(), Vec::new(), false);
            let mut shown = Vec::new();
            for argument in arguments {
                let written = argument.strip_prefix('*').unwrap_or(argument);
                is_variadic |= written != argument;
                let (given, written) = written.split_once(':').unwrap_or(("", written));
                names.extend(Some(given).filter(|given| !given.is_empty()));
                types.push(self.oid(written));
                let arrow = if given.is_empty() { "" } else { " => " };
                shown.push(format!("{given}{arrow}{}", self.spelled(written)));
            }
            let arguments = FunctionArguments { types: &types, names: &names, is_variadic };
            let found = function(&self.names, ObjectName::unqualified(name), arguments);
            let found = found.map(|found| match found {
                ResolvedCall::Function(found) => found.result,
                ResolvedCall::Cast(target) => target,
            });
            let message = Call::Function(format!("{name}({})", shown.join(", ")));
            let found = self.shown(found, expected, &message);
            self.compare("function", &format!("{name}({call})"), &found, expected);
        }
    }
}

#[test]
fn calls_mean_what_they_mean_to_the_server() {
    for (major, file) in FILES {
        let Some(catalog) = catalog(major) else { continue };
        let path = SearchPath::new(&catalog, &["public", "s1"], None);
        let mut expected = Expected {
            names: Namespace::new(&catalog, &path),
            types: Vec::new(),
            spelled: BTreeMap::new(),
            errors: Vec::new(),
            differences: Vec::new(),
            compared: BTreeMap::new(),
        };
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            expected.compare_line(line);
        }
        let (count, first) = (expected.differences.len(), &expected.differences);
        println!("{major}: {:?}", expected.compared);
        let first: Vec<&String> = first.iter().take(60).collect();
        assert!(count == 0, "{major}: {count} differences: {first:#?}");
        assert!(expected.compared.values().sum::<usize>() > 25_000, "{:?}", expected.compared);
    }
}
