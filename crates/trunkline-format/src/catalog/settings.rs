//! `setconfig` of `pg_db_role_setting`: a text array with elements such as `TimeZone=Asia/Tokyo`.
//!
//! Only the first `=` separates the name from the value. The value may contain others.

use super::stored_array::array_texts;

/// The names and values in an array's payload. `None` unless it is a text array without nulls.
pub fn settings_of(array: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let split = |text: &'_ [u8]| text.iter().position(|&byte| byte == b'=');
    array_texts(array)?
        .into_iter()
        .map(|text| {
            let at = split(text)?;
            Some((text.get(..at)?, text.get(at + 1..)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(count: u32, texts: &[&str]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [1, 0, 25, count, 1_u32].iter().flat_map(|number| number.to_le_bytes()).collect();
        for text in texts {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend((((text.len() + 4) << 2) as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    #[test]
    fn settings_are_split_at_the_first_equals_sign() {
        let bytes = array(3, &["TimeZone=Asia/Tokyo", "a=", "b=c=d"]);
        let expected: [(&[u8], &[u8]); 3] =
            [(b"TimeZone", b"Asia/Tokyo"), (b"a", b""), (b"b", b"c=d")];
        assert_eq!(settings_of(&bytes).as_deref(), Some(&expected[..]));
        assert_eq!(settings_of(&[0; 12]), Some(Vec::new()));
        // A truncated array, a wrong count, or a text without `=` yields `None`, never partial
        // settings.
        for length in 0..bytes.len() {
            assert_eq!(settings_of(&bytes[..length]), None, "{length}");
        }
        for wrong in [array(2, &["a=b"]), array(u32::MAX, &["a=b"]), array(1, &["a"])] {
            assert_eq!(settings_of(&wrong), None);
        }
    }
}
