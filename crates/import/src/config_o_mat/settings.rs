//! What the files say, held against what config_o_mat takes.

use crate::yaml::{YamlNode, YamlValue};
use mainstay_config::{Diagnostic, Errors, Source};

/// `profiles.NAME`
pub(super) struct ForeignProfile {
    pub(super) name: String,
    pub(super) application: String,
    pub(super) environment: String,
    pub(super) profile: String,
    pub(super) s3_fallback: Option<ConfLine>,
    pub(super) at: ConfLine,
}

/// `templates.NAME`
pub(super) struct ForeignTemplate {
    pub(super) name: String,
    pub(super) src: String,
    pub(super) dst: String,
    pub(super) at: ConfLine,
}

/// `services.NAME`
pub(super) struct ForeignService {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) mode: RestartMode,
    pub(super) templates: Vec<String>,
    pub(super) at: ConfLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartMode {
    Restart,
    FlipFlop,
    RestartAll,
    None,
}

/// A line of one of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfLine {
    pub(super) file: String,
    pub(super) line: usize,
}

pub(super) struct Settings {
    /// Whole seconds.
    pub(super) refresh_interval: Option<u64>,
    pub(super) region: Option<String>,
    pub(super) log_level: Option<String>,
    /// The name of the profile that facts are in.
    pub(super) facter: Option<(String, ConfLine)>,
    pub(super) profiles: Vec<ForeignProfile>,
    pub(super) templates: Vec<ForeignTemplate>,
    pub(super) services: Vec<ForeignService>,
    /// Other keys, with what is to be said of them.
    pub(super) told: Vec<(ConfLine, String)>,
}

const LEVELS: [&str; 9] =
    ["debug", "info", "notice", "warning", "warn", "error", "critical", "alert", "emergency"];

impl Settings {
    pub(super) fn read(tree: &YamlNode, sources: &[Source]) -> Result<Settings, Errors> {
        let mut r = SettingsReader { sources, problems: Vec::new() };
        let settings = r.settings(tree);
        if r.problems.is_empty() { Ok(settings) } else { Err(Errors::of_file(r.problems)) }
    }
}

struct SettingsReader<'a> {
    sources: &'a [Source],
    problems: Vec<Diagnostic>,
}

