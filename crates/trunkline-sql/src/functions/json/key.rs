//! **Keys of `jsonb`**: bytes that compare as `compareJsonbContainers` compares the values.
//!
//! ```text
//!   container   rank, number of entries, whether it is no bare value, then the entries in order
//!   entry       its key, if any; then rank and value
//! ```
//!
//! Each part ends by itself, so that the first byte that differs is in the first part that does. For
//! example, `1.0` and `1.00` have the same key. Strings are in the order of their bytes.

use trunkline_format::text_output::{Base, Type};

use super::container::{Container, Kind};
use crate::error::SqlError;
use crate::values::{OrderKey, append_escaped};

/// A container whose entries remain to be written.
struct Open<'a> {
    container: Container<'a>,
    at: usize,
}

/// Appends the key of a stored `jsonb`.
///
/// # Errors
/// XX001: the value is damaged.
pub fn append_jsonb_key(payload: &[u8], key: &mut Vec<u8>) -> Result<(), SqlError> {
    let mut open = vec![begin(Container::parse(payload)?, key)];
    let numeric = OrderKey::of(&Type::Base(Base::Numeric));
    let numeric = numeric.ok_or_else(|| SqlError::internal("numeric has an order"))?;
    while let Some(current) = open.last_mut() {
        let at = current.at;
        current.at += 1;
        let Some(value) = current.container.values.get(at).copied() else {
            open.pop();
            continue;
        };
        if let Some(name) = current.container.keys.get(at) {
            append_escaped(name, key);
        }
        match value.kind {
            Kind::Null => key.push(0),
            Kind::String => {
                key.push(1);
                append_escaped(value.bytes, key);
            }
            Kind::Number => {
                key.push(2);
                numeric.append(value.number()?, key)?;
            }
            Kind::False => key.extend([3, 0]),
            Kind::True => key.extend([3, 1]),
            Kind::Container => {
                let inner = value.container()?;
                let inner = inner.ok_or_else(|| SqlError::internal("a container"))?;
                open.push(begin(inner, key));
            }
        }
    }
    Ok(())
}

fn begin<'a>(container: Container<'a>, key: &mut Vec<u8>) -> Open<'a> {
    key.push(if container.is_object { 5 } else { 4 });
    // A container has fewer than 2^28 entries.
    key.extend((container.values.len() as u32).to_be_bytes());
    key.push(u8::from(!container.is_scalar));
    Open { container, at: 0 }
}
