//! The template layer: a file is a Go text/template over the environment, rendered before it is
//! read. What comes out remembers where each part of it stands in the file, so that a mistake found
//! later is shown where somebody wrote it.
//!
//! ```text
//! file ─► tree, with a mark before every action ─► rendered text + segments (rendered ─► original)
//! ```
//!
//! The engine knows no positions while it runs. Each text of the tree is an allocation of its own,
//! so the writer can tell by its address which text it is being given; what it is given otherwise
//! was made by the action that was marked last.

use super::{
    actions, functions,
    work::{self, WorkBudget},
};
use gotmpl::{
    Template, TemplateError, Value,
    parse::{BranchNode, CommandNode, Expr, ListNode, Node, Parser, PipeNode, Pos, TextNode},
};
use mainstay_config::nearest;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    sync::Arc,
};

/// As large as a file may be.
const LARGEST: usize = 8 << 20;
const MOST_ROUNDS: u64 = 1_000_000;
const MOST_ARGUMENTS: usize = 128;
/// The file itself among its named templates; no `define` can take it.
const WHOLE: &str = "\0file";
const MARK: &str = "\0";
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A rendered file.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) text: String,
    /// Variables it uses with a `=` in their value, which 3.8.0 cut there.
    pub(super) cut: Vec<String>,
    segments: Vec<Segment>,
}

/// A stretch of the rendered text, up to the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Segment {
    /// Where it begins in the rendered text.
    out: usize,
    from: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    /// Copied, from here on.
    Text(usize),
    /// Made by the action that is written here.
    Action(usize),
}

/// Why there is no rendered text, and where in the file.
#[derive(Debug, PartialEq)]
pub(super) struct RenderError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

/// A place of the rendered text, in the file.
#[derive(Debug, PartialEq)]
pub(super) struct Original {
    pub(super) span: Range<usize>,
    /// It is written there as it is; otherwise an action made it.
    pub(super) exact: bool,
}

impl Rendered {
    /// A text in which nothing is to be rendered.
    pub(super) fn plain(text: &str) -> Rendered {
        let segments = vec![Segment { out: 0, from: Origin::Text(0) }];
        Rendered { text: text.to_owned(), cut: Vec::new(), segments }
    }

    /// Where a stretch of the rendered text comes from; `file` is the original.
    pub(super) fn original(&self, span: Range<usize>, file: &str) -> Original {
        let (begin, segment) = self.origin(span.start, file);
        let last = span.end.max(span.start + 1) - 1;
        let (end, other) = self.origin(last, file);
        // A loop may have gone back in the file between the two.
        let end = if end.end > begin.start { end.end } else { begin.end };
        let exact = segment == other && matches!(segment, Some(Origin::Text(_)));
        let empty = exact && span.is_empty();
        Original { span: begin.start..if empty { begin.start } else { end }, exact }
    }

    /// Where one byte comes from: itself, or the action that made it.
    fn origin(&self, at: usize, file: &str) -> (Range<usize>, Option<Origin>) {
        let after = self.segments.partition_point(|it| it.out <= at);
        let Some(segment) = after.checked_sub(1).and_then(|at| self.segments.get(at)) else {
            return (0..0, None);
        };
        let span = match segment.from {
            Origin::Text(start) => start + (at - segment.out)..start + (at - segment.out) + 1,
            Origin::Action(start) => action(file, start),
        };
        (span, Some(segment.from))
    }
}

/// Renders a file over the variables of the environment.
pub(super) fn render(file: &str, env: &BTreeMap<String, String>) -> Result<Rendered, RenderError> {
    if !file.contains(OPEN) {
        return Ok(Rendered::plain(file));
    }
    if let Some(bad) = actions::unended(file) {
        return Err(bad);
    }
    let (tree, defines) = Parser::new(file, OPEN, CLOSE)
        .and_then(Parser::parse)
        .map_err(|error| unparsed(file, &error))?;
    if let Some(bad) = actions::unbalanced(file) {
        return Err(bad);
    }
    let mut marks =
        Marks { file, pieces: BTreeMap::new(), fields: BTreeSet::new(), unknown: None, longest: 0 };
    let mut template = Template::new(WHOLE).max_range_iters(MOST_ROUNDS);
    template = template.add_parse_tree(WHOLE, marks.list(tree));
    for define in defines {
        template = template.add_parse_tree(&define.name, marks.list(define.body));
    }
    if let Some(bad) = marks.unknown {
        return Err(bad);
    }
    let has_equals = |name: &&String| env.get(*name).is_some_and(|value| value.contains('='));
    let cut: Vec<String> = marks.fields.iter().filter(has_equals).cloned().collect();
    // An unset variable is empty text, not `<no value>`.
    let unset = marks.fields.into_iter().map(|name| (name, String::new()));
    let mut all: BTreeMap<String, String> = unset.collect();
    all.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let dot = all.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
    let dot = Value::Map(Arc::new(dot.map(|(k, v)| (k, Value::String(v))).collect()));
    let variables = env.values().map(String::len).max().unwrap_or_default();
    let work = Arc::new(WorkBudget::new(variables.max(marks.longest)));
    for (name, function) in functions::all(env, &work) {
        template = template.func(name, function);
    }
    let mut output = RenderOutput {
        text: String::new(),
        segments: Vec::new(),
        pieces: &marks.pieces,
        at: 0,
        actions: 0,
        full: None,
    };
    match template.execute_template_fmt(&mut output, WHOLE, &dot) {
        Ok(()) => Ok(Rendered { text: output.text, cut, segments: output.segments }),
        Err(error) => {
            let (message, help) = match output.full {
                Some(why) => (why.to_owned(), "make the loops shorter"),
                None => told(&error),
            };
            let help = help.to_owned();
            Err(RenderError { span: action(file, output.at), message, help })
        }
    }
}

