//! Where the rules put each job: its app, its place in it, and the nodes it may run on.

use super::{
    identifiers::{Among, Identifiers},
    options::{Generation, Options},
    rule::Rule,
    rules::{Application, Rules, Selector},
};
use crate::{
    draft::{Draft, Table, inline, pair, quoted},
    ini::Section,
    supervisord::{Group, Grouping, Groups, ProgramProcess, program::Program},
};
use std::collections::BTreeMap;

pub(super) struct Placing {
    groups: Groups,
    options: Options,
    rules: Rules,
}

/// A process of an application that the rules know.
struct AppProcess<'r> {
    /// Its place among all processes.
    process: usize,
    rule: Rule,
    /// The pattern that found it; signs are for these.
    pattern: Option<&'r Selector>,
}

const ALONE: &str = "identifiers, expected_loading, distribution, starting_strategy and \
                     RESTART_PROCESS are not kept: there is one node";

impl Placing {
    pub(super) fn new(groups: Groups, options: Options, rules: Rules) -> Placing {
        Placing { groups, options, rules }
    }
}

/// A group that the rules do not know: each node's own.
fn unmanaged(
    draft: &mut Draft,
    groups: &mut Groups,
    is_fleet: bool,
    program: &Program<'_>,
    table: &mut Table,
) {
    if !is_fleet {
        return groups.join(program, table);
    }
    if !program.autostart {
        table.set("autostart", "false");
    }
    if program.group.is_some() || program.count > 1 {
        let message = "a group that the rules do not know: its jobs are each node's own, and are \
                       called by their own names alone";
        draft.gather(program.file(), program.line(""), message);
    }
}

/// Puts jobs where the rules want them.
struct Placement<'a> {
    options: &'a Options,
    rules: &'a Rules,
    identifiers: Identifiers<'a>,
    is_fleet: bool,
}

