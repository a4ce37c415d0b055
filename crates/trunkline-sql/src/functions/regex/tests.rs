//! Compares the results of regular expressions with those of a server.

use super::Flags;
use super::matcher::Regex;
use crate::functions::cases::check;
use crate::functions::collation::Collation;

#[test]
fn many_groups_are_refused_before_they_exhaust_the_stack() {
    let compile = |pattern: &str| Regex::new(pattern, Flags::NONE, Collation::C);
    let text = "a".repeat(200);
    let found = compile(&"(a)".repeat(200)).unwrap().captures(&text, 0).unwrap();
    assert_eq!(found.unwrap().last(), Some(&Some(199..200)));
    for pattern in ["(a)".repeat(10_000), "(".repeat(10_000) + &")".repeat(10_000)] {
        assert_eq!(compile(&pattern).unwrap_err().code().as_str(), "0A000");
    }
}

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
