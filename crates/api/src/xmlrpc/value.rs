//! Values of XML-RPC, read from the elements of a call and written into an answer.

use super::fault::{Code, Fault};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mainstay_import::xml::Element;
use std::fmt::Write as _;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum XmlValue {
    Int(i32),
    Bool(bool),
    Text(String),
    Double(f64),
    /// As it is written.
    DateTime(String),
    Base64(Vec<u8>),
    Array(Vec<XmlValue>),
    /// In the order of its writer.
    Struct(Vec<(String, XmlValue)>),
}

/// Why an element is no value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(crate) struct ValueError {
    line: usize,
    why: String,
}

impl ValueError {
    pub(super) fn new(element: &Element, why: impl Into<String>) -> ValueError {
        ValueError { line: element.line, why: why.into() }
    }
}

impl XmlValue {
    pub(crate) fn text(text: impl Into<String>) -> XmlValue {
        XmlValue::Text(text.into())
    }

    /// A number as XML-RPC has it; one beyond that is the nearest it has.
    pub(crate) fn int(number: i64) -> XmlValue {
        let nearest = number.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        XmlValue::Int(i32::try_from(nearest).unwrap_or_default())
    }

    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> XmlValue {
        XmlValue::Array(texts.into_iter().map(XmlValue::text).collect())
    }

