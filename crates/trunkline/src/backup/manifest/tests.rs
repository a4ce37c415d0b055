//! Manifests that are valid, that were changed or cut off, and that lie.

use super::*;

/// As `pg_basebackup` of 15 writes it, with fewer files.
const BODY: &str = r#"{ "PostgreSQL-Backup-Manifest-Version": 1,
"Files": [
{ "Path": "backup_label", "Size": 225, "Last-Modified": "2026-11-29 18:00:00 GMT", "Checksum-Algorithm": "CRC32C", "Checksum": "839206e3" },
{ "Encoded-Path": "67ff", "Size": 0, "Last-Modified": "2026-11-29 18:00:00 GMT" }
],
"WAL-Ranges": [
{ "Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/2000100" }
],
"#;

/// A manifest with a checksum that is right.
fn sealed(body: &str) -> String {
    let checksum = to_hex(&checksum(Algorithm::Sha256, body.as_bytes()));
    format!("{body}\"Manifest-Checksum\": \"{checksum}\"}}\n")
}

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text.as_bytes())
}

#[test]
fn a_manifest_lists_files_and_log() {
    let found = parse(&sealed(BODY)).expect("valid");
    assert_eq!((found.version, found.system_identifier), (1, None));
    let label = &found.files[Path::new("backup_label")];
    let crc = (Algorithm::Crc32c, vec![0x83, 0x92, 0x06, 0xE3]);
    assert_eq!(*label, ManifestFile { size: 225, checksum: Some(crc) });
    let odd: PathBuf = OsString::from_vec(b"g\xff".to_vec()).into();
    assert_eq!(found.files[&odd], ManifestFile { size: 0, checksum: None });
    let range = LogRange { timeline: 1, start: Lsn(0x0200_0028), end: Lsn(0x0200_0100) };
    assert_eq!(found.ranges, [range]);
    let second =
        BODY.replace("Version\": 1,", "Version\": 2,\n\"System-Identifier\": 7123456789012,");
    let second = parse(&sealed(&second)).expect("valid");
    assert_eq!((second.version, second.system_identifier), (2, Some(7_123_456_789_012)));
}

#[test]
fn what_is_changed_or_cut_is_noticed_first() {
    let whole = sealed(BODY);
    // Without its last line feed, the last line would be another one.
    for (at, byte) in whole.bytes().enumerate().take(BODY.len() - 1) {
        let mut bytes = whole.clone().into_bytes();
        bytes[at] = byte ^ 1;
        let error = Manifest::parse(&bytes).expect_err("changed");
        assert!(matches!(error, ManifestError::Checksum { .. }), "{at}: {error}");
    }
    for length in 0..whole.len() {
        let error = Manifest::parse(&whole.as_bytes()[..length]).expect_err("cut");
        assert_eq!(error, ManifestError::Cut, "{length}");
    }
}

#[test]
fn a_manifest_that_lies_is_refused() {
    let duplicate = "{ \"Path\": \"backup_label\", \"Size\": 225 },\n{ \"Path\": \"backup_label\", \"Size\": 1 },\n{ \"Encoded";
    for (from, to, expected) in [
        ("Version\": 1", "Version\": 3", "version 3, expected 1 or 2"),
        ("Version\": 1", "Version\": 2", "version 2 without \"System-Identifier\""),
        ("\"backup_label\"", "\"/etc/passwd\"", "path \"/etc/passwd\" is not a path inside"),
        ("\"backup_label\"", "\"a/../../b\"", "path \"a/../../b\" is not a path inside"),
        ("\"backup_label\"", "\"./a\"", "path \"./a\" is not"),
        ("\"backup_label\"", "\"a//b\"", "path \"a//b\" is not"),
        ("\"backup_label\"", "\"\"", "path \"\" is not"),
        ("\"backup_label\"", "\"a\\u0000\"", "path \"a\\0\" is not"),
        ("\"67ff\"", "\"2e2e2f78\"", "path \"../x\" is not"),
        ("\"67ff\"", "\"67f\"", "file 2: invalid \"Encoded-Path\" \"67f\""),
        ("\"Encoded-Path\": \"67ff\", ", "", "file 2 has neither"),
        ("\"Encoded-Path\"", "\"Path\": \"a\", \"Encoded-Path\"", "file 2 has both"),
        ("{ \"Encoded", duplicate, "path \"backup_label\" is listed twice"),
        ("CRC32C", "MD5", "\"backup_label\" has the checksum algorithm \"MD5\", which is unknown"),
        ("839206e3", "839206", "\"backup_label\" has an invalid checksum: \"839206\""),
        ("\"Size\": 225", "\"Size\": -1", "invalid JSON: "),
        ("\"Size\": 225", "\"Size\": 1, \"Size\": 2", "invalid JSON: duplicate field `Size`"),
        ("\"Files\"", "\"Other\"", "invalid JSON: unknown field `Other`"),
        ("0/2000100", "0/20001x", "invalid position \"0/20001x\""),
        (
            "0/2000100",
            "0/2000000",
            "a WAL range ends at 0/02000000, before its start at 0/02000028",
        ),
    ] {
        let body = BODY.replacen(from, to, 1);
        assert_ne!(body, BODY, "{from}");
        let error = parse(&sealed(&body)).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let at = BODY.find("{ \"Timeline").expect("a range");
    let body = format!("{}],\n", &BODY[..at]);
    assert_eq!(parse(&sealed(&body)), Err(ManifestError::NoRanges));
}
