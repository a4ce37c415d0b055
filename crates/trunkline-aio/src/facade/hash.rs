//! Hash tables with a fixed seed, so that their iteration order depends only on their contents.
//!
//! std's hasher has a random seed in every process, so two runs with the same scheduler seed would
//! differ. std uses a random seed to protect against hash flooding. We don't need that protection,
//! because our keys are file ids and device numbers, which an attacker can't choose.

use std::hash::{BuildHasherDefault, DefaultHasher};

/// A hash map with a fixed seed.
#[expect(clippy::disallowed_types, reason = "the façade's own map, with a fixed seed")]
pub type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A hash set with a fixed seed.
#[expect(clippy::disallowed_types, reason = "the façade's own set, with a fixed seed")]
pub type Set<K> = std::collections::HashSet<K, BuildHasherDefault<DefaultHasher>>;
