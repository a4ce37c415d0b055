//! Compares the results of all kernels of text with those of a server.

use crate::functions::cases::check;

#[test]
fn comparisons_of_strings_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/comparison.txt")) > 3000);
}

#[test]
fn patterns_of_like_match_as_in_the_server() {
    assert!(check(include_str!("../../../testdata/like.txt")) > 1000);
}

#[test]
fn functions_of_text_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/text.txt")) > 6000);
}

#[test]
fn functions_of_bytea_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/bytea.txt")) > 1000);
}
