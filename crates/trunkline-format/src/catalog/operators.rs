//! Catalogs of operators, and of the operator families that say what an index does with them.
//!
//! A family groups operators on related types that agree with each other, such as the comparisons of
//! `int2`, `int4` and `int8`. In a family, an operator's meaning is its strategy number: 1 to 5 are
//! `<`, `<=`, `=`, `>=` and `>` for B-trees. [`super::PG_OPCLASS`] describes operator classes.

use super::describe::describe_catalog;
use crate::ids::Oid;

describe_catalog! {
    /// Operators (`catalog/pg_operator.h`).
    PG_OPERATOR = "pg_operator", 2617;
    index "pg_operator_oid_index", 2688;
    columns {
        oid: Oid,
        oprname: Name,
        oprnamespace: Oid,
        oprowner: Oid,
        oprkind: Char,
        oprcanmerge: Bool,
        oprcanhash: Bool,
        oprleft: Oid,
        oprright: Oid,
        oprresult: Oid,
        oprcom: Oid,
        oprnegate: Oid,
        oprcode: Regproc,
        oprrest: Regproc,
        oprjoin: Regproc,
    }    /// A row of `pg_operator`.
    row OperatorRow {
        /// Its OID.
        oid: Oid = oid,
        /// Its name.
        name: Box<[u8]> = oprname,
        /// The OID of its schema.
        schema: Oid = oprnamespace,
        /// `oprkind`: `b` infix, `l` prefix.
        kind: u8 = oprkind,
        /// `oprcanmerge`: whether it can be the condition of a merge join.
        can_merge: bool = oprcanmerge,
        /// `oprcanhash`: whether it can be the condition of a hash join.
        can_hash: bool = oprcanhash,
        /// The type of its left operand; 0 for a prefix operator.
        left: Oid = oprleft,
        /// The type of its right operand.
        right: Oid = oprright,
        /// The type of its result; 0 if it is declared but not yet defined.
        result: Oid = oprresult,
        /// `oprcom`: its commutator, such as `<` for `>`; 0 if it has none.
        commutator: Oid = oprcom,
        /// `oprnegate`: its negator, such as `<>` for `=`; 0 if it has none.
        negator: Oid = oprnegate,
        /// `oprcode`: the function that computes it; 0 if it is declared but not yet defined.
        function: Oid = oprcode,
    }
}

describe_catalog! {
    /// Operator families (`catalog/pg_opfamily.h`).
    PG_OPFAMILY = "pg_opfamily", 2753;
    index "pg_opfamily_oid_index", 2755;
    columns {
        oid: Oid,
        opfmethod: Oid,
        opfname: Name,
        opfnamespace: Oid,
        opfowner: Oid,
    }
    /// A row of `pg_opfamily`.
    row OperatorFamilyRow {
        /// Its OID.
        oid: Oid = oid,
        /// The OID of its access method.
        method: Oid = opfmethod,
        /// Its name.
        name: Box<[u8]> = opfname,
        /// The OID of its schema.
        schema: Oid = opfnamespace,
    }
}

describe_catalog! {
    /// Operators of families (`catalog/pg_amop.h`).
    PG_AMOP = "pg_amop", 2602;
    index "pg_amop_oid_index", 2756;
    columns {
        oid: Oid,
        amopfamily: Oid,
        amoplefttype: Oid,
        amoprighttype: Oid,
        amopstrategy: Int2,
        amoppurpose: Char,
        amopopr: Oid,
        amopmethod: Oid,
        amopsortfamily: Oid,
    }
    /// A row of `pg_amop`.
    row FamilyOperatorRow {
        /// The OID of the family.
        family: Oid = amopfamily,
        /// The type of the left operand.
        left: Oid = amoplefttype,
        /// The type of the right operand.
        right: Oid = amoprighttype,
        /// What the operator means to the access method.
        strategy: i16 = amopstrategy,
        /// `amoppurpose`: `s` search, `o` ordering by distance.
        purpose: u8 = amoppurpose,
        /// The OID of the operator.
        operator: Oid = amopopr,
        /// The OID of the family's access method.
        method: Oid = amopmethod,
    }
}

describe_catalog! {
    /// Support functions of families (`catalog/pg_amproc.h`).
    PG_AMPROC = "pg_amproc", 2603;
    index "pg_amproc_oid_index", 2757;
    columns {
        oid: Oid,
        amprocfamily: Oid,
        amproclefttype: Oid,
        amprocrighttype: Oid,
        amprocnum: Int2,
        amproc: Regproc,
    }
    /// A row of `pg_amproc`.
    row FamilyFunctionRow {
        /// The OID of the family.
        family: Oid = amprocfamily,
        /// The type of the left operand.
        left: Oid = amproclefttype,
        /// The type of the right operand.
        right: Oid = amprocrighttype,
        /// What the function does for the access method; 1 compares two values of a B-tree, and 1
        /// hashes a value.
        number: i16 = amprocnum,
        /// The OID of the function.
        function: Oid = amproc,
    }
}
