//! `[templates.NAME]`: a file that is made of profiles.

use super::{WrittenName, names, required};
use crate::{
    keys::{Kind, Reload::Live, Table, api::file, key},
    reader::{Place, Reader, Span, Value, as_i64},
};
use mainstay_core::{name::Name, plan::TemplatePlan};
use std::{path::PathBuf, time::Duration};
use toml::de::DeValue;

/// `[templates.NAME]` as it is written.
#[derive(Default)]
pub(crate) struct TemplateKeys {
    src: Option<PathBuf>,
    dst: Option<(PathBuf, Span)>,
    profiles: Vec<WrittenName>,
    owner: Option<String>,
    mode: Option<u32>,
    check: Option<Vec<String>>,
    check_timeout: Option<Duration>,
    spoilt: bool,
}

/// A template whose profiles are still to be looked up.
pub(crate) struct PlacedTemplate {
    pub(crate) plan: TemplatePlan,
    pub(crate) profiles: Vec<WrittenName>,
    pub(crate) dst: Place,
}

pub(crate) static TEMPLATE: Table<TemplateKeys> = Table {
    keys: &[
        key(
            "src",
            Kind::Text,
            "",
            Live,
            "The template (Jinja). Relative to the file that says so. Required.",
            |it, v, r| {
                it.src = file(v, r);
                it.spoilt |= it.src.is_none();
                Some(())
            },
        ),
        key(
            "dst",
            Kind::Text,
            "",
            Live,
            "The file that is made of it. Relative to the file that says so. Required.",
            |it, v, r| {
                it.dst = file(v, r).map(|path| (path, v.span));
                it.spoilt |= it.dst.is_none();
                Some(())
            },
        ),
        key(
            "profiles",
            Kind::Texts,
            "[]",
            Live,
            "The profiles that it uses. When one of them changes it is rendered again.",
            |it, v, r| names(v, r).map(|names| it.profiles = names),
        ),
        key(
            "owner",
            Kind::Text,
            "",
            Live,
            "Whom the file belongs to: user, user:group or :group. Default: as it was, else us.",
            |it, v, r| r.filled(v).map(|owner| it.owner = Some(owner)),
        ),
        key(
            "mode",
            Kind::Mode,
            "",
            Live,
            "Of the file. Default: as it was, else 0644, or 0600 if it uses a secret.",
            |it, v, r| mode(v, r).map(|mode| it.mode = Some(mode)),
        ),
        key(
            "check",
            Kind::Command,
            "",
            Live,
            "Run on the rendered file before anything is replaced; `{{ staged }}` stands for its path.",
            |it, v, r| r.command(v).map(|check| it.check = Some(with_marks_whole(check))),
        ),
        key(
            "check_timeout",
            Kind::Duration,
            "\"30s\"",
            Live,
            "How long the check may take.",
            |it, v, r| r.period(v).map(|time| it.check_timeout = Some(time)),
        ),
    ],
    later: &[],
    refused: &[],
};

impl TemplateKeys {
    pub(crate) fn judge(self, name: Name, at: Span, r: &mut Reader<'_>) -> Option<PlacedTemplate> {
        if self.spoilt {
            return None;
        }
        let src = required(r, self.src, "src", at, "add src = \"nginx.conf.j2\"");
        let dst = required(r, self.dst, "dst", at, "add dst = \"/etc/nginx/nginx.conf\"");
        let (src, (dst, dst_at)) = src.zip(dst)?;
        let plan = TemplatePlan {
            name,
            src,
            source: None,
            dst,
            profiles: Vec::new(),
            owner: self.owner,
            mode: self.mode,
            check: self.check,
            check_timeout: self.check_timeout.unwrap_or(Duration::from_secs(30)),
        };
        Some(PlacedTemplate { plan, profiles: self.profiles, dst: r.here(dst_at) })
    }
}

fn mode(v: Value<'_>, r: &mut Reader<'_>) -> Option<u32> {
    let number = match v.de {
        DeValue::Integer(number) => as_i64(number),
        _ => {
            let text = r.filled(v)?;
            i64::from_str_radix(text.strip_prefix("0o").unwrap_or(&text), 8).ok()
        }
    };
    match number.and_then(|mode| u32::try_from(mode).ok()).filter(|mode| *mode <= 0o7777) {
        Some(mode) => Some(mode),
        None => r.wrong(v.span, "not a file mode", "write it in octal: \"0640\" or 0o640"),
    }
}

/// A string is split at its blanks, of which `{{ staged }}` has two.
fn with_marks_whole(words: Vec<String>) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let is_open = |word: &String| word.rfind("{{") > word.rfind("}}");
    for word in words {
        match whole.last_mut().filter(|last| is_open(last)) {
            Some(last) => {
                last.push(' ');
                last.push_str(&word);
            }
            None => whole.push(word),
        }
    }
    whole
}
