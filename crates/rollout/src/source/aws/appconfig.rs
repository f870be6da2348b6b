//! AppConfig: a session, and a token for each call in it.
//!
//! ```text
//!  no session ──StartConfigurationSession──► token ──GetLatestConfiguration──► body, next token
//!      ▲                                        │ empty body: unchanged          │
//!      │◄── any failure: nobody knows whether ──┘◄───────────────────────────────┘
//!           the token was used                       not before the server's interval
//! ```
//!
//! A token that was refused while the last one was still good means that it has expired: a new
//! session is begun at once, and serves the whole body again.

use super::{AwsPlace, is_busy, told};
use crate::{
    profile::{self, Document},
    source::{SourceError, fetcher::Fetched},
};
use aws_sdk_appconfigdata::{
    Client,
    error::{ProvideErrorMetadata, SdkError},
    operation::get_latest_configuration::{
        GetLatestConfigurationError, GetLatestConfigurationOutput,
    },
    types::{BadRequestDetails, InvalidParameterProblem},
};
use mainstay_core::plan::ProfileFormat;
use std::time::Duration;
use tokio::time::Instant;

/// Where the server does not say.
const INTERVAL: Duration = Duration::from_secs(60);
/// The longest that a server is believed.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
pub(in crate::source) struct AppConfig {
    application: String,
    environment: String,
    profile: String,
    place: AwsPlace,
    format: Option<ProfileFormat>,
    session: Option<Session>,
    /// What was served last: a new session serves it again.
    last: Option<Document>,
}

#[derive(Debug)]
struct Session {
    /// Good for one call.
    token: String,
    /// The server wants no call before this.
    not_before: Instant,
    interval: Duration,
}

/// What a call came to.
enum Answer {
    Unchanged,
    Document(Document),
}

/// Why a call came to nothing.
enum Refusal {
    /// The token is not good any more.
    Token(String),
    TooEarly(String),
    Failed {
        why: String,
        busy: bool,
    },
}

impl AppConfig {
    pub(in crate::source) fn new(
        names: [&str; 3],
        place: AwsPlace,
        format: Option<ProfileFormat>,
    ) -> AppConfig {
        let [application, environment, profile] = names.map(str::to_owned);
        AppConfig { application, environment, profile, place, format, session: None, last: None }
    }

    pub(in crate::source) async fn fetch(
        &mut self,
        fresh: bool,
    ) -> Result<(Fetched, Option<Duration>), SourceError> {
        if fresh {
            self.forget();
        }
        if let Some(session) = &self.session {
            let early = session.not_before.saturating_duration_since(Instant::now());
            if early > Duration::ZERO {
                return Ok((Fetched::Unchanged, Some(early)));
            }
        }
        let client = Client::new(self.place.config().await);
        let mut begun_here = self.session.is_none();
        loop {
            // Whatever comes of it, its token was used.
            let session = match self.session.take() {
                Some(session) => session,
                None => self.begin(&client).await?,
            };
            let interval = session.interval;
            match self.ask(&client, session).await {
                Ok(Answer::Unchanged) if self.last.is_none() => {
                    return Err(self.failed("nothing is deployed for it", false, Some(interval)));
                }
                Ok(Answer::Unchanged) => return Ok((Fetched::Unchanged, self.interval())),
                Ok(Answer::Document(document)) => {
                    // A new session serves again what is known.
                    let known = self.last.as_ref() == Some(&document);
                    self.last = Some(document.clone());
                    let fetched = match known {
                        true => Fetched::Unchanged,
                        false => Fetched::Document(document),
                    };
                    return Ok((fetched, self.interval()));
                }
                Err(Refusal::Token(_)) if !begun_here => begun_here = true,
                Err(Refusal::Token(why)) => return Err(self.failed(&why, false, Some(interval))),
                Err(Refusal::TooEarly(why)) => {
                    return Err(self.failed(&why, false, Some(interval)));
                }
                Err(Refusal::Failed { why, busy }) => return Err(self.failed(&why, busy, None)),
            }
        }
    }

