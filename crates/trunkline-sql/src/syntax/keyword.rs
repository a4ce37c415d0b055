//! **Keywords** of PostgreSQL 18, with their categories. The category decides where a word may be a name:
//! `select left('abc', 1)` works because LEFT is a [`Category::TypeOrFunctionName`], and for the same
//! reason `select left` doesn't.

/// Where a keyword may be used as a name without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// Everywhere.
    Unreserved,
    /// As a column, table or type of its own schema, but not as a function.
    ColumnName,
    /// As a function or type, but not as a column or table.
    TypeOrFunctionName,
    /// Only as a label after AS.
    Reserved,
}

/// A keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keyword {
    /// The word in lower case.
    pub(super) word: &'static str,
    /// Where it may be a name.
    pub(super) category: Category,
    /// It may be the label of a result column without AS.
    pub(super) bare_label: bool,
}

/// The keyword that `word` is, if any. `word` is in lower case.
pub(super) fn keyword(word: &str) -> Option<Keyword> {
    GROUPS.iter().find_map(|group| {
        let index = group.words.binary_search(&word).ok()?;
        let (category, bare_label) = (group.category, group.bare_label);
        Some(Keyword { word: group.words.get(index)?, category, bare_label })
    })
}

/// Keywords of the same category.
struct Group {
    category: Category,
    bare_label: bool,
    /// Sorted.
    words: &'static [&'static str],
}

macro_rules! groups {
    ($($category:ident $bare_label:literal: $($word:literal)*;)*) => {
        const GROUPS: &[Group] = &[$(Group {
            category: Category::$category,
            bare_label: $bare_label,
            words: &[$($word),*],
        }),*];
    };
}

