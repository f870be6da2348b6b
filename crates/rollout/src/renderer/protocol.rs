//! What is said to the process that renders, and what it answers.

use super::{
    LARGEST_SET, Output,
    pieces::{put, put_json, take, take_json},
};
use crate::template::{LARGEST_OUTPUT, Rendered, ShowSecrets, TemplateError};
use mainstay_core::{
    name::Name,
    rollout::{Content, SecretValue, StageFailure, Trouble},
    text,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read, Write},
    path::PathBuf,
    sync::Arc,
};

/// Of an answer that is no file.
const LONGEST_ANSWER: usize = 64 << 10;
/// Of why something has failed.
const LONGEST_TROUBLE: usize = 16 << 10;
/// Of the names that a template uses: less than its text.
const LONGEST_NAMES: usize = 16 << 20;

/// What is rendered, and of what.
#[derive(Debug)]
pub(crate) struct RenderRequest {
    pub(crate) show: ShowSecrets,
    pub(crate) node: Value,
    pub(crate) profiles: BTreeMap<Name, Arc<Content>>,
    pub(crate) templates: Vec<TemplateRequest>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TemplateRequest {
    pub(crate) name: Name,
    #[serde(with = "text::path")]
    pub(crate) src: PathBuf,
    pub(crate) profiles: Vec<Name>,
}

/// The first piece.
#[derive(Serialize, Deserialize)]
enum Question {
    /// The contents of the profiles follow, in their order.
    Render(RenderHead),
    Compile(Vec<SourceFile>),
}

/// What is asked, whole.
#[derive(Debug)]
pub(super) enum Work {
    Render(RenderRequest),
    Compile(Vec<SourceFile>),
}

/// What a template is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SourceFile {
    pub(super) template: Name,
    #[serde(with = "text::path")]
    pub(super) path: PathBuf,
}

/// The names that a template's scope has to have.
pub(super) type Compiled = Result<BTreeSet<String>, TemplateError>;

#[derive(Serialize, Deserialize)]
struct RenderHead {
    show: ShowSecrets,
    node: Value,
    profiles: Vec<ProfileHead>,
    templates: Vec<TemplateRequest>,
}

#[derive(Serialize, Deserialize)]
struct ProfileHead {
    name: Name,
    content_type: String,
    secrets: BTreeMap<String, SecretValue>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RenderAnswer {
    /// The profiles are read.
    Ready,
    /// A file of the template; its bytes follow. `below`: of a directory.
    File {
        #[serde(with = "text::path")]
        below: PathBuf,
        uses_secret: bool,
    },
    /// All of the template.
    Made { tree: bool },
    /// There is no more. `None`: no template is to blame.
    Failed { template: Option<Name>, trouble: String },
}

/// Why there is less than was asked for.
#[derive(Debug)]
pub(super) enum Broken {
    Failed(StageFailure),
    /// After so many templates.
    Ended {
        ready: bool,
        made: usize,
    },
    /// Nothing more has come in time.
    Late {
        made: usize,
    },
    /// All together make more than there is room for, with the one after so many.
    TooMuch {
        made: usize,
    },
    Garbled(io::Error),
}

impl RenderRequest {
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let profile = |(name, content): (&Name, &Arc<Content>)| ProfileHead {
            name: name.clone(),
            content_type: content.content_type.clone(),
            secrets: content.secrets.clone(),
        };
        let template = |it: &TemplateRequest| TemplateRequest {
            name: it.name.clone(),
            src: it.src.clone(),
            profiles: it.profiles.clone(),
        };
        let head = Question::Render(RenderHead {
            show: self.show,
            node: self.node.clone(),
            profiles: self.profiles.iter().map(profile).collect(),
            templates: self.templates.iter().map(template).collect(),
        });
        let mut bytes = Vec::new();
        put_json(&mut bytes, &head)?;
        self.profiles.values().try_for_each(|it| put(&mut bytes, &it.body))?;
        Ok(bytes)
    }