impl SettingsReader<'_> {
    fn place(&self, node: &YamlNode) -> ConfLine {
        let file = self.sources.get(node.file).map_or("", |it| &it.name).to_owned();
        ConfLine { file, line: node.line }
    }

    fn wrong(&mut self, node: &YamlNode, message: impl Into<String>) {
        let ConfLine { file, line } = self.place(node);
        let help = "correct it: config_o_mat would not start with it";
        let found = Diagnostic::error(message.into()).file(format!("{file}:{line}")).help(help);
        self.problems.push(found);
    }

    fn settings(&mut self, tree: &YamlNode) -> Settings {
        let mut settings = Settings {
            refresh_interval: None,
            region: None,
            log_level: None,
            facter: None,
            profiles: Vec::new(),
            templates: Vec::new(),
            services: Vec::new(),
            told: Vec::new(),
        };
        for (key, node) in tree.map() {
            match key.as_str() {
                "profiles" => settings.profiles = self.each(key, node, SettingsReader::profile),
                "templates" => settings.templates = self.each(key, node, SettingsReader::template),
                "services" => settings.services = self.each(key, node, SettingsReader::service),
                "refresh_interval" => settings.refresh_interval = self.seconds(key, node),
                "region" => settings.region = self.filled(key, node),
                "log_level" => settings.log_level = self.one_of(key, node, &LEVELS),
                "log_type" => {
                    self.one_of(key, node, &["stdout", "file"]);
                    if node.text() == Some("file") {
                        let told = "log_type: the log is on stderr and in files of mainstay's own: \
                                    mainstay logs";
                        settings.told.push((self.place(node), told.to_owned()));
                    }
                }
                "facter" => settings.facter = self.facter(node),
                // Told with `log_type`, and with the profiles that have a fallback.
                "log_file" | "fallback_s3_bucket" => {}
                _ => settings.told.push((self.place(node), of_key(key))),
            }
        }
        self.together(tree, &settings);
        settings
    }

    /// What has to hold between the parts.
    fn together(&mut self, tree: &YamlNode, settings: &Settings) {
        let bucket = tree.get("fallback_s3_bucket").and_then(YamlNode::text).unwrap_or_default();
        if bucket.is_empty() && settings.profiles.iter().any(|it| it.s3_fallback.is_some()) {
            self.wrong(tree, "fallback_s3_bucket is missing, which s3_fallback needs");
        }
        if let (Some((name, _)), Some(node)) = (&settings.facter, tree.get("facter"))
            && settings.profiles.iter().any(|it| it.name == *name)
        {
            self.wrong(node, format!("facter: there is a profile '{name}' already"));
        }
        let known = |name: &str| settings.templates.iter().any(|it| it.name == name);
        for service in &settings.services {
            let node = tree.get("services").and_then(|it| it.get(&service.name));
            for name in service.templates.iter().filter(|it| !known(it)) {
                let message = format!("service '{}': there is no template '{name}'", service.name);
                self.wrong(node.unwrap_or(tree), message);
            }
        }
        for (at, template) in settings.templates.iter().enumerate() {
            let first = settings.templates[..at].iter().find(|it| it.dst == template.dst);
            if let Some(first) = first {
                let node = tree.get("templates").and_then(|it| it.get(&template.name));
                let message =
                    format!("templates '{}' and '{}' have one dst", first.name, template.name);
                self.wrong(node.unwrap_or(tree), message);
            }
        }
    }

    /// The entries of a map, those that are whole.
    fn each<T>(
        &mut self,
        key: &str,
        node: &YamlNode,
        read: fn(&mut Self, &str, &YamlNode) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            YamlValue::Map(pairs) => {
                pairs.iter().filter_map(|(name, node)| read(self, name, node)).collect()
            }
            YamlValue::List(items) if items.is_empty() => Vec::new(),
            YamlValue::Scalar { .. } if node.text().is_none() => Vec::new(),
            YamlValue::Scalar { .. } | YamlValue::List(_) => {
                self.wrong(node, format!("{key}: it is no map of names"));
                Vec::new()
            }
        }
    }

    fn profile(&mut self, name: &str, node: &YamlNode) -> Option<ForeignProfile> {
        let part = |r: &mut Self, key: &str| r.required("profile", name, node, key);
        let (application, environment, profile) =
            (part(self, "application"), part(self, "environment"), part(self, "profile"));
        let s3_fallback = node.get("s3_fallback").filter(|it| it.text().is_some());
        let s3_fallback = s3_fallback.map(|it| self.place(it));
        let (name, at) = (name.to_owned(), self.place(node));
        let (application, environment, profile) = (application?, environment?, profile?);
        Some(ForeignProfile { name, application, environment, profile, s3_fallback, at })
    }

    fn template(&mut self, name: &str, node: &YamlNode) -> Option<ForeignTemplate> {
        let (src, dst) = (
            self.required("template", name, node, "src"),
            self.required("template", name, node, "dst"),
        );
        let (name, at) = (name.to_owned(), self.place(node));
        Some(ForeignTemplate { name, src: src?, dst: dst?, at })
    }

    fn service(&mut self, name: &str, node: &YamlNode) -> Option<ForeignService> {
        let unit = self.required("service", name, node, "systemd_unit");
        let mode = match node.get("restart_mode").and_then(YamlNode::text) {
            Some("restart") => Some(RestartMode::Restart),
            Some("flip_flop") => Some(RestartMode::FlipFlop),
            Some("restart_all") => Some(RestartMode::RestartAll),
            Some("none") => Some(RestartMode::None),
            Some(_) | None => {
                let known = "restart, flip_flop, restart_all or none";
                self.wrong(node, format!("service '{name}': restart_mode is one of {known}"));
                None
            }
        };
        let templates = self.templates(name, node);
        let (unit, mode, templates) = (unit?, mode?, templates?);
        let naked = unit.ends_with('@') || !unit.contains('@');
        let fits = match mode {
            RestartMode::Restart => !unit.ends_with('@'),
            RestartMode::FlipFlop | RestartMode::RestartAll => naked,
            RestartMode::None => true,
        };
        if !fits || unit == "@" {
            let message =
                format!("service '{name}': its unit '{unit}' does not fit its restart_mode");
            self.wrong(node, message);
            return None;
        }
        let (name, at) = (name.to_owned(), self.place(node));
        Some(ForeignService { name, unit, mode, templates, at })
    }

    /// Each once: files that are merged may name one twice.
    fn templates(&mut self, name: &str, node: &YamlNode) -> Option<Vec<String>> {
        let items = node.get("templates").map(YamlNode::items).unwrap_or_default();
        let texts: Option<Vec<String>> =
            items.iter().map(|it| it.text().map(str::to_owned)).collect();
        match texts {
            Some(texts) if !texts.is_empty() => {
                let mut once: Vec<String> = Vec::new();
                for text in texts {
                    if !once.contains(&text) {
                        once.push(text);
                    }
                }
                Some(once)
            }
            _ => {
                self.wrong(node, format!("service '{name}': templates is a list of names"));
                None
            }
        }
    }

    fn required(&mut self, what: &str, name: &str, node: &YamlNode, key: &str) -> Option<String> {
        match node.get(key).and_then(YamlNode::text).filter(|it| !it.is_empty()) {
            Some(text) => Some(text.to_owned()),
            None => {
                self.wrong(node, format!("{what} '{name}': '{key}' is missing"));
                None
            }
        }
    }

    fn filled(&mut self, key: &str, node: &YamlNode) -> Option<String> {
        match &node.value {
            YamlValue::Scalar { .. } => node.text().filter(|it| !it.is_empty()).map(str::to_owned),
            YamlValue::List(_) | YamlValue::Map(_) => {
                self.wrong(node, format!("{key}: it is no text"));
                None
            }
        }
    }

    fn one_of(&mut self, key: &str, node: &YamlNode, known: &[&str]) -> Option<String> {
        let text = self.filled(key, node)?;
        if known.contains(&text.as_str()) {
            return Some(text);
        }
        self.wrong(node, format!("{key}: it is one of {}", known.join(", ")));
        None
    }

    fn seconds(&mut self, key: &str, node: &YamlNode) -> Option<u64> {
        let text = self.filled(key, node)?;
        let seconds = text.parse::<f64>().ok().filter(|it| (0.001..=86_400.0 * 365.0).contains(it));
        match seconds {
            // Nobody is asked more often than that.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Some(seconds) => Some((seconds.ceil() as u64).max(1)),
            None => {
                self.wrong(node, format!("{key}: it is no number of seconds"));
                None
            }
        }
    }

    fn facter(&mut self, node: &YamlNode) -> Option<(String, ConfLine)> {
        let name = match &node.value {
            YamlValue::Scalar { text, plain: true }
                if matches!(text.as_str(), "false" | "no" | "off" | "" | "null" | "~") =>
            {
                return None;
            }
            YamlValue::Scalar { text, plain: true }
                if matches!(text.as_str(), "true" | "yes" | "on") =>
            {
                "facter"
            }
            YamlValue::Scalar { text, .. } if text.parse::<f64>().is_err() => text,
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Map(_) => "facter",
        };
        Some((name.to_owned(), self.place(node)))
    }
}

/// What becomes of a key that has no counterpart.
fn of_key(key: &str) -> String {
    match key {
        "retry_count" | "retry_wait" => format!(
            "{key}: nothing is tried again by count: a version that fails is rolled back, and its \
             failure stays pending until there is another one or [rollout] failure_timeout has passed"
        ),
        "client_id" => {
            "client_id: AppConfig is asked in sessions, which have no such id".to_owned()
        }
        "gc_compact" | "gc_stat" => format!("{key}: it is about Ruby"),
        _ => format!("'{key}' has no counterpart"),
    }
}
