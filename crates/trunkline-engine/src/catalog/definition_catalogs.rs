//! **The catalogs that define and describe objects**: constraints, partitioning, comments,
//! roles.
//!
//! They are what `pg_get_constraintdef` and `obj_description` need. Like the catalogs of
//! expressions, they are loaded together on the first query and then kept. Values of theirs that were
//! compressed or stored out of line are kept as plain payloads.

use trunkline_format::catalog::{
    ColumnDefaultRow, ConstraintRow, ConversionRow, DescriptionRow, ExtensionRow,
    ForeignDataWrapperRow, ForeignServerRow, IndexExpressionsRow, PartitionBoundRow,
    PartitionedTableRow, RoleRow, SharedDescriptionRow, StatisticsRow, TextSearchConfigRow,
    TextSearchDictionaryRow, TextSearchParserRow, TextSearchTemplateRow,
};

/// The rows of these catalogs, in no particular order. Where a row type says that a field is a stored
/// datum, it is the payload here.
#[derive(Debug)]
pub struct DefinitionCatalogs {
    /// `pg_authid`.
    pub roles: Vec<RoleRow>,
    /// `pg_constraint`.
    pub constraints: Vec<ConstraintRow>,
    /// `pg_partitioned_table`.
    pub partitioned_tables: Vec<PartitionedTableRow>,
    /// `pg_class.relpartbound` and `reloptions`, of relations that have any.
    pub partition_bounds: Vec<PartitionBoundRow>,
    /// `pg_statistic_ext`.
    pub statistics: Vec<StatisticsRow>,
    /// `pg_attrdef`.
    pub column_defaults: Vec<ColumnDefaultRow>,
    /// The expressions of `pg_index`, of indexes that have any.
    pub index_expressions: Vec<IndexExpressionsRow>,
    /// `pg_description`.
    pub descriptions: Vec<DescriptionRow>,
    /// `pg_shdescription`.
    pub shared_descriptions: Vec<SharedDescriptionRow>,
    /// `pg_conversion`.
    pub conversions: Vec<ConversionRow>,
    /// `pg_ts_parser`.
    pub text_search_parsers: Vec<TextSearchParserRow>,
    /// `pg_ts_template`.
    pub text_search_templates: Vec<TextSearchTemplateRow>,
    /// `pg_ts_config`.
    pub text_search_configs: Vec<TextSearchConfigRow>,
    /// `pg_ts_dict`.
    pub text_search_dictionaries: Vec<TextSearchDictionaryRow>,
    /// `pg_extension`.
    pub extensions: Vec<ExtensionRow>,
    /// `pg_foreign_data_wrapper`.
    pub foreign_data_wrappers: Vec<ForeignDataWrapperRow>,
    /// `pg_foreign_server`.
    pub foreign_servers: Vec<ForeignServerRow>,
}