    fn read(head: RenderHead, input: &mut impl Read) -> io::Result<RenderRequest> {
        let RenderHead { show, node, profiles: heads, templates } = head;
        let mut profiles = BTreeMap::new();
        for ProfileHead { name, content_type, secrets } in heads {
            let body = take(input, usize::MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            profiles.insert(name, Arc::new(Content { content_type, body, secrets }));
        }
        Ok(RenderRequest { show, node, profiles, templates })
    }
}

impl Work {
    pub(super) fn read(mut input: impl Read) -> io::Result<Work> {
        let question = take_json(&mut input, usize::MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(match question {
            Question::Render(head) => Work::Render(RenderRequest::read(head, &mut input)?),
            Question::Compile(files) => Work::Compile(files),
        })
    }
}

pub(super) fn compile_question(files: &[SourceFile]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    put_json(&mut bytes, &Question::Compile(files.to_vec()))?;
    Ok(bytes)
}

pub(super) fn put_compiled(output: &mut impl Write, compiled: &Compiled) -> io::Result<()> {
    put_json(output, compiled)
}

impl RenderAnswer {
    pub(super) fn of_failure(failure: StageFailure) -> RenderAnswer {
        let (template, Trouble(mut trouble)) = match failure {
            StageFailure::Render { template, trouble } => (Some(template), trouble),
            StageFailure::Edited { trouble, .. }
            | StageFailure::Lost { trouble, .. }
            | StageFailure::Disk(trouble) => (None, trouble),
        };
        trouble.truncate(trouble.floor_char_boundary(LONGEST_TROUBLE));
        RenderAnswer::Failed { template, trouble }
    }

    pub(super) fn put(&self, output: &mut impl Write) -> io::Result<()> {
        put_json(output, self)
    }
}

/// All that is answered about so many templates.
pub(super) fn collect(mut input: impl Read, count: usize) -> Result<Vec<Output>, Broken> {
    let (mut made, mut ready) = (Vec::new(), false);
    let (mut files, mut room) = (BTreeMap::<PathBuf, Rendered>::new(), LARGEST_SET);
    let garbled = |why: &str| Broken::Garbled(io::Error::new(io::ErrorKind::InvalidData, why));
    while made.len() < count {
        let (ended, at) = (Broken::Ended { ready, made: made.len() }, made.len());
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut => Broken::Late { made: at },
            _ => Broken::Garbled(error),
        };
        let answer = take_json(&mut input, LONGEST_ANSWER).map_err(broken)?;
        let Some(answer) = answer else { return Err(ended) };
        match answer {
            RenderAnswer::Ready => ready = true,
            RenderAnswer::File { below, uses_secret } => {
                let bytes = take(&mut input, LARGEST_OUTPUT).map_err(broken)?;
                let Some(bytes) = bytes else { return Err(ended) };
                let Some(left) = room.checked_sub(bytes.len()) else {
                    return Err(Broken::TooMuch { made: made.len() });
                };
                room = left;
                files.insert(below, Rendered { bytes, uses_secret });
            }
            RenderAnswer::Made { tree: true } => {
                made.push(Output::Tree(std::mem::take(&mut files)))
            }
            RenderAnswer::Made { tree: false } => match files.pop_first() {
                Some((_, file)) => made.push(Output::File(file)),
                None => return Err(garbled("a template without its file")),
            },
            RenderAnswer::Failed { template, trouble } => {
                let trouble = Trouble(trouble);
                return Err(Broken::Failed(match template {
                    Some(template) => StageFailure::Render { template, trouble },
                    None => StageFailure::Disk(trouble),
                }));
            }
        }
    }
    Ok(made)
}

/// The next template that was compiled. `None`: the process has ended.
pub(super) fn take_compiled(input: &mut impl Read) -> io::Result<Option<Compiled>> {
    take_json(input, LONGEST_NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_makes_no_more_than_the_agent_has_room_for() {
        let mut answers = Vec::new();
        RenderAnswer::Ready.put(&mut answers).expect("into memory");
        let file = RenderAnswer::File { below: PathBuf::new(), uses_secret: false };
        let fits = LARGEST_SET / LARGEST_OUTPUT;
        let mut large = Vec::new();
        file.put(&mut large).expect("into memory");
        put(&mut large, &vec![0; LARGEST_OUTPUT]).expect("into memory");
        RenderAnswer::Made { tree: false }.put(&mut large).expect("into memory");
        let said = |count: usize| {
            let head: Box<dyn Read> = Box::new(&answers[..]);
            (0..count).fold(head, |said, _| Box::new(said.chain(&large[..])))
        };
        assert_eq!(collect(said(fits), fits).expect("it fits").len(), fits);
        let more = collect(said(fits + 1), fits + 1);
        assert!(matches!(more, Err(Broken::TooMuch { made }) if made == fits));
    }
}
