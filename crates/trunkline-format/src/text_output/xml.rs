//! `xml`: stored as it was written, shown without the encoding that its declaration names.
//!
//! The server reads the declaration `<?xml version="1.0" encoding="UTF-8"?>`, and writes a new one
//! only if there is something to say: another version than 1.0, or `standalone`. Text that is no
//! well-formed declaration is shown as it is.
//!
//! Mirrors `xml_out` of PostgreSQL's `utils/adt/xml.c`.

/// What a declaration says.
struct Declaration<'a> {
    version: Option<&'a [u8]>,
    standalone: Option<bool>,
    /// What follows it.
    rest: &'a [u8],
}

/// A blank of XML.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What follows the blanks at the beginning.
fn skip(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_space(byte)).count();
    text.get(blanks..).unwrap_or_default()
}

/// The quoted value behind `name =` and what follows it. `Ok(None)` if `name` is not next.
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

/// The declaration that `text` begins with; `None` if it is broken.
fn declaration(text: &[u8]) -> Option<Declaration<'_>> {
    let none = Declaration { version: None, standalone: None, rest: text };
    let Some(behind) = text.strip_prefix(b"<?xml") else { return Some(none) };
    // Another instruction, as <?xml-stylesheet …?>.
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
pub(super) fn xml(text: &[u8], out: &mut Vec<u8>) {
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
        // Without a declaration its line would be empty.
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    out.extend_from_slice(rest);
}
