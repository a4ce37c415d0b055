//! `xml` output: the stored text, but without the encoding in its XML declaration.
//!
//! If a value starts with a declaration such as `<?xml version="1.0" encoding="UTF-8"?>`, the
//! server doesn't print it as it is stored. It removes the declaration, and prints a new one only
//! if the version isn't 1.0 or if `standalone` is set. If the server can't parse the declaration,
//! it prints the value unchanged.
//!
//! Mirrors `xml_out` of PostgreSQL's `utils/adt/xml.c`.

/// A parsed XML declaration.
struct Declaration<'a> {
    version: Option<&'a [u8]>,
    standalone: Option<bool>,
    /// The text after the declaration.
    rest: &'a [u8],
}

/// XML white space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Skips leading white space.
fn skip(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_space(byte)).count();
    text.get(blanks..).unwrap_or_default()
}

/// Parses `name = "value"`, and returns the value and the rest of the text. Returns `Ok(None)` if
/// the next attribute has a different name.
fn attribute<'a>(text: &'a [u8], name: &[u8]) -> Option<Option<(&'a [u8], &'a [u8])>> {
    let Some(behind) = skip(text).strip_prefix(name) else { return Some(None) };
    if !text.first().copied().is_some_and(is_space) {
        return None;
    }
    let value = skip(skip(behind).strip_prefix(b"=")?);
    let (&quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'\'' | b'"'))?;
    let end = value.iter().position(|&byte| byte == quote)?;
    let (value, behind) = value.split_at_checked(end)?;
    Some(Some((value, behind.get(1..)?)))
}

/// Parses the declaration at the start of `text`. `None` if it is malformed.
fn declaration(text: &[u8]) -> Option<Declaration<'_>> {
    let none = Declaration { version: None, standalone: None, rest: text };
    let Some(behind) = text.strip_prefix(b"<?xml") else { return Some(none) };
    // A different processing instruction, such as <?xml-stylesheet …?>.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_:-.".contains(&byte) || byte > 127;
    if behind.first().copied().is_some_and(is_name) {
        return Some(none);
    }
    let (version, mut behind) = attribute(behind, b"version")??;
    if let Some((_, next)) = attribute(behind, b"encoding")? {
        behind = next;
    }
    let mut standalone = None;
    if let Some((value, next)) = attribute(behind, b"standalone")? {
        standalone = Some(match value {
            b"yes" => true,
            b"no" => false,
            _ => return None,
        });
        behind = next;
    }
    let rest = skip(behind).strip_prefix(b"?>")?;
    let declared = text.len() - rest.len();
    let ascii = text.get(..declared)?.is_ascii();
    ascii.then_some(Declaration { version: Some(version), standalone, rest })
}

/// An `xml` value, as `xml_out` shows it.
pub(crate) fn xml(text: &[u8], out: &mut Vec<u8>) {
    let Some(declaration) = declaration(text) else { return out.extend_from_slice(text) };
    let version = declaration.version.filter(|&version| version != b"1.0");
    let mut rest = declaration.rest;
    if version.is_some() || declaration.standalone.is_some() {
        out.extend_from_slice(b"<?xml version=\"");
        out.extend_from_slice(version.unwrap_or(b"1.0"));
        out.push(b'"');
        if let Some(standalone) = declaration.standalone {
            let yes = if standalone { "yes" } else { "no" };
            out.extend_from_slice(format!(" standalone=\"{yes}\"").as_bytes());
        }
        out.extend_from_slice(b"?>");
    } else {
        // We have not printed a declaration, so if we printed the newline after it, the output
        // would start with an empty line.
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    out.extend_from_slice(rest);
}