impl Placement<'_> {
    /// The table of a managed application, and `place` of its jobs.
    fn managed(
        &self,
        draft: &mut Draft,
        (name, valid): (&str, &str),
        members: &[AppProcess<'_>],
        programs: &[Program<'_>],
        processes: &mut [ProgramProcess],
    ) -> Managed {
        let mut table = Table::new(format!("apps.{valid}"), &self.options.file);
        let Some(application) = self.rules.of_application(name) else {
            return Managed { table, stop: 0 };
        };
        let rule = application.rule.clone();
        if valid != name {
            table.remark(format!("the application '{name}'"));
        }
        let mut start = rule.start_sequence.unwrap_or(0);
        let split = !matches!(rule.distribution, Some("one-node" | "one-machine"));
        let of_app = match (self.is_fleet, split) {
            (true, false) => self.identifiers.of_app(draft, name, &rule),
            (_, true) | (false, _) => Among::All,
        };
        if of_app == Among::These(Vec::new()) {
            let message = format!("identifiers: '{name}' has no node: it is not started by itself");
            draft.gather(&rule.file, rule.line, message);
            start = 0;
        }
        if start != 1 {
            table.set("start_sequence", start.to_string());
        }
        let order = StopOrder::of(self.options.generation, members);
        if order == StopOrder::Reverse {
            table.set("stop_order", quoted("reverse"));
        }
        if let Some(word) = rule.on_start_failure.filter(|word| *word != "abort") {
            table.set("on_start_failure", quoted(word));
        }
        if let Some(what) = rule.on_failure
            && what.word() != "continue"
            && (self.is_fleet || what.word() != "restart-process")
        {
            table.set("on_failure", quoted(what.word()));
        }
        if self.is_fleet {
            table.set_if_some("strategy", rule.strategy.map(quoted));
            if let Among::These(these) = &of_app
                && !these.is_empty()
            {
                table.set("nodes", self.identifiers.written(these));
            }
            let far = rule.distribution.filter(|word| *word != "any");
            table.set_if_some("distribution", far.map(quoted));
        }
        let mut ranks: BTreeMap<&str, usize> = BTreeMap::new();
        for member in members {
            let process = &mut processes[member.process];
            let program = &programs[process.program];
            let pattern = member.pattern.map_or("", Selector::text);
            let rank = ranks.entry(pattern).or_insert(0);
            // Once all that one pattern found were counted, now those of one program.
            let index = match self.options.generation {
                Generation::Old => *rank,
                Generation::Today => process.index,
            };
            *rank += 1;
            process.table.set("app", quoted(valid));
            self.place(draft, (&rule, split, order), member, (program, index), &mut process.table);
        }
        let stop = match self.options.generation {
            Generation::Old => rule.stop_sequence.unwrap_or(0),
            Generation::Today => rule.stop_sequence.or(rule.start_sequence).unwrap_or(0),
        };
        Managed { table, stop }
    }

    fn place(
        &self,
        draft: &mut Draft,
        (app, split, order): (&Rule, bool, StopOrder),
        member: &AppProcess<'_>,
        (program, index): (&Program<'_>, usize),
        table: &mut Table,
    ) {
        let rule = &member.rule;
        let mut place = Vec::new();
        let mut start = rule.start_sequence.unwrap_or(0);
        let among = match (self.is_fleet, split) {
            (true, true) => self.identifiers.of_job(draft, rule, member.pattern.is_some(), index),
            (true, false) | (false, _) => Among::All,
        };
        match &among {
            Among::All => {}
            Among::These(these) if these.is_empty() => {
                let message = "identifiers: no node is left for it: it is not started by itself";
                draft.gather(&rule.file, rule.line, message);
                start = 0;
            }
            Among::These(these) => {
                place.push(pair("nodes", self.identifiers.written(these)));
            }
        }
        if start != 1 {
            place.push(pair("start_sequence", start.to_string()));
        }
        if let Some(stop) = order.of_job(rule).filter(|stop| *stop > 0) {
            place.push(pair("stop_sequence", stop.to_string()));
        }
        match (rule.required.unwrap_or(false), start) {
            (true, 0) => {
                let message = "required: not without a start_sequence, as by Supvisors";
                draft.gather(&rule.file, rule.line, message);
            }
            (true, _) => place.push(pair("required", "true")),
            (false, _) => {}
        }
        if rule.wait_exit == Some(true) {
            place.push(pair("wait_exit", "true"));
            if self.is_fleet {
                let message =
                    "wait_exit: after ten minutes the start has failed: place.wait_timeout";
                draft.gather(&rule.file, rule.line, message);
            }
        }
        let on_failure = rule.on_failure.or(app.on_failure);
        if self.is_fleet {
            let load = rule.load.filter(|load| *load > 0);
            place.extend(load.map(|load| pair("load", load.to_string())));
        }
        if let Some(what) = rule.on_failure
            && (self.is_fleet || what.word() != "restart-process")
        {
            place.push(pair("on_failure", quoted(what.word())));
        }
        let starting =
            rule.on_start_failure.filter(|own| *own != app.on_start_failure.unwrap_or("abort"));
        if starting.is_some() {
            let message = "starting_failure_strategy: that of the application counts";
            draft.gather(&rule.file, rule.line, message);
        }
        if !place.is_empty() {
            table.set("place", inline(&place));
        }
        if on_failure.is_some_and(|what| what.is_about_the_app()) {
            table.remark("as Supvisors has it: what the app does about a crash, nothing else does");
            table.set_over("restart", quoted("never"));
        }
        if program.autostart {
            let message = "autostart: the app starts it in its sequence, not every node by itself";
            draft.gather(program.file(), program.line("autostart"), message);
        }
        self.alone(draft, app);
        self.alone(draft, rule);
    }

    /// What only several nodes can have.
    fn alone(&self, draft: &mut Draft, rule: &Rule) {
        let placed = rule.identifiers.as_ref().is_some_and(|it| it.as_slice() != ["*"])
            || rule.load.is_some_and(|load| load > 0)
            || rule.distribution.is_some_and(|word| word != "any")
            || rule.strategy.is_some()
            || rule.on_failure.is_some_and(|what| what.word() == "restart-process");
        if !self.is_fleet && placed {
            draft.gather(&rule.file, rule.line, ALONE);
        }
    }

    /// Elements that nothing here is about.
    fn unused(&self, draft: &mut Draft, programs: &[Program<'_>], processes: &[ProgramProcess]) {
        let app_of = |process: &ProgramProcess| {
            let program = &programs[process.program];
            self.rules.of_application(program.group.unwrap_or(program.name))
        };
        for application in &self.rules.applications {
            let is_it = |it: &Application| std::ptr::eq(it, application);
            let members: Vec<&ProgramProcess> =
                processes.iter().filter(|it| app_of(it).is_some_and(is_it)).collect();
            if members.is_empty() {
                let message = "no program of these files belongs to this application";
                draft.gather(&application.rule.file, application.rule.line, message);
                continue;
            }
            for (selector, rule) in &application.programs {
                let is_used = members
                    .iter()
                    .filter_map(|process| application.of_program(&process.name))
                    .any(|(it, _)| std::ptr::eq(it, selector));
                if !is_used {
                    draft.gather(&rule.file, rule.line, "no process of these files is meant by it");
                }
            }
        }
    }
}

fn member<'r>(
    draft: &mut Draft,
    rules: &'r Rules,
    application: &'r Application,
    process: usize,
    name: &str,
) -> AppProcess<'r> {
    match rules.of_program(draft, application, name) {
        Some((rule, selector @ Selector::Pattern(..))) => {
            AppProcess { process, rule, pattern: Some(selector) }
        }
        Some((rule, Selector::Name(_))) => AppProcess { process, rule, pattern: None },
        None => AppProcess { process, rule: Rule::default(), pattern: None },
    }
}

/// An app, and its rank among those that stop.
struct Managed {
    table: Table,
    stop: u32,
}

/// How the jobs of an app stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopOrder {
    /// As it is written, lowest first.
    Written,
    /// As they started, the other way round.
    Reverse,
    /// Greatest first: counted down from this.
    Down(u32),
}

