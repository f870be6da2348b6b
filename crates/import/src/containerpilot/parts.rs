//! The files of a configuration, rendered: one, or those of a directory in lexical order.
//!
//! The texts lie behind each other in one numbering, so that a span says by itself which file it is
//! in. `jobs` and `watches` of all files make one list; any other key may be in one of them.

use super::{
    json5::{self, Json5Error, Json5Node, Json5Value, Member},
    reader::Span,
    template::{self, Rendered},
};
use mainstay_config::{Context, Diagnostic, Errors, Source};
use mainstay_core::text::bytes;
use std::{fs, io, path::Path};

/// How the files of a directory end.
const ENDINGS: [&str; 2] = ["json5", "json"];
const LISTS: [&str; 2] = ["jobs", "watches"];

pub(super) struct Parts<'a> {
    all: Vec<Part<'a>>,
}

struct Part<'a> {
    source: &'a Source,
    rendered: Rendered,
    /// Where its text begins.
    base: usize,
}

/// A place in a file as it was written.
pub(super) struct Located<'p> {
    pub(super) source: &'p Source,
    pub(super) span: Span,
    /// What a template has made, and the line of the rendered text that it is in.
    pub(super) made: Option<(usize, &'p str)>,
}

/// The file, or those of a directory; hidden ones are left alone.
pub(crate) fn read(path: &Path) -> Result<Vec<Source>, Errors> {
    if !fs::metadata(path).is_ok_and(|it| it.is_dir()) {
        return Ok(vec![Source::read(path)?]);
    }
    let name = bytes::from_os(path.as_os_str());
    let list = || -> io::Result<Vec<_>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path)? {
            let file = entry?.path();
            let ends = file.extension().and_then(|it| it.to_str());
            let hidden = file.file_name().is_some_and(|it| it.as_encoded_bytes()[0] == b'.');
            if ends.is_some_and(|it| ENDINGS.contains(&it)) && !hidden {
                files.push(file);
            }
        }
        files.sort();
        Ok(files)
    };
    let files = list().map_err(|error| {
        Diagnostic::error(format!("the directory cannot be read: {error}")).file(&name)
    })?;
    if files.is_empty() {
        let none = Diagnostic::error("no *.json5 or *.json file in this directory");
        return Err(none.file(name).help("put the configuration there, or name a file").into());
    }
    files.iter().map(|file| Source::read(file)).collect()
}

impl<'a> Parts<'a> {
    pub(super) fn render(sources: &'a [Source], ctx: &Context) -> Result<Parts<'a>, Errors> {
        let (mut all, mut base, mut wrong) = (Vec::new(), 0, Vec::new());
        for source in sources {
            match template::render(&source.text, &ctx.env) {
                Ok(rendered) => {
                    let length = rendered.text.len();
                    all.push(Part { source, rendered, base });
                    // A place right behind the end is still this one's.
                    base += length + 1;
                }
                Err(bad) => {
                    let told = Diagnostic::error(bad.message).help(bad.help);
                    wrong.push(told.at(source, bad.span));
                }
            }
        }
        match wrong.is_empty() {
            true => Ok(Parts { all }),
            false => Err(Errors::of_file(wrong)),
        }
    }

    /// What the files say together.
    pub(super) fn tree(&self) -> Result<Json5Node, Json5Error> {
        let mut whole: Option<Json5Node> = None;
        for part in &self.all {
            let mut tree = json5::parse(&part.rendered.text)
                .map_err(|bad| Json5Error { span: moved(&bad.span, part.base), ..bad })?;
            shift(&mut tree, part.base);
            match &mut whole {
                None => whole = Some(tree),
                Some(whole) => add(whole, tree),
            }
        }
        let nothing = Json5Node { span: 0..0, value: Json5Value::Map(Vec::new()) };
        Ok(whole.unwrap_or(nothing))
    }

    fn part(&self, at: usize) -> Option<&Part<'a>> {
        let after = self.all.partition_point(|part| part.base <= at);
        self.all.get(after.saturating_sub(1))
    }

    /// `None` only where there is no file at all.
    pub(super) fn locate(&self, span: &Span) -> Option<Located<'_>> {
        let part = self.part(span.start)?;
        let own = span.start - part.base..span.end.max(span.start) - part.base;
        let original = part.rendered.original(own.clone(), &part.source.text);
        let text = &part.rendered.text;
        let made = (!original.exact).then(|| {
            let line = 1 + text.get(..own.start).map_or(0, |it| it.matches('\n').count());
            (line, text.get(own).unwrap_or_default())
        });
        Some(Located { source: part.source, span: original.span, made })
    }

    /// `FILE:LINE`, as it was written.
    pub(super) fn written_at(&self, span: &Span) -> Option<String> {
        let at = self.locate(span)?;
        Some(format!("{}:{}", at.source.name, at.source.line(at.span.start) + 1))
    }

    /// The rendered texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|part| part.rendered.text.as_str())
    }

    /// Variables whose value 3.8.0 cut short.
    pub(super) fn cut(&self) -> impl Iterator<Item = &String> {
        self.all.iter().flat_map(|part| &part.rendered.cut)
    }
}

fn moved(span: &Span, base: usize) -> Span {
    span.start + base..span.end + base
}

fn shift(node: &mut Json5Node, base: usize) {
    node.span = moved(&node.span, base);
    match &mut node.value {
        Json5Value::List(all) => all.iter_mut().for_each(|node| shift(node, base)),
        Json5Value::Map(all) => {
            for Member { span, node, .. } in all {
                *span = moved(span, base);
                shift(node, base);
            }
        }
        Json5Value::Null | Json5Value::Bool(_) | Json5Value::Number(_) | Json5Value::Text(_) => {}
    }
}

/// Adds what another file says. A key that is in both stays there twice, and is told.
fn add(whole: &mut Json5Node, other: Json5Node) {
    let (Json5Value::Map(members), Json5Value::Map(more)) = (&mut whole.value, other.value) else {
        return;
    };
    for member in more {
        let same = members
            .iter_mut()
            .find(|it| it.key == member.key && LISTS.contains(&member.key.as_str()));
        match (same.map(|it| &mut it.node.value), member.node.value) {
            (Some(Json5Value::List(all)), Json5Value::List(more)) => all.extend(more),
            (_, value) => {
                let node = Json5Node { span: member.node.span, value };
                members.push(Member { key: member.key, span: member.span, node });
            }
        }
    }
}
