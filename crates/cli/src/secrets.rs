//! Removes the secrets of this process from everything that is shown.
//!
//! Secrets are the values of environment variables such as `ANTHROPIC_API_KEY`. Messages and shown
//! values pass through here. Results and records do not: a result is data for the next program, and
//! a record must stay as it was. The search itself is in `raymond_core::redact`.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use raymond_core::redact::Redactor;
use serde_json::Value;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    // Messages quote foreign text, and a quotation escapes some characters.
    let quoted = |secret: &String| {
        let quoted = format!("{secret:?}");
        quoted[1..quoted.len() - 1].to_owned()
    };
    let forms = from_environment().flat_map(|secret| [quoted(&secret), secret]);
    Redactor::new(forms)
});

/// Returns the text without secrets.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    REDACTOR.redact(text)
}

/// Whether a line of a file may be shown: it is not a piece of a secret, and the file has none.
pub(crate) fn may_show_line(file: &str, line: &str) -> bool {
    /// The lines of secrets that have several, such as keys: a line can be shown without the
    /// others.
    static LINES: LazyLock<Redactor> = LazyLock::new(|| {
        let lines = |secret: String| secret.lines().map(str::to_owned).collect::<Vec<_>>();
        Redactor::new(from_environment().flat_map(lines))
    });
    let is_clean = |redactor: &Redactor, text| matches!(redactor.redact(text), Cow::Borrowed(_));
    is_clean(&REDACTOR, file) && is_clean(&LINES, line) && redacted_line(line) == line
}

/// Returns the value without secrets in its texts and in the names of its fields.
pub(crate) fn redacted_json(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redacted(&text).into_owned()),
        Value::Array(values) => Value::Array(values.into_iter().map(redacted_json).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (redacted(&name).into_owned(), redacted_json(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Returns a line of a transcript without secrets; the rest stays as the client wrote it.
///
/// The line may be JSON. Its string literals are decoded one by one, because an escape could hide a
/// secret. Parsing the whole line would lose duplicate fields and the layout.
pub(crate) fn redacted_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start);
        let (literal, behind) = quoted.split_at(literal_length(quoted));
        shown.push_str(before);
        shown.push_str(&redacted_literal(literal));
        rest = behind;
    }
    // The whole line is redacted once more below, for text outside of literals and for lines that
    // are not JSON.
    shown.push_str(rest);
    redacted(&shown).into_owned()
}

/// Returns the length of the literal that starts with the first quotation mark.
fn literal_length(quoted: &str) -> usize {
    let mut bytes = quoted.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            // The next byte is escaped and cannot end the literal.
            b'\\' => drop(bytes.next()),
            b'"' => return at + 1,
            _ => {}
        }
    }
    quoted.len()
}

fn redacted_literal(literal: &str) -> Cow<'_, str> {
    let Ok(text) = serde_json::from_str::<String>(literal) else {
        return literal.into();
    };
    match redacted(&text) {
        Cow::Borrowed(_) => literal.into(),
        Cow::Owned(shown) => Value::String(shown).to_string().into(),
    }
}

/// Returns the values of variables whose names mark them as secret.
fn from_environment() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, value)| {
        let value = value.into_string().ok()?;
        // The path of a file with a secret is not a secret, and redacting it would hide paths in
        // messages.
        let is_path = value.starts_with('/') && Path::new(&value).exists();
        (names_a_secret(&name.to_string_lossy()) && !is_path).then_some(value)
    })
}

/// Whether the name of a variable marks a secret: `ANTHROPIC_API_KEY` does, `KEYBOARD` does not.
fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "AUTH",
        "APIKEY",
        "PASSPHRASE",
    ];
    // `PGPASSWORD` has no word of its own for it.
    const ENDINGS: [&str; 4] = ["PASSWORD", "PASSWD", "TOKEN", "SECRET"];
    let name = name.to_ascii_uppercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        // Plurals, such as `API_KEYS`.
        let word = word.strip_suffix('S').unwrap_or(word);
        WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variable_name_decides_whether_it_is_secret() {
        let check = |name: &str, expected| assert_eq!(names_a_secret(name), expected, "{name}");
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PASSWD",
            "npm_config__auth",
            "CREDENTIALS",
            "SSH-KEYS",
            "api_key",
            "APIKEY",
        ] {
            check(name, true);
        }
        for name in [
            "KEYBOARD",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "TOKENIZERS_PARALLELISM",
            "SECRETARY",
            "PATH",
            "MONKEY",
            "HOME",
            "",
            "XAUTHORITY",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn every_text_of_a_value_is_redacted() {
        let key = "sk-ant-api03-0123456789abcdef";
        let value = json!({ "a": [key, 1, null, { "b": format!("x {key}") }], "c": "fine" });
        assert_eq!(
            redacted_json(value),
            json!({ "a": ["[redacted]", 1, null, { "b": "x [redacted]" }], "c": "fine" })
        );
        let mut fields = serde_json::Map::new();
        fields.insert(format!("x {key}"), json!(1));
        assert_eq!(redacted_json(fields.into()), json!({ "x [redacted]": 1 }));
    }

    #[test]
    fn a_line_loses_nothing_but_its_secrets() {
        let key = "sk-ant-api03-0123456789abcdef";
        let escaped = key.replace('a', "\\u0061");
        let check = |line: &str, expected: &str| assert_eq!(redacted_line(line), expected);
        check(
            r#"{ "b" : 1.0, "a":"\u0061 \" \\", "a":2}"#,
            r#"{ "b" : 1.0, "a":"\u0061 \" \\", "a":2}"#,
        );
        check(
            &format!(r#"{{"a":"x {key}","b":"\u0062"}}"#),
            r#"{"a":"x [redacted]","b":"\u0062"}"#,
        );
        check(&format!(r#"{{"{key}":1}}"#), r#"{"[redacted]":1}"#);
        check(&format!(r#"{{"{escaped}":1}}"#), r#"{"[redacted]":1}"#);
        check(&format!(r#"{{"a":"{escaped}","a":1}}"#), r#"{"a":"[redacted]","a":1}"#);
        // An escaped quotation mark does not end a text, in any notation.
        for quote in [r#"\""#, r#"\\\""#, r"\u0022"] {
            let line = format!(r#"{{"a":"say {quote} {escaped}","b":"{escaped}"}}"#);
            let shown: Value = serde_json::from_str(&redacted_line(&line)).unwrap();
            let said: String =
                serde_json::from_str(&format!("\"say {quote} [redacted]\"")).unwrap();
            assert_eq!(shown, json!({ "a": said, "b": "[redacted]" }), "{line}");
        }
        // A text that ends with a backslash ends there.
        check(&format!(r#"{{"a":"\\","b":"{escaped}"}}"#), r#"{"a":"\\","b":"[redacted]"}"#);
        check(&format!("no JSON: {key} \"{key}"), "no JSON: [redacted] \"[redacted]");
        check("\"cut \\", "\"cut \\");
    }
}
