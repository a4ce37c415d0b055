//! Words for the columns of a catalog: how wide a kind is, how it is aligned, which versions have it.
//!
//! A catalog then reads like its declaration:
//! ```text
//!   word("oid"), name("relname"), varying8("relacl").since(V16), varying("relacl").until(V15)
//! ```

use super::layout::CatalogColumn;
use crate::align::Align;
use crate::control::PgVersion::{self, V15, V19};

/// The size of a name, padded with zeros.
pub const NAME_SIZE: usize = 64;

const fn column(name: &'static str, len: i16, align: Align, fixed: bool) -> CatalogColumn {
    CatalogColumn { name, len, align, fixed, since: V15, until: V19 }
}

/// `oid`, `int4`, `float4`, `xid`, `regproc`.
pub(super) const fn word(name: &'static str) -> CatalogColumn {
    column(name, 4, Align::Int, true)
}

pub(super) const fn short(name: &'static str) -> CatalogColumn {
    column(name, 2, Align::Short, true)
}

/// `bool`, `"char"`.
pub(super) const fn byte(name: &'static str) -> CatalogColumn {
    column(name, 1, Align::Char, true)
}

/// `int8`, `timestamptz`.
pub(super) const fn double(name: &'static str) -> CatalogColumn {
    column(name, 8, Align::Double, true)
}

pub(super) const fn name(name: &'static str) -> CatalogColumn {
    column(name, NAME_SIZE as i16, Align::Char, true)
}

pub(super) const fn varying(name: &'static str) -> CatalogColumn {
    column(name, -1, Align::Int, false)
}

/// `aclitem[]` from 16, `anyarray`.
pub(super) const fn varying8(name: &'static str) -> CatalogColumn {
    column(name, -1, Align::Double, false)
}

impl CatalogColumn {
    pub(super) const fn nullable(self) -> Self {
        Self { fixed: false, ..self }
    }

    pub(super) const fn since(self, since: PgVersion) -> Self {
        Self { since, ..self }
    }

    pub(super) const fn until(self, until: PgVersion) -> Self {
        Self { until, ..self }
    }
}
