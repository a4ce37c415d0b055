//! Compares the results of functions of arrays with those of a server.

use crate::functions::cases::check;

#[test]
fn functions_of_arrays_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/array.txt")) > 2000);
}
