//! `[profiles.NAME]`: configuration data, and where it comes from.

use super::required;
use crate::{
    keys::{Kind, Reload::Live, Table, api::file, http, key},
    reader::{Reader, Span, Value},
};
use mainstay_core::{
    name::Name,
    plan::{ProfileFormat, ProfilePlan, ProfileSource},
};
use std::path::PathBuf;

/// `[profiles.NAME]` as it is written.
#[derive(Default)]
pub(crate) struct ProfileKeys {
    source: Option<(SourceKind, Span)>,
    format: Option<ProfileFormat>,
    path: Option<(PathBuf, Span)>,
    url: Option<(String, Span)>,
    token_file: Option<(PathBuf, Span)>,
    ca: Option<(PathBuf, Span)>,
    application: Option<(String, Span)>,
    environment: Option<(String, Span)>,
    profile: Option<(String, Span)>,
    region: Option<(String, Span)>,
    endpoint: Option<(String, Span)>,
    spoilt: bool,
}

#[derive(Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum SourceKind {
    File,
    Http,
    AppConfig,
    Agent,
}

pub(crate) static PROFILE: Table<ProfileKeys> = Table {
    keys: &[
        key(
            "source",
            Kind::OneOf(&["file", "http", "appconfig", "agent"]),
            "",
            Live,
            "Where its content comes from: a file that is watched, a URL that is asked, AWS AppConfig, \
             or the AppConfig Agent on this machine. Required.",
            |it, v, r| {
                it.source = r.one_of(v).map(|source| (source, v.span));
                it.spoilt |= it.source.is_none();
                Some(())
            },
        ),
        key(
            "format",
            Kind::OneOf(&["json", "yaml", "toml", "text"]),
            "",
            Live,
            "What its content is. Default: as the file's ending or the answer's content type say.",
            |it, v, r| r.one_of(v).map(|format| it.format = Some(format)),
        ),
        key(
            "path",
            Kind::Text,
            "",
            Live,
            "Of a file: where it is. Relative to the file that says so.",
            |it, v, r| {
                it.path = file(v, r).map(|path| (path, v.span));
                it.spoilt |= it.path.is_none();
                Some(())
            },
        ),
        key(
            "url",
            Kind::Text,
            "",
            Live,
            "Of http: what is asked for. Of agent: where it listens; default: http://localhost:2772.",
            |it, v, r| {
                it.url = http::url(v, r).map(|url| (url, v.span));
                it.spoilt |= it.url.is_none();
                Some(())
            },
        ),
        key(
            "token_file",
            Kind::Text,
            "",
            Live,
            "Of http: a file with the token that is sent (`Authorization: Bearer`).",
            |it, v, r| file(v, r).map(|path| it.token_file = Some((path, v.span))),
        ),
        key(
            "ca",
            Kind::Text,
            "",
            Live,
            "Of http: certificates (PEM) that are trusted instead of the system's.",
            |it, v, r| file(v, r).map(|path| it.ca = Some((path, v.span))),
        ),
        key(
            "application",
            Kind::Text,
            "",
            Live,
            "Of appconfig and agent: the name or id of the application.",
            |it, v, r| {
                it.application = identifier(v, r);
                it.spoilt |= it.application.is_none();
                Some(())
            },
        ),
        key(
            "environment",
            Kind::Text,
            "",
            Live,
            "Of appconfig and agent: the name or id of the environment.",
            |it, v, r| {
                it.environment = identifier(v, r);
                it.spoilt |= it.environment.is_none();
                Some(())
            },
        ),
        key(
            "profile",
            Kind::Text,
            "",
            Live,
            "Of appconfig and agent: the name or id of the configuration profile.",
            |it, v, r| {
                it.profile = identifier(v, r);
                it.spoilt |= it.profile.is_none();
                Some(())
            },
        ),
        key(
            "region",
            Kind::Text,
            "",
            Live,
            "Of appconfig: the AWS region. Default: as AWS's own tools find it.",
            |it, v, r| r.filled(v).map(|region| it.region = Some((region, v.span))),
        ),
        key(
            "endpoint",
            Kind::Text,
            "",
            Live,
            "Of appconfig: the URL that is asked in place of AWS's own.",
            |it, v, r| http::url(v, r).map(|url| it.endpoint = Some((url, v.span))),
        ),
    ],
    later: &["key"],
    refused: &[],
};

