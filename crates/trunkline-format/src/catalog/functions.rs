//! Catalogs of functions, aggregates, casts and languages.
//!
//! Names are in the database's encoding.

use super::describe::describe_catalog;
use super::tuple::{CatalogTuple, RowError};
use crate::ids::Oid;

describe_catalog! {
    /// Functions and procedures (`catalog/pg_proc.h`), up to the last column that we read.
    PG_PROC = "pg_proc", 1255, mapped, open;
    index "pg_proc_oid_index", 2690;
    columns {
        oid: Oid,
        proname: Name,
        pronamespace: Oid,
        proowner: Oid,
        prolang: Oid,
        procost: Float4,
        prorows: Float4,
        provariadic: Oid,
        prosupport: Regproc,
        prokind: Char,
        prosecdef: Bool,
        proleakproof: Bool,
        proisstrict: Bool,
        proretset: Bool,
        provolatile: Char,
        proparallel: Char,
        pronargs: Int2,
        pronargdefaults: Int2,
        prorettype: Oid,
        proargtypes: OidVector,
        proallargtypes: OidArray,
        proargmodes: CharArray,
        proargnames: TextArray,
        proargdefaults: PgNodeTree,
        protrftypes: OidArray,
        prosrc: Text,
        probin: Text,
        prosqlbody: PgNodeTree,
        proconfig: TextArray,
    }
    /// A row of `pg_proc`. The columns that can be long are as they are stored, so they may be
    /// compressed, or pointers into the TOAST table.
    row ProcedureRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = proname,
        /// The OID of its schema.
        schema: Oid = pronamespace,
        /// The OID of its language.
        language: Oid = prolang,
        /// `provariadic`: the type of the elements of its last argument if it is `VARIADIC`; else 0.
        variadic: Oid = provariadic,
        /// `prosupport`: the function with which the planner simplifies its calls; 0 if there is none.
        support: Oid = prosupport,
        /// `prokind`: `f` function, `p` procedure, `a` aggregate, `w` window function.
        kind: u8 = prokind,
        /// `procost`: what the planner takes for the cost of a call.
        cost: f32 = procost,
        /// `prorows`: how many rows the planner expects; 0 unless it returns a set.
        rows: f32 = prorows,
        /// `prosecdef`: whether it runs with the privileges of its owner.
        security_definer: bool = prosecdef,
        /// `proleakproof`: whether only its result reveals something about its arguments, so it can't fail.
        leakproof: bool = proleakproof,
        /// `proisstrict`: whether its result is null if any argument is.
        strict: bool = proisstrict,
        /// `proretset`: whether it returns a set.
        returns_set: bool = proretset,
        /// `provolatile`: `i` immutable, `s` stable, `v` volatile.
        volatility: u8 = provolatile,
        /// `proparallel`: `s` safe, `r` restricted, `u` unsafe in parallel workers.
        parallel: u8 = proparallel,
        /// `pronargs`: the number of its input arguments.
        argument_count: u16 = pronargs,
        /// `pronargdefaults`: how many of the last input arguments have a default.
        default_count: u16 = pronargdefaults,
        /// `prorettype`: the type of its result.
        result: Oid = prorettype,
        /// `proargtypes`: the types of its input arguments.
        arguments: Vec<Oid> = proargtypes,
        /// `proallargtypes` as stored: the types of all arguments; null if all are `IN`.
        all_arguments: Option<Box<[u8]>> = proallargtypes,
        /// `proargmodes` as stored: null if all arguments are `IN`.
        modes: Option<Box<[u8]>> = proargmodes,
        /// `proargnames` as stored: null if no argument has a name.
        names: Option<Box<[u8]>> = proargnames,
        /// `proargdefaults` as stored: a list of expressions.
        defaults: Option<Box<[u8]>> = proargdefaults,
        /// `protrftypes` as stored: the types whose transforms it uses.
        transforms: Option<Box<[u8]>> = protrftypes,
        /// `prosrc` as stored. For an internal function, it is the name of the function in C.
        source: Option<Box<[u8]>> = prosrc,
        /// `probin` as stored: for a function in C, the file that has it.
        binary: Option<Box<[u8]>> = probin,
        /// `prosqlbody` as stored: the body of a function in SQL that was parsed when it was created.
        body: Option<Box<[u8]>> = prosqlbody,
        /// `proconfig` as stored: settings that are in force while the function runs.
        settings: Option<Box<[u8]>> = proconfig,
    }
    finish check_count
}

