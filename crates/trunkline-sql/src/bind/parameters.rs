//! Parameters of a prepared statement, and the types that they get from their context.
//!
//! A parameter whose type the client didn't declare takes the type that its first use needs: in
//! `a = $1` it is that of `a`. If nothing determines the type, the statement is refused.

use trunkline_format::Oid;

use crate::catalog::oids;
use crate::error::{SqlError, SqlState};

/// `$1` to `$n`.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    /// The types so far; 0 if unknown.
    types: Vec<Oid>,
    /// Whether a statement may have parameters at all.
    allowed: bool,
}

/// The largest number of a parameter that a client can send.
const NUMBER_MAX: usize = 65_535;

impl Parameters {
    /// Parameters of these types, of which 0 is unknown. More parameters can follow.
    pub(super) fn declared(types: &[Oid]) -> Self {
        Self { types: types.to_vec(), allowed: true }
    }

    /// The type of a parameter that is used at `location`: [`oids::UNKNOWN`] if it isn't known yet.
    pub(super) fn find(&mut self, number: u32, location: u32) -> Result<Oid, SqlError> {
        let at = (number as usize).checked_sub(1).filter(|&at| self.allowed && at < NUMBER_MAX);
        let Some(at) = at else {
            let message = format!("there is no parameter ${number}");
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message).at(location));
        };
        if at >= self.types.len() {
            self.types.resize(at + 1, oids::NONE);
        }
        let found = self.types.get(at).copied().unwrap_or_default();
        Ok(if found == oids::NONE { oids::UNKNOWN } else { found })
    }

    /// Fixes the type of a parameter whose type isn't known. `false`: it has another type.
    pub(super) fn infer(&mut self, number: u32, oid: Oid) -> bool {
        let slot = (number as usize).checked_sub(1).and_then(|at| self.types.get_mut(at));
        let Some(slot) = slot else { return false };
        if *slot == oids::NONE || *slot == oids::UNKNOWN {
            *slot = oid;
        }
        *slot == oid
    }

    /// The types of all parameters.
    ///
    /// # Errors
    /// 42P18: the type of a parameter is not known.
    pub(super) fn finish(self) -> Result<Vec<Oid>, SqlError> {
        let unknown = |oid: &Oid| *oid == oids::NONE || *oid == oids::UNKNOWN;
        match self.types.iter().position(unknown) {
            None => Ok(self.types),
            Some(at) => {
                let message = format!("could not determine data type of parameter ${}", at + 1);
                Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message))
            }
        }
    }
}