impl ProfileKeys {
    pub(crate) fn judge(self, name: Name, at: Span, r: &mut Reader<'_>) -> Option<ProfilePlan> {
        if self.spoilt {
            return None;
        }
        let help = "add source = \"file\", \"http\", \"appconfig\" or \"agent\"";
        let (source, _) = required(r, self.source, "source", at, help)?;
        self.refuse_keys_of_others(r, source);
        let example = |key: &str| format!("add {key} = \"…\"");
        let source = match source {
            SourceKind::File => {
                let (path, _) = required(r, self.path, "path", at, &example("path"))?;
                ProfileSource::File { path }
            }
            SourceKind::Http => {
                let (url, _) = required(r, self.url, "url", at, "add url = \"https://…\"")?;
                let token_file = self.token_file.map(|it| it.0);
                ProfileSource::Http { url, token_file, ca: self.ca.map(|it| it.0) }
            }
            SourceKind::AppConfig | SourceKind::Agent => {
                let mut part = |part: Option<(String, Span)>, key: &str| {
                    required(r, part, key, at, &example(key)).map(|it| it.0)
                };
                let application = part(self.application, "application");
                let environment = part(self.environment, "environment");
                let profile = part(self.profile, "profile");
                let (application, environment, profile) = (application?, environment?, profile?);
                match source {
                    SourceKind::Agent => {
                        let url = self.url.map(|it| it.0);
                        ProfileSource::Agent { application, environment, profile, url }
                    }
                    SourceKind::AppConfig | SourceKind::File | SourceKind::Http => {
                        let (region, endpoint) =
                            (self.region.map(|it| it.0), self.endpoint.map(|it| it.0));
                        ProfileSource::AppConfig {
                            application,
                            environment,
                            profile,
                            region,
                            endpoint,
                        }
                    }
                }
            }
        };
        Some(ProfilePlan { name, source, format: self.format })
    }

    fn refuse_keys_of_others(&self, r: &mut Reader<'_>, source: SourceKind) {
        use SourceKind::{Agent, AppConfig, File, Http};
        let text = |it: &Option<(String, Span)>| it.as_ref().map(|it| it.1);
        let path = |it: &Option<(PathBuf, Span)>| it.as_ref().map(|it| it.1);
        let keys: [(&str, Option<Span>, &[SourceKind]); 9] = [
            ("path", path(&self.path), &[File]),
            ("url", text(&self.url), &[Http, Agent]),
            ("token_file", path(&self.token_file), &[Http]),
            ("ca", path(&self.ca), &[Http]),
            ("application", text(&self.application), &[AppConfig, Agent]),
            ("environment", text(&self.environment), &[AppConfig, Agent]),
            ("profile", text(&self.profile), &[AppConfig, Agent]),
            ("region", text(&self.region), &[AppConfig]),
            ("endpoint", text(&self.endpoint), &[AppConfig]),
        ];
        for (key, span, of) in keys {
            if let Some(span) = span.filter(|_| !of.contains(&source)) {
                let message = format!("'{key}' means nothing to the source '{}'", source.word());
                r.within(key, |r| r.wrong::<()>(span, message, "remove it, or use another source"));
            }
        }
    }
}

impl SourceKind {
    fn word(self) -> &'static str {
        match self {
            SourceKind::File => "file",
            SourceKind::Http => "http",
            SourceKind::AppConfig => "appconfig",
            SourceKind::Agent => "agent",
        }
    }
}

/// As AppConfig has them: 1 to 128 characters.
fn identifier(v: Value<'_>, r: &mut Reader<'_>) -> Option<(String, Span)> {
    let text = r.filled(v)?;
    if text.chars().count() > 128 || text.chars().any(char::is_control) {
        let help = "write the name or the id that AppConfig shows";
        return r.wrong(v.span, "this cannot be a name or an id of AppConfig", help);
    }
    Some((text, v.span))
}