impl ProcedureRow {
    /// Checks that the counts agree, because callers index the arguments by them.
    fn check_count(self, tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError> {
        if usize::from(self.argument_count) != self.arguments.len() {
            return Err(tuple.value("pronargs", self.argument_count));
        }
        if self.default_count > self.argument_count {
            return Err(tuple.value("pronargdefaults", self.default_count));
        }
        Ok(self)
    }
}

describe_catalog! {
    /// Aggregates (`catalog/pg_aggregate.h`): what `pg_proc` doesn't say about them.
    PG_AGGREGATE = "pg_aggregate", 2600;
    index "pg_aggregate_fnoid_index", 2650;
    columns {
        aggfnoid: Regproc,
        aggkind: Char,
        aggnumdirectargs: Int2,
        aggtransfn: Regproc,
        aggfinalfn: Regproc,
        aggcombinefn: Regproc,
        aggserialfn: Regproc,
        aggdeserialfn: Regproc,
        aggmtransfn: Regproc,
        aggminvtransfn: Regproc,
        aggmfinalfn: Regproc,
        aggfinalextra: Bool,
        aggmfinalextra: Bool,
        aggfinalmodify: Char,
        aggmfinalmodify: Char,
        aggsortop: Oid,
        aggtranstype: Oid,
        aggtransspace: Int4,
        aggmtranstype: Oid,
        aggmtransspace: Int4,
        agginitval: Text,
        aggminitval: Text,
    }
    /// A row of `pg_aggregate`.
    row AggregateRow {
        /// The OID of its row in `pg_proc`.
        function: Oid = aggfnoid,
        /// `aggkind`: `n` normal, `o` ordered set, `h` hypothetical set.
        kind: u8 = aggkind,
        /// `aggnumdirectargs`: how many arguments of an ordered-set aggregate are not aggregated.
        direct_arguments: u16 = aggnumdirectargs,
        /// `aggtransfn`: the function that adds a row to the state.
        transition: Oid = aggtransfn,
        /// `aggfinalfn`: the function that makes the result; 0 if the state is the result.
        finish: Oid = aggfinalfn,
        /// `aggsortop`: an operator such that the result is the first row sorted by it; 0 if there
        /// is none.
        sort_operator: Oid = aggsortop,
        /// `aggtranstype`: the type of the state.
        state_type: Oid = aggtranstype,
    }
}

describe_catalog! {
    /// Casts (`catalog/pg_cast.h`).
    PG_CAST = "pg_cast", 2605;
    index "pg_cast_oid_index", 2660;
    columns {
        oid: Oid,
        castsource: Oid,
        casttarget: Oid,
        castfunc: Oid,
        castcontext: Char,
        castmethod: Char,
    }
    /// A row of `pg_cast`.
    row CastRow {
        /// Its OID.
        oid: Oid = oid,
        /// The type that is converted.
        source: Oid = castsource,
        /// The type of the result.
        target: Oid = casttarget,
        /// The function that converts a value; 0 unless the method is `f`.
        function: Oid = castfunc,
        /// `castcontext`: where it is applied: `i` anywhere, `a` in assignments, `e` in casts.
        context: u8 = castcontext,
        /// `castmethod`: `f` by a function, `b` not at all (the types are binary-coercible), `i` by
        /// the output function of the one type and the input function of the other.
        method: u8 = castmethod,
    }
}

describe_catalog! {
    /// Languages of functions (`catalog/pg_language.h`).
    PG_LANGUAGE = "pg_language", 2612;
    index "pg_language_oid_index", 2682;
    columns {
        oid: Oid,
        lanname: Name,
        lanowner: Oid,
        lanispl: Bool,
        lanpltrusted: Bool,
        lanplcallfoid: Oid,
        laninline: Oid,
        lanvalidator: Oid,
        lanacl: AclItemArray,
    }
    /// A row of `pg_language`.
    row LanguageRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = lanname,
    }
}