/// What the engine says about a tree that it ran.
fn told(error: &TemplateError) -> (String, &'static str) {
    let help = match error {
        TemplateError::ArgCount { .. } => "check its arguments; a piped value is the last one",
        TemplateError::RangeIterLimit => "make the loops shorter",
        _ => "correct it here",
    };
    let text = error.to_string();
    let text = text.strip_prefix("execution error: ").unwrap_or(&text);
    if text == work::TOO_MUCH {
        return (text.to_owned(), "make the loops shorter");
    }
    (format!("the template cannot be rendered: {text}"), help)
}

fn unparsed(file: &str, error: &TemplateError) -> RenderError {
    let help = "correct it: files are Go templates, {{ .NAME }} is a variable".to_owned();
    match error {
        TemplateError::Parse { line, col, message, .. }
        | TemplateError::Lex { line, col, message, .. } => {
            let begin = file.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            let rest = file.get(begin..).unwrap_or_default();
            let inside = rest.char_indices().nth(col.saturating_sub(1)).map_or(0, |(at, _)| at);
            let at = begin + inside;
            // An action that runs on into other lines was not closed where somebody meant to.
            let before = file.get(..at).unwrap_or_default();
            let opened = before.rfind(OPEN).filter(|it| before[*it..].contains('\n'));
            let at = opened.unwrap_or(at);
            RenderError { span: at..at + 1, message: format!("not a template: {message}"), help }
        }
        other => RenderError { span: 0..0, message: format!("not a template: {other}"), help },
    }
}

/// The whole of the action that `at` is in.
fn action(file: &str, at: usize) -> Range<usize> {
    let at = file.floor_char_boundary(at);
    let (before, after) = file.split_at(at);
    let begin = match after.starts_with(OPEN) {
        true => at,
        false => before.rfind(OPEN).unwrap_or(at),
    };
    let end = after.find(CLOSE).map_or(at, |end| at + end + CLOSE.len());
    begin..end.max(begin)
}

/// What a text of the tree is.
enum Piece {
    /// A text of the file, from this offset.
    Text(usize),
    /// The mark before an action at this offset.
    Mark(usize),
}

/// Puts a mark before every action, and looks at what the actions use.
struct Marks<'a> {
    file: &'a str,
    /// By the address of a text.
    pieces: BTreeMap<usize, Piece>,
    /// Variables that are asked for by name.
    fields: BTreeSet<String>,
    /// The first function that does not exist, or is given too much.
    unknown: Option<RenderError>,
    /// The length of the longest text in an action.
    longest: usize,
}

