//! Messages: a call as it comes in, an answer as it goes out.

use super::{
    fault::Fault,
    value::{ValueError, XmlValue},
};
use mainstay_import::xml::{self, XmlError};

/// One `<methodCall>`.
#[derive(Debug, PartialEq)]
pub(crate) struct MethodCall {
    pub(crate) method: String,
    pub(crate) params: Vec<XmlValue>,
}

/// Why a body is no call.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("the body is not UTF-8")]
    Encoding,
    #[error(transparent)]
    Xml(#[from] XmlError),
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl MethodCall {
    pub(crate) fn read(body: &[u8]) -> Result<MethodCall, MessageError> {
        let text = std::str::from_utf8(body).map_err(|_| MessageError::Encoding)?;
        let root = xml::parse(text)?;
        let wrong = |why: &str| ValueError::new(&root, why).into();
        if root.name != "methodCall" || !root.text.trim().is_empty() {
            return Err(wrong("it is no methodCall"));
        }
        let (name, params) = match root.children.as_slice() {
            [name] => (name, None),
            [name, params] if params.name == "params" => (name, Some(params)),
            [..] => return Err(wrong("a methodCall has a methodName and params")),
        };
        let method = name.text.trim();
        if name.name != "methodName" || !name.children.is_empty() || method.is_empty() {
            return Err(wrong("a methodCall begins with its methodName"));
        }
        let params = params.map_or(Ok(Vec::new()), |params| {
            let value = |param: &xml::Element| match param.children.as_slice() {
                [value] if param.name == "param" => XmlValue::read(value),
                [..] => Err(ValueError::new(param, "a param holds one value")),
            };
            params.children.iter().map(value).collect()
        })?;
        Ok(MethodCall { method: method.to_owned(), params })
    }
}

const HEAD: &str = "<?xml version='1.0'?>\n<methodResponse>\n";

/// `<methodResponse>` with a result or a fault.
pub(crate) fn response(result: &Result<XmlValue, Fault>) -> String {
    let mut out = HEAD.to_owned();
    match result {
        Ok(value) => {
            out.push_str("<params>\n<param>\n");
            value.write(&mut out);
            out.push_str("\n</param>\n</params>\n");
        }
        Err(fault) => {
            out.push_str("<fault>\n");
            fault.value().write(&mut out);
            out.push_str("\n</fault>\n");
        }
    }
    out.push_str("</methodResponse>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xmlrpc::fault::Code;

    fn call(params: &str) -> Result<MethodCall, MessageError> {
        let text = format!(
            "<?xml version='1.0'?>\n<methodCall>\n<methodName>a.b</methodName>\n\
             <params>{params}</params>\n</methodCall>\n"
        );
        MethodCall::read(text.as_bytes())
    }

    fn param(value: &str) -> Result<XmlValue, MessageError> {
        call(&format!("<param>{value}</param>")).map(|mut call| call.params.remove(0))
    }

    #[test]
    fn every_type_is_read_as_it_was_written() {
        let values = [
            XmlValue::Int(-7),
            XmlValue::Bool(true),
            XmlValue::text("a < b & \"c\"\r\n ü"),
            XmlValue::text(""),
            XmlValue::Double(1.5),
            XmlValue::DateTime("20261116T19:00:00".to_owned()),
            XmlValue::Base64(vec![0, 255, 10]),
            XmlValue::Array(vec![XmlValue::Int(1), XmlValue::Array(Vec::new())]),
            XmlValue::pairs([("k", XmlValue::text("v")), ("", XmlValue::Bool(false))]),
        ];
        for value in values {
            let mut text = String::new();
            value.write(&mut text);
            assert_eq!(param(&text), Ok(value), "{text}");
        }
    }

    #[test]
    fn python_writes_calls_that_are_understood() {
        let call = MethodCall::read(
            b"<?xml version='1.0'?>\n<methodCall>\n<methodName>supervisor.stopProcess</methodName>\n\
              <params>\n<param>\n<value><string>web:*</string></value>\n</param>\n<param>\n\
              <value><boolean>1</boolean></value>\n</param>\n</params>\n</methodCall>\n",
        );
        let params = vec![XmlValue::text("web:*"), XmlValue::Bool(true)];
        assert_eq!(call, Ok(MethodCall { method: "supervisor.stopProcess".to_owned(), params }));
        let bare = MethodCall::read(b"<methodCall><methodName>x</methodName></methodCall>");
        assert_eq!(bare.map(|call| call.params), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for value in [
            "<value><int>1.5</int></value>",
            "<value><int>99999999999</int></value>",
            "<value><boolean>2</boolean></value>",
            "<value><double>inf</double></value>",
            "<value><base64>%</base64></value>",
            "<value><nil/></value>",
            "<value><int>1</int><int>2</int></value>",
            "<value>x<int>1</int></value>",
            "<value><string><b/></string></value>",
            "<value><array><value/></array></value>",
            "<value><array>x<data/></array></value>",
            "<value><struct><member><name>a</name></member></struct></value>",
            "<int>1</int>",
        ] {
            assert!(param(value).is_err(), "{value}");
        }
        for text in ["", "<a/>", "<methodCall/>", "<methodCall><methodName/></methodCall>"] {
            assert!(MethodCall::read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(MethodCall::read(&[0xff]), Err(MessageError::Encoding));
    }

    #[test]
    fn an_answer_holds_nothing_that_xml_has_no_place_for() {
        let answer = response(&Ok(XmlValue::text("\u{1b}[1m<b>&\0")));
        assert!(answer.contains("\u{fffd}[1m&lt;b&gt;&amp;\u{fffd}"), "{answer}");
        let fault = response(&Err(Fault::about(Code::BadName, "x<y")));
        assert!(fault.contains("<int>10</int>") && fault.contains("BAD_NAME: x&lt;y"), "{fault}");
    }
}
