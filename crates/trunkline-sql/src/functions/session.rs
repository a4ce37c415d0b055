//! The user, the database and the connection of a session: `current_user`, `current_schema`,
//! `inet_client_addr`.
//!
//! The user can't change: there is neither `SET ROLE` nor `SECURITY DEFINER`. Without a connection over
//! TCP, there are no addresses, and their functions are null.

use std::net::{IpAddr, SocketAddr};

use arrow_array::ArrayRef;

use super::call::{Call, Kernel};
use super::rows::{Output, each_row};
use crate::catalog::SessionCatalog;
use crate::error::SqlError;

/// `PGSQL_AF_INET` and `PGSQL_AF_INET6`.
const FAMILIES: [u8; 2] = [2, 3];

/// The kernels of this module.
pub(super) const SESSION: &[(&str, Kernel)] = &[
    ("current_user", |call| same(call, |session| Some(session.user.clone()))),
    ("session_user", |call| same(call, |session| Some(session.user.clone()))),
    ("current_database", |call| {
        same(call, |session| {
            let catalog = &session.catalog;
            Some(catalog.encoding().decode(&catalog.database().info().name))
        })
    }),
    ("current_schema", |call| {
        same(call, |session| {
            let catalog = &session.catalog;
            let schema = catalog.database().schema(*session.path.listed().first()?)?;
            Some(catalog.encoding().decode(&schema.name))
        })
    }),
    ("inet_client_addr", |call| {
        same(call, |session| session.addresses.map(|addresses| stored_address(addresses.client)))
    }),
    ("inet_client_port", |call| {
        same(call, |session| session.addresses.map(|addresses| port(addresses.client)))
    }),
    ("inet_server_addr", |call| {
        same(call, |session| session.addresses.map(|addresses| stored_address(addresses.server)))
    }),
    ("inet_server_port", |call| {
        same(call, |session| session.addresses.map(|addresses| port(addresses.server)))
    }),
];

/// The same value in all rows.
fn same<R: Output + Clone>(
    call: &Call<'_>,
    value: impl Fn(&SessionCatalog) -> Option<R>,
) -> Result<ArrayRef, SqlError> {
    let value = value(call.settings.session()?);
    each_row(call.rows, |_| Ok(value.clone()))
}

fn port(address: SocketAddr) -> i32 {
    address.port().into()
}

/// An address as `inet` is stored. One of IPv4 that arrived at a socket for both is shown as such.
pub fn stored_address(address: SocketAddr) -> Vec<u8> {
    let [v4, v6] = FAMILIES;
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => [&[v4, 32][..], &ip.octets()].concat(),
        IpAddr::V6(ip) => [&[v6, 128][..], &ip.octets()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stored_with_family_and_length() {
        let stored = |text: &str| stored_address(text.parse().expect("an address"));
        assert_eq!(stored("127.0.0.1:5432"), [2, 32, 127, 0, 0, 1]);
        assert_eq!(stored("[::ffff:1.2.3.4]:1"), [2, 32, 1, 2, 3, 4]);
        let mut loopback = vec![3, 128];
        loopback.extend([0; 15]);
        loopback.push(1);
        assert_eq!(stored("[::1]:1"), loopback);
    }
}
