//! Hash tables whose order depends on their content alone.
//!
//! std seeds its hasher differently in every process, which would make a seeded run differ from
//! itself. Keys here are file ids and device numbers, not input of an attacker.

use std::hash::{BuildHasherDefault, DefaultHasher};

/// A hash map with a fixed seed.
#[expect(clippy::disallowed_types, reason = "the façade's own map, with a fixed seed")]
pub type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A hash set with a fixed seed.
#[expect(clippy::disallowed_types, reason = "the façade's own set, with a fixed seed")]
pub type Set<K> = std::collections::HashSet<K, BuildHasherDefault<DefaultHasher>>;