    /// The next load serves everything anew.
    pub(in crate::source) fn forget(&mut self) {
        (self.session, self.last) = (None, None);
    }

    #[cfg(test)]
    pub(in crate::source) fn skip_interval(&mut self) {
        self.session.iter_mut().for_each(|session| session.not_before = Instant::now());
    }

    fn interval(&self) -> Option<Duration> {
        self.session.as_ref().map(|session| session.interval)
    }

    async fn begin(&self, client: &Client) -> Result<Session, SourceError> {
        let begun = client
            .start_configuration_session()
            .application_identifier(&self.application)
            .environment_identifier(&self.environment)
            .configuration_profile_identifier(&self.profile)
            .send()
            .await;
        match begun.map(|it| it.initial_configuration_token) {
            Ok(Some(token)) => {
                Ok(Session { token, not_before: Instant::now(), interval: INTERVAL })
            }
            Ok(None) => Err(self.failed("a session without a token", false, None)),
            Err(error) => {
                let status = error.raw_response().map(|it| it.status().as_u16());
                let busy = is_busy(error.code(), status);
                Err(self.failed(&told(&error, error.code()), busy, None))
            }
        }
    }

    async fn ask(&mut self, client: &Client, session: Session) -> Result<Answer, Refusal> {
        let Session { token, .. } = session;
        let answer = client.get_latest_configuration().configuration_token(token).send().await;
        let answer = answer.map_err(|error| refusal(&error))?;
        let GetLatestConfigurationOutput {
            next_poll_configuration_token: token,
            next_poll_interval_in_seconds: seconds,
            content_type,
            configuration,
            version_label,
            ..
        } = answer;
        let interval = match u64::try_from(seconds) {
            Ok(0) | Err(_) => INTERVAL,
            Ok(seconds) => Duration::from_secs(seconds).min(LONGEST),
        };
        let not_before = Instant::now() + interval;
        self.session = token.map(|token| Session { token, not_before, interval });
        let bytes = configuration.map_or_else(Vec::new, |blob| blob.into_inner());
        if bytes.is_empty() {
            return Ok(Answer::Unchanged);
        }
        let failed = |why: String| Refusal::Failed { why, busy: false };
        let format = match (self.format, content_type) {
            (Some(format), _) => Ok(format),
            (None, Some(header)) => {
                profile::format_of_header(&header).map_err(|it| failed(it.to_string()))
            }
            (None, None) => Err(failed("it has no content type: set 'format'".to_owned())),
        };
        let format = match format {
            Ok(format) => format,
            Err(refusal) => {
                // It would not be served again.
                self.session = None;
                return Err(refusal);
            }
        };
        let label = version_label.filter(|label| !label.is_empty());
        Ok(Answer::Document(Document { format, bytes, label }))
    }

    fn failed(&self, why: &str, busy: bool, not_before: Option<Duration>) -> SourceError {
        let (application, environment, profile) =
            (&self.application, &self.environment, &self.profile);
        let why = format!("{application}/{environment}/{profile}: {why}");
        SourceError::AppConfig { why, busy, not_before }
    }
}

fn refusal(error: &SdkError<GetLatestConfigurationError>) -> Refusal {
    let why = told(error, error.code());
    match error.as_service_error() {
        Some(GetLatestConfigurationError::BadRequestException(bad)) => match &bad.details {
            Some(BadRequestDetails::InvalidParameters(parameters))
                if parameters.values().any(|it| {
                    it.problem == Some(InvalidParameterProblem::PollIntervalNotSatisfied)
                }) =>
            {
                Refusal::TooEarly(why)
            }
            Some(_) | None => Refusal::Token(why),
        },
        Some(_) | None => {
            let status = error.raw_response().map(|it| it.status().as_u16());
            Refusal::Failed { busy: is_busy(error.code(), status), why }
        }
    }
}
