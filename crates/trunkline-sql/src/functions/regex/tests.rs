//! Compares the results of regular expressions with those of a server.

use crate::functions::cases::check;

#[test]
fn matches_and_groups_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/regex.txt")) > 4000);
}

#[test]
fn regexp_functions_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/regexp.txt")) > 1000);
}

#[test]
fn patterns_of_similar_to_are_those_of_the_server() {
    assert!(check(include_str!("../../../testdata/similar.txt")) > 150);
}
