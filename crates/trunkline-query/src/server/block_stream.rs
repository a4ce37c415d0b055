//! `read_stream_for_blocks(rel, blocks)`: reads blocks in the order given, through one read stream.

use arrow_array::ArrayRef;
use trunkline_engine::read_stream::{BlockList, ReadStream, StreamOptions};
use trunkline_format::Align;
use trunkline_format::deform::Attribute;
use trunkline_sql::functions::{Argument, ArrayView};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::row_builder::{RowBuilder, Value};
use super::view::{ServerView, array, blocking, oid};
use crate::scan::{read_error, storage_error};

impl ServerView {
    /// A row for each block: its place in the array, its number, and the buffer it is in.
    pub(super) fn stream_blocks(
        &self,
        arguments: &[Argument],
        row: usize,
    ) -> Result<Vec<ArrayRef>, SqlError> {
        let (Some(oid), Some(blocks)) = (oid(arguments, 0, row), array(arguments, 1, row)) else {
            return Ok(Vec::new());
        };
        let blocks = block_numbers(blocks)?;
        blocking(|| self.streamed(oid, blocks))
    }

    fn streamed(&self, oid: u32, blocks: Vec<u32>) -> Result<Vec<ArrayRef>, SqlError> {
        let relation = self.relation(oid)?;
        let files = self.database.files(relation).ok_or_else(|| self.no_storage(relation))?;
        let end = files.blocks().map_err(|error| storage_error(&error))?;
        if let Some(block) = blocks.iter().find(|&&block| block >= end) {
            let message = format!("block {block} is out of range: the relation has {end} blocks");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let mut rows = RowBuilder::new(&[Carrier::Int32; 3]);
        let mut session = self.session()?;
        let options = StreamOptions::of(&self.io);
        let source = BlockList::new(blocks);
        let mut stream = ReadStream::new(&session, &files, source, options);
        let mut place = 0;
        while let Some(page) = stream.next(&mut session).map_err(|error| read_error(&error))? {
            let (block, buffer) = (page.block, page.pin.buffer() + 1);
            let block = Value::Int4(block.cast_signed());
            rows.push(&[Value::Int4(place), block, Value::Int4(buffer.cast_signed())])?;
            place += 1;
        }
        self.pages.add(&stream.buffer_usage());
        Ok(rows.finish())
    }
}

/// The elements of an `int4[]` as block numbers.
fn block_numbers(payload: &[u8]) -> Result<Vec<u32>, SqlError> {
    let error = |message: &str| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let view = ArrayView::parse(payload)?;
    // The length and alignment of int4.
    let elements = view.elements(Attribute { len: 4, align: Align::Int })?;
    (elements.into_iter())
        .map(|element| {
            let element = element.ok_or_else(|| error("a block number cannot be null"))?;
            let number = element.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
            let number = number.and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| error("a block number cannot be negative"))
        })
        .collect()
}
