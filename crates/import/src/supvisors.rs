//! Supvisors: the INI files of supervisord with its section, and the rules in XML.
//!
//! ```text
//!  [supvisors], [rpcinterface:supvisors] ─► Options ─► [fleet]
//!  <application>, <program>, <model>     ─► Rules ──► Placing ─► [apps.x], `place` of jobs
//!  [program:x], [group:x]                ─► supervisord's importer ─► [jobs.x]
//! ```
//!
//! An application of the rules is an app, and its jobs are placed; every other program is each
//! node's own, as it is there. The files of one node make the file of that node.

mod identifiers;
mod nodes;
mod options;
mod placing;
mod rule;
mod rules;

use super::{
    ForeignFile, Imported,
    draft::Draft,
    supervisord::{self, Groups, include::Sections},
};
use mainstay_config::{Context, Diagnostic, Errors};
use options::Options;
use placing::Placing;
use rules::Rules;

pub(super) fn import(
    first: &ForeignFile,
    others: &[ForeignFile],
    ctx: &Context,
) -> Result<Imported, Errors> {
    let name = &first.source.name;
    if is_rules(first) {
        let help = "name supervisord's configuration first, the rules after it";
        return Err(Diagnostic::error("this is a file of rules").file(name).help(help).into());
    }
    let (given, files): (Vec<&ForeignFile>, Vec<&ForeignFile>) =
        others.iter().partition(|file| is_rules(file));
    let mut draft = Draft::new("a Supvisors configuration", name);
    let mut sections = Sections::read(&mut draft, first, &files, ctx);
    let groups = Groups::read(&mut sections, name);
    let Some(options) = Options::read(&mut draft, &mut sections, ctx) else {
        let help = "without Supvisors it is a supervisord file: mainstay import supervisord FILE";
        let message = "there is neither [supvisors] nor [rpcinterface:supvisors] in it";
        return Err(Diagnostic::error(message).file(name).help(help).into());
    };
    // Those that are named by hand stand for those that the file names.
    let rules = match given.is_empty() {
        true => Rules::of_files(&mut draft, &options.rules_files, &mut sections.problems),
        false => Rules::read(&mut draft, &given, &mut sections.problems),
    };
    let mut placing = Placing::new(groups, options, rules);
    supervisord::convert(draft, sections, name, ctx, &mut placing)
}

fn is_rules(file: &ForeignFile) -> bool {
    let named = file.path.extension().is_some_and(|it| it.eq_ignore_ascii_case("xml"));
    named || file.source.text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}
