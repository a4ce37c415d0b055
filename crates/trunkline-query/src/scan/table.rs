//! A table as DataFusion sees it: a provider of scans.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, Statistics, ToDFSchema};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::access::TableAccess;
use super::columns::ScanColumns;
use super::exec::ScanExec;
use crate::error::to_datafusion;

/// A table with the columns that a statement uses.
#[derive(Debug)]
pub(crate) struct ScanTable {
    access: TableAccess,
    columns: ScanColumns,
    schema: SchemaRef,
}

impl ScanTable {
    /// The columns have these names in plans.
    pub(crate) fn new(access: TableAccess, columns: ScanColumns, names: &[String]) -> Self {
        let fields = names.iter().zip(&columns.decoded);
        // Nothing is declared NOT NULL, because rows of outer joins pass through the same schema.
        let fields =
            fields.map(|(name, column)| Field::new(name, column.carrier.data_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { access, columns, schema }
    }
}

#[async_trait::async_trait]
impl TableProvider for ScanTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.access.statistics(&self.schema))
    }

    /// All filters are evaluated by the scan. Those with volatile functions aren't offered.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.access.cancellation.check().map_err(to_datafusion)?;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all).clone();
        // A filter's columns are decoded even if nothing else needs them. Columns of the result come
        // first.
        let mut decoded = projection.clone();
        for column in filters.iter().flat_map(Expr::column_refs) {
            let place = self.schema.index_of(&column.name)?;
            if !decoded.contains(&place) {
                decoded.push(place);
            }
        }
        let schema = Arc::new(self.schema.project(&decoded)?);
        let by_name = schema.as_ref().clone().to_dfschema()?;
        let filters =
            filters.iter().map(|filter| state.create_physical_expr(filter.clone(), &by_name));
        let filters = filters.collect::<Result<Vec<_>>>()?;
        let columns = self.columns.select(&decoded);
        let most = self.access.partitions_max();
        let partitions = state.config().target_partitions().min(most);
        let scan = ScanExec::new(
            self.access.clone(),
            columns,
            schema,
            projection.len(),
            filters,
            limit,
            partitions,
        )?;
        Ok(Arc::new(scan))
    }
}