impl Marks<'_> {
    fn list(&mut self, list: ListNode) -> ListNode {
        let mut nodes = Vec::with_capacity(list.nodes.len() * 2);
        for node in list.nodes {
            let at = match &node {
                Node::Text(text) => {
                    let from = self.file.get(text.pos.offset..).unwrap_or_default();
                    // A trimmed text begins after what was trimmed.
                    let trimmed = match from.starts_with(&*text.text) {
                        true => 0,
                        false => from.len() - from.trim_start().len(),
                    };
                    let piece = Piece::Text(text.pos.offset + trimmed);
                    self.pieces.insert(text.text.as_ptr().addr(), piece);
                    nodes.push(node);
                    continue;
                }
                Node::Action(action) => action.pos,
                Node::If(branch) | Node::Range(branch) | Node::With(branch) => branch.pos,
                Node::Template(call) => call.pos,
                Node::Define(define) => define.pos,
                Node::List(list) => list.pos,
                Node::Break(pos) | Node::Continue(pos) => *pos,
            };
            nodes.push(self.mark(at));
            nodes.push(self.node(node));
        }
        ListNode { pos: list.pos, nodes }
    }

    fn node(&mut self, node: Node) -> Node {
        match node {
            Node::If(branch) => Node::If(self.branch(branch)),
            Node::Range(branch) => Node::Range(self.branch(branch)),
            Node::With(branch) => Node::With(self.branch(branch)),
            Node::List(list) => Node::List(self.list(list)),
            Node::Action(mut action) => {
                self.pipe(&mut action.pipe);
                Node::Action(action)
            }
            Node::Template(mut call) => {
                call.pipe.iter_mut().for_each(|pipe| self.pipe(pipe));
                Node::Template(call)
            }
            other @ (Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_)) => other,
        }
    }

    fn branch(&mut self, mut branch: BranchNode) -> BranchNode {
        self.pipe(&mut branch.pipe);
        BranchNode {
            pos: branch.pos,
            pipe: branch.pipe,
            body: self.list(branch.body),
            else_body: branch.else_body.map(|list| self.list(list)),
        }
    }

    fn mark(&mut self, pos: Pos) -> Node {
        let text: Arc<str> = MARK.into();
        self.pieces.insert(text.as_ptr().addr(), Piece::Mark(pos.offset));
        Node::Text(TextNode { pos, text })
    }

    /// Every value goes through one more function, which bounds it: text that is doubled again and
    /// again would fill the memory before anything of it is written.
    fn pipe(&mut self, pipe: &mut PipeNode) {
        let commands = std::mem::take(&mut pipe.commands);
        for mut command in commands {
            if command.args.len() > MOST_ARGUMENTS && self.unknown.is_none() {
                let span = action(self.file, command.pos.offset);
                let message = format!("more than {MOST_ARGUMENTS} arguments in a template");
                let help = "split it into several actions".to_owned();
                self.unknown = Some(RenderError { span, message, help });
            }
            command.args.iter_mut().for_each(|expr| self.expr(expr));
            pipe.commands.push(command);
            let bound = Expr::Identifier(pipe.pos, functions::BOUND.into());
            pipe.commands.push(CommandNode { pos: pipe.pos, args: vec![bound] });
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Field(_, names) | Expr::Variable(_, _, names) => {
                self.fields.extend(names.first().map(|name| name.to_string()));
            }
            Expr::Identifier(pos, name) => self.function(*pos, name),
            Expr::Pipe(_, pipe) => self.pipe(pipe),
            Expr::Chain(_, inner, _) => self.expr(inner),
            Expr::String(_, text) => self.longest = self.longest.max(text.len()),
            Expr::Dot(_) | Expr::Number(..) | Expr::Bool(..) | Expr::Nil(_) => {}
        }
    }

    fn function(&mut self, pos: Pos, name: &str) {
        if functions::NAMES.contains(&name) || self.unknown.is_some() {
            return;
        }
        let help = match nearest(name, functions::NAMES.into_iter()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("a variable is written {{{{ .{name} }}}}, with a dot"),
        };
        let message = format!("the template uses a function '{name}' that does not exist");
        self.unknown =
            Some(RenderError { span: pos.offset..pos.offset + name.len(), message, help });
    }
}

struct RenderOutput<'a> {
    text: String,
    segments: Vec<Segment>,
    pieces: &'a BTreeMap<usize, Piece>,
    /// The action that was marked last.
    at: usize,
    /// How many there were.
    actions: u64,
    /// Why there is no more.
    full: Option<&'static str>,
}

impl fmt::Write for RenderOutput<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.is_empty() {
            return Ok(());
        }
        let from = match self.pieces.get(&text.as_ptr().addr()) {
            Some(Piece::Mark(at)) => {
                self.at = *at;
                self.actions += 1;
                if self.actions > work::MOST_ACTIONS {
                    self.full = Some(work::TOO_MUCH);
                    return Err(fmt::Error);
                }
                return Ok(());
            }
            Some(Piece::Text(at)) => Origin::Text(*at),
            None => Origin::Action(self.at),
        };
        if self.text.len() + text.len() > LARGEST {
            self.full = Some("the rendered file is larger than 8 MiB");
            return Err(fmt::Error);
        }
        // A value that is written in pieces is still one stretch.
        let same = |last: &Segment| last.from == from && matches!(from, Origin::Action(_));
        if !self.segments.last().is_some_and(same) {
            self.segments.push(Segment { out: self.text.len(), from });
        }
        self.text.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
