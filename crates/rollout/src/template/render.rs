//! A compiled template, and what it makes of a scope.

use super::{Cause, Scope, TemplateError, error::of_engine, mask::Mask, source};
use mainstay_core::name::Name;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
    escape_formatter, syntax::SyntaxConfig, value::ValueKind,
};
use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Write},
    path::Path,
};

/// The largest file that a template makes.
pub(crate) const LARGEST_OUTPUT: usize = 8 << 20;
/// Steps of one rendering: seconds, not minutes.
const STEPS: u64 = 10_000_000;
/// Of includes, macros and loops; fits into the stack of a pool's thread.
const DEPTH: usize = 100;

/// Compiled, with what it includes read when it is first needed.
pub(crate) struct Template {
    name: Name,
    /// Its file's name, which errors tell.
    file: String,
    environment: Environment<'static>,
}

/// What a template made.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) bytes: Vec<u8>,
    /// It looked at a secret: what it made is not for everybody.
    pub(crate) uses_secret: bool,
}

impl Template {
    /// Reads and compiles a file.
    ///
    /// # Errors
    /// When it cannot be read, or is no template.
    pub(crate) fn compile(name: &Name, path: &Path) -> Result<Template, TemplateError> {
        let unreadable = |error: io::Error| TemplateError {
            template: name.clone(),
            place: None,
            cause: Cause::Unreadable(format!("{}: {error}", path.display())),
        };
        let text = source::read(path).map_err(unreadable)?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut environment = environment().map_err(|error| refused(name, &error))?;
        environment.set_loader(move |include| match source::beside(&directory, include) {
            None => {
                let why = format!("'{include}' is not beside the template");
                Err(Error::new(ErrorKind::TemplateNotFound, why))
            }
            Some(path) => match source::read(&path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => {
                    let why = format!("{}: {error}", path.display());
                    Err(Error::new(ErrorKind::InvalidOperation, why))
                }
            },
        });
        environment
            .add_template_owned(file.clone(), text)
            .map_err(|error| refused(name, &error))?;
        Ok(Template { name: name.clone(), file, environment })
    }

    /// The names that its scope has to have: what it neither sets itself nor finds among the functions
    /// of every template. Those of what it includes are not among them.
    ///
    /// # Errors
    /// Never, of what was compiled.
    pub(crate) fn variables(&self) -> Result<BTreeSet<String>, TemplateError> {
        let template = self.environment.get_template(&self.file);
        let template = template.map_err(|error| refused(&self.name, &error))?;
        let functions: BTreeSet<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let names = template.undeclared_variables(false).into_iter();
        Ok(names.filter(|name| !functions.contains(name.as_str())).collect())
    }

    /// # Errors
    /// With template, line and column; no secret is in it.
    pub(crate) fn render(&self, scope: &Scope) -> Result<Rendered, TemplateError> {
        scope.take_used_secret();
        let mut output = Limited { bytes: Vec::new() };
        let rendered = self
            .environment
            .get_template(&self.file)
            .and_then(|it| it.render_captured_to(scope.context(), &mut output).map(drop));
        match rendered {
            Ok(()) => Ok(Rendered { bytes: output.bytes, uses_secret: scope.take_used_secret() }),
            Err(error) => Err(of_engine(&self.name, &error, scope.mask(), (STEPS, LARGEST_OUTPUT))),
        }
    }
}

fn refused(name: &Name, error: &Error) -> TemplateError {
    of_engine(name, error, &Mask::default(), (STEPS, LARGEST_OUTPUT))
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Files of programs, not pages.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build()?);
    environment.set_formatter(as_json_does);
    environment.set_fuel(Some(STEPS));
    environment.set_recursion_limit(DEPTH);
    // For the column of an error.
    environment.set_debug(true);
    // It shows all that there is.
    environment.remove_global("debug");
    Ok(environment)
}

/// Files of programs say `true`, not `True`.
fn as_json_does(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let word = match value.kind() {
        ValueKind::Bool if value.is_true() => "true",
        ValueKind::Bool => "false",
        ValueKind::None => "null",
        _ => return escape_formatter(out, state, value),
    };
    Ok(out.write_str(word)?)
}

/// Takes so much and no more.
struct Limited {
    bytes: Vec<u8>,
}

impl Write for &mut Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LARGEST_OUTPUT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({}, {})", self.name, self.file)
    }
}

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rendered({} bytes)", self.bytes.len())
    }
}