impl StopOrder {
    fn of(generation: Generation, members: &[AppProcess<'_>]) -> StopOrder {
        let start = |rule: &Rule| rule.start_sequence.unwrap_or(0);
        let stop = |rule: &Rule| rule.stop_sequence.unwrap_or(start(rule));
        match generation {
            Generation::Old => StopOrder::Written,
            Generation::Today if members.iter().all(|it| stop(&it.rule) == start(&it.rule)) => {
                StopOrder::Reverse
            }
            Generation::Today => {
                StopOrder::Down(members.iter().map(|it| stop(&it.rule)).max().unwrap_or(0))
            }
        }
    }

    fn of_job(self, rule: &Rule) -> Option<u32> {
        match self {
            StopOrder::Written => rule.stop_sequence,
            StopOrder::Reverse => None,
            StopOrder::Down(most) => {
                let stop = rule.stop_sequence.or(rule.start_sequence).unwrap_or(0);
                Some(most.saturating_sub(stop))
            }
        }
    }
}

impl Grouping for Placing {
    fn groups(&self) -> &[Group] {
        self.groups.groups()
    }

    fn takes(&self, section: &Section) -> bool {
        matches!(
            section.name.as_str(),
            "supvisors" | "rpcinterface:supvisors" | "ctlplugin:supvisors"
        )
    }

    fn place(
        &mut self,
        draft: &mut Draft,
        programs: &[Program<'_>],
        processes: &mut [ProgramProcess],
    ) -> Vec<Table> {
        let Placing { groups, options, rules } = self;
        let identifiers = Identifiers { options, rules };
        let placement =
            Placement { options, rules, identifiers, is_fleet: options.nodes.is_fleet() };
        placement.unused(draft, programs, processes);
        let mut apps: Vec<(String, Vec<AppProcess<'_>>)> = Vec::new();
        for (at, process) in processes.iter_mut().enumerate() {
            let program = &programs[process.program];
            let name = program.group.unwrap_or(program.name);
            let Some(application) = rules.of_application(name) else {
                unmanaged(draft, groups, placement.is_fleet, program, &mut process.table);
                continue;
            };
            let member = member(draft, rules, application, at, &process.name);
            match apps.iter_mut().find(|(known, _)| known == name) {
                Some((_, members)) => members.push(member),
                None => apps.push((name.to_owned(), vec![member])),
            }
        }
        let unmanaged = groups.tables(programs);
        let mut managed: Vec<Managed> = Vec::new();
        for (name, members) in &apps {
            let valid = groups.app(name);
            managed.push(placement.managed(draft, (name, &valid), members, programs, processes));
        }
        let most = managed.iter().map(|it| it.stop).max().unwrap_or(0);
        let mut tables: Vec<Table> = options.fleet().into_iter().chain(unmanaged).collect();
        for Managed { mut table, stop } in managed {
            let stop = match options.generation {
                Generation::Old => stop,
                Generation::Today => most - stop,
            };
            if stop > 0 {
                table.set("stop_sequence", stop.to_string());
            }
            tables.push(table);
        }
        tables
    }

    fn node(&self, table: &mut Table) {
        self.options.node(table);
    }
}