// What pg_get_keywords() of PostgreSQL 18 returns, in the order of the bytes.
groups! {
    Unreserved true:
        "abort" "absent" "absolute" "access" "action" "add" "admin" "after" "aggregate"
        "also" "alter" "always" "asensitive" "assertion" "assignment" "at" "atomic" "attach"
        "attribute" "backward" "before" "begin" "breadth" "by" "cache" "call" "called"
        "cascade" "cascaded" "catalog" "chain" "characteristics" "checkpoint" "class"
        "close" "cluster" "columns" "comment" "comments" "commit" "committed" "compression"
        "conditional" "configuration" "conflict" "connection" "constraints" "content"
        "continue" "conversion" "copy" "cost" "csv" "cube" "current" "cursor" "cycle" "data"
        "database" "deallocate" "declare" "defaults" "deferred" "definer" "delete"
        "delimiter" "delimiters" "depends" "depth" "detach" "dictionary" "disable" "discard"
        "document" "domain" "double" "drop" "each" "empty" "enable" "encoding" "encrypted"
        "enforced" "enum" "error" "escape" "event" "exclude" "excluding" "exclusive"
        "execute" "explain" "expression" "extension" "external" "family" "finalize" "first"
        "following" "force" "format" "forward" "function" "functions" "generated" "global"
        "granted" "groups" "handler" "header" "hold" "identity" "if" "immediate" "immutable"
        "implicit" "import" "include" "including" "increment" "indent" "index" "indexes"
        "inherit" "inherits" "inline" "input" "insensitive" "insert" "instead" "invoker"
        "isolation" "keep" "key" "keys" "label" "language" "large" "last" "leakproof"
        "level" "listen" "load" "local" "location" "lock" "locked" "logged" "mapping"
        "match" "matched" "materialized" "maxvalue" "merge" "method" "minvalue" "mode"
        "move" "name" "names" "nested" "new" "next" "nfc" "nfd" "nfkc" "nfkd" "no"
        "normalized" "nothing" "notify" "nowait" "nulls" "object" "objects" "of" "off"
        "oids" "old" "omit" "operator" "option" "options" "ordinality" "others" "overriding"
        "owned" "owner" "parallel" "parameter" "parser" "partial" "partition" "passing"
        "password" "path" "period" "plan" "plans" "policy" "preceding" "prepare" "prepared"
        "preserve" "prior" "privileges" "procedural" "procedure" "procedures" "program"
        "publication" "quote" "quotes" "range" "read" "reassign" "recursive" "ref"
        "referencing" "refresh" "reindex" "relative" "release" "rename" "repeatable"
        "replace" "replica" "reset" "restart" "restrict" "return" "returns" "revoke" "role"
        "rollback" "rollup" "routine" "routines" "rows" "rule" "savepoint" "scalar" "schema"
        "schemas" "scroll" "search" "security" "sequence" "sequences" "serializable"
        "server" "session" "set" "sets" "share" "show" "simple" "skip" "snapshot" "source"
        "sql" "stable" "standalone" "start" "statement" "statistics" "stdin" "stdout"
        "storage" "stored" "strict" "string" "strip" "subscription" "support" "sysid"
        "system" "tables" "tablespace" "target" "temp" "template" "temporary" "text" "ties"
        "transaction" "transform" "trigger" "truncate" "trusted" "type" "types" "uescape"
        "unbounded" "uncommitted" "unconditional" "unencrypted" "unknown" "unlisten"
        "unlogged" "until" "update" "vacuum" "valid" "validate" "validator" "value"
        "version" "view" "views" "virtual" "volatile" "whitespace" "work" "wrapper" "write"
        "xml" "yes" "zone";
    Unreserved false:
        "day" "filter" "hour" "minute" "month" "over" "second" "varying" "within" "without"
        "year";
    ColumnName true:
        "between" "bigint" "bit" "boolean" "coalesce" "dec" "decimal" "exists" "extract"
        "float" "greatest" "grouping" "inout" "int" "integer" "interval" "json" "json_array"
        "json_arrayagg" "json_exists" "json_object" "json_objectagg" "json_query"
        "json_scalar" "json_serialize" "json_table" "json_value" "least" "merge_action"
        "national" "nchar" "none" "normalize" "nullif" "numeric" "out" "overlay" "position"
        "real" "row" "setof" "smallint" "substring" "time" "timestamp" "treat" "trim"
        "values" "varchar" "xmlattributes" "xmlconcat" "xmlelement" "xmlexists" "xmlforest"
        "xmlnamespaces" "xmlparse" "xmlpi" "xmlroot" "xmlserialize" "xmltable";
    ColumnName false:
        "char" "character" "precision";
    TypeOrFunctionName true:
        "authorization" "binary" "collation" "concurrently" "cross" "current_schema"
        "freeze" "full" "ilike" "inner" "is" "join" "left" "like" "natural" "outer" "right"
        "similar" "tablesample" "verbose";
    TypeOrFunctionName false:
        "isnull" "notnull" "overlaps";
    Reserved true:
        "all" "analyse" "analyze" "and" "any" "asc" "asymmetric" "both" "case" "cast"
        "check" "collate" "column" "constraint" "current_catalog" "current_date"
        "current_role" "current_time" "current_timestamp" "current_user" "default"
        "deferrable" "desc" "distinct" "do" "else" "end" "false" "foreign" "in" "initially"
        "lateral" "leading" "localtime" "localtimestamp" "not" "null" "only" "or" "placing"
        "primary" "references" "select" "session_user" "some" "symmetric" "system_user"
        "table" "then" "trailing" "true" "unique" "user" "using" "variadic" "when";
    Reserved false:
        "array" "as" "create" "except" "fetch" "for" "from" "grant" "group" "having"
        "intersect" "into" "limit" "offset" "on" "order" "returning" "to" "union" "where"
        "window" "with";
}

#[cfg(test)]
mod tests {
    use super::{Category, GROUPS, keyword};

    #[test]
    fn every_group_is_sorted() {
        for group in GROUPS {
            assert!(group.words.is_sorted(), "{:?}", group.category);
            assert!(group.words.iter().all(|word| keyword(word).is_some()));
        }
        assert_eq!(GROUPS.iter().map(|group| group.words.len()).sum::<usize>(), 494);
    }

    #[test]
    fn a_keyword_has_its_category() {
        assert_eq!(keyword("select").map(|found| found.category), Some(Category::Reserved));
        assert_eq!(keyword("left").map(|found| found.category), Some(Category::TypeOrFunctionName));
        assert_eq!(keyword("isnull").map(|found| found.bare_label), Some(false));
        assert_eq!(keyword("tabular"), None);
    }
}