    pub(crate) fn pairs<const N: usize>(pairs: [(&str, XmlValue); N]) -> XmlValue {
        XmlValue::Struct(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A member of a struct.
    pub(crate) fn member(&self, name: &str) -> Option<&XmlValue> {
        match self {
            XmlValue::Struct(members) => {
                members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
            }
            XmlValue::Int(_)
            | XmlValue::Bool(_)
            | XmlValue::Text(_)
            | XmlValue::Double(_)
            | XmlValue::DateTime(_)
            | XmlValue::Base64(_)
            | XmlValue::Array(_) => None,
        }
    }

    /// What `<value>` holds. It goes no deeper than its document, which has its bounds.
    pub(super) fn read(value: &Element) -> Result<XmlValue, ValueError> {
        let wrong = |why: String| ValueError::new(value, why);
        if value.name != "value" {
            return Err(wrong(format!("'{}' where a value is expected", value.name)));
        }
        let inner = match value.children.as_slice() {
            // Without a type it is text.
            [] => return Ok(XmlValue::text(value.text.as_str())),
            [inner] => inner,
            [..] => return Err(wrong("a value with more than one type".to_owned())),
        };
        if !value.text.trim().is_empty() {
            return Err(wrong("text beside the type of a value".to_owned()));
        }
        XmlValue::typed(inner)
    }

    fn typed(inner: &Element) -> Result<XmlValue, ValueError> {
        let kind = inner.name.as_str();
        let unfit = || ValueError::new(inner, format!("'{}' is no {kind}", inner.text.trim()));
        let nested = matches!(kind, "array" | "struct");
        if nested && !inner.text.trim().is_empty() {
            return Err(ValueError::new(inner, format!("text in {kind}")));
        }
        if !nested && !inner.children.is_empty() {
            return Err(ValueError::new(inner, format!("elements in {kind}")));
        }
        let number = inner.text.trim();
        Ok(match kind {
            "int" | "i4" => XmlValue::Int(number.parse().map_err(|_| unfit())?),
            "boolean" => XmlValue::Bool(match number {
                "1" => true,
                "0" => false,
                _ => return Err(unfit()),
            }),
            "string" => XmlValue::text(inner.text.as_str()),
            "double" => {
                let double: f64 = number.parse().map_err(|_| unfit())?;
                XmlValue::Double(Some(double).filter(|it| it.is_finite()).ok_or_else(unfit)?)
            }
            "dateTime.iso8601" => XmlValue::DateTime(number.to_owned()),
            "base64" => {
                let compact: String = inner.text.split_whitespace().collect();
                XmlValue::Base64(STANDARD.decode(compact).map_err(|_| unfit())?)
            }
            "array" => XmlValue::Array(array(inner)?),
            "struct" => XmlValue::Struct(members(inner)?),
            _ => return Err(ValueError::new(inner, format!("there is no type '{kind}'"))),
        })
    }

    /// `<value>…</value>`
    pub(super) fn write(&self, out: &mut String) {
        out.push_str("<value>");
        // Writing to a String cannot fail.
        let _ = match self {
            XmlValue::Int(number) => write!(out, "<int>{number}</int>"),
            XmlValue::Bool(truth) => write!(out, "<boolean>{}</boolean>", u8::from(*truth)),
            XmlValue::Double(number) => write!(out, "<double>{number:?}</double>"),
            XmlValue::DateTime(text) => {
                write!(out, "<dateTime.iso8601>{}</dateTime.iso8601>", Escaped(text))
            }
            XmlValue::Text(text) => write!(out, "<string>{}</string>", Escaped(text)),
            XmlValue::Base64(bytes) => {
                write!(out, "<base64>{}</base64>", STANDARD.encode(bytes))
            }
            XmlValue::Array(values) => {
                out.push_str("<array><data>");
                values.iter().for_each(|value| value.write(out));
                write!(out, "</data></array>")
            }
            XmlValue::Struct(members) => {
                out.push_str("<struct>");
                for (name, value) in members {
                    let _ = write!(out, "<member><name>{}</name>", Escaped(name));
                    value.write(out);
                    out.push_str("</member>");
                }
                write!(out, "</struct>")
            }
        };
        out.push_str("</value>");
    }
}

fn array(inner: &Element) -> Result<Vec<XmlValue>, ValueError> {
    match inner.children.as_slice() {
        [data] if data.name == "data" && data.text.trim().is_empty() => {
            data.children.iter().map(XmlValue::read).collect()
        }
        [..] => Err(ValueError::new(inner, "an array has one element 'data'")),
    }
}

fn members(inner: &Element) -> Result<Vec<(String, XmlValue)>, ValueError> {
    let member = |member: &Element| match (member.name.as_str(), member.children.as_slice()) {
        ("member", [name, value]) if name.name == "name" && name.children.is_empty() => {
            Ok((name.text.clone(), XmlValue::read(value)?))
        }
        _ => Err(ValueError::new(member, "a struct has members of a name and a value")),
    };
    inner.children.iter().map(member).collect()
}

/// Text as it stands between elements. What XML has no place for is a replacement character.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                // As it is, a reader would make a line end of it.
                '\r' => f.write_str("&#13;")?,
                '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}' => {
                    f.write_char('\u{fffd}')?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// The parameters of a call, by their place.
#[derive(Debug)]
pub(crate) struct Params(pub(crate) Vec<XmlValue>);

impl Params {
    pub(crate) fn text(&self, at: usize) -> Result<&str, Fault> {
        match self.0.get(at) {
            Some(XmlValue::Text(text)) => Ok(text),
            Some(_) | None => Err(Fault::of(Code::IncorrectParameters)),
        }
    }

    /// A number; as text as well, which Supervisor takes, too.
    pub(crate) fn int(&self, at: usize) -> Result<i64, Fault> {
        let number = match self.0.get(at) {
            Some(XmlValue::Int(number)) => Some(i64::from(*number)),
            Some(XmlValue::Text(text)) => text.trim().parse().ok(),
            Some(_) | None => None,
        };
        number.ok_or_else(|| Fault::of(Code::IncorrectParameters))
    }

    /// A truth that may be left out.
    pub(crate) fn truth_or(&self, at: usize, absent: bool) -> Result<bool, Fault> {
        match self.0.get(at) {
            None => Ok(absent),
            Some(XmlValue::Bool(truth)) => Ok(*truth),
            Some(XmlValue::Int(number)) => Ok(*number != 0),
            Some(_) => Err(Fault::of(Code::IncorrectParameters)),
        }
    }

    /// Bytes: text in UTF-8, or as they are.
    pub(crate) fn bytes(&self, at: usize) -> Result<Vec<u8>, Fault> {
        match self.0.get(at) {
            Some(XmlValue::Text(text)) => Ok(text.clone().into_bytes()),
            Some(XmlValue::Base64(bytes)) => Ok(bytes.clone()),
            Some(XmlValue::Int(number)) => Err(Fault::about(Code::IncorrectParameters, number)),
            Some(_) | None => Err(Fault::of(Code::IncorrectParameters)),
        }
    }
}
