//! A small world around a node: a keeper that does what the real one promises, an agent that can
//! die between any two of its actions, processes that end when they like, people who ask.
//!
//! What happens next is chosen from [`World::choices`], by chance (`properties`) or exhaustively
//! (`exhaustive`). What must never happen is written into `broken`.
//!
//! Time does not pass by itself: a wait may end whenever something could take that long, which is
//! at any moment. So each order of events that a real clock allows is among the choices.

mod keeper;
mod ledger;

use keeper::{Keeper, Kept, Record};
use ledger::{Account, Told};
use mainstay_core::{
    clock::{Mono, Now},
    event::Source,
    exit::{Asked, Exit},
    job::Job,
    name::Name,
    node::{Command, Held, Input, Node, NodePhase, NodeState, Outcome, Request, Token},
    plan::Plan,
    record::{Memory, Record as Journaled},
    signal::Signal,
    task::{TaskId, TaskOutcome},
};
use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// How often things may happen that nobody has to answer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    pub agent_deaths: u32,
    /// Exits by themselves, and spawns that fail.
    pub exits: u32,
    pub requests: u32,
    pub shutdowns: u32,
    /// Stops through a control socket, past the agent.
    pub control_stops: u32,
}

/// Which mistake the agent makes, to see that the world notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agency {
    Correct,
    /// Acknowledges an exit record before the decision that follows is journaled.
    AcknowledgesTooEarly,
    /// Takes a record for the end of whatever runs now.
    IgnoresIncarnations,
    /// Forgets that the commands of the last step may not have been carried out.
    ForgetsToAttach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The agent does the next thing it has to do, or takes the next message.
    Agent,
    AgentDies,
    AgentStarts,
    Exec {
        job: usize,
        well: bool,
    },
    Ends {
        job: usize,
        code: i32,
    },
    /// Of the signals that were sent to it.
    Dies {
        job: usize,
    },
    TaskEnds {
        job: usize,
    },
    WaitEnds {
        index: usize,
    },
    Asks {
        job: usize,
        what: What,
    },
    AsksForShutdown,
    ControlStop {
        job: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    Start,
    Stop,
    Restart,
    Kill,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub left: Scope,
    pub journal: Saved,
    pub agent: Option<Agent>,
    pub keeper: Keeper,
    pub ledger: Vec<Account>,
    /// The first promise that was not kept.
    pub broken: Option<&'static str>,
    pub exit: Option<i32>,
}

/// A node as the journal has it.
#[derive(Debug, Clone)]
pub struct Saved {
    seq: u64,
    pub state: NodeState,
    pub jobs: Vec<Job>,
}

/// Two nodes that differ in the number of events told so far have the same future.
impl PartialEq for Saved {
    fn eq(&self, other: &Saved) -> bool {
        self.state == other.state && self.jobs == other.jobs
    }
}

impl Eq for Saved {}

impl Hash for Saved {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.state.hash(state);
        self.jobs.hash(state);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Agent {
    /// What it thinks; the journal, unless it makes a mistake.
    pub mind: Saved,
    pub todo: VecDeque<Todo>,
    pub inbox: VecDeque<Message>,
    pub waits: Vec<(Token, Mono)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Todo {
    /// The numbers of the events, and what they tell of which job.
    Journal(Vec<u64>, Vec<(usize, Told)>),
    Acknowledge(u64),
    Do(Action),
}

/// A command, in a form that can be compared and hashed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    Spawn { job: Name, incarnation: u64 },
    Stop { job: Name, incarnation: u64 },
    Kill { job: Name, incarnation: u64 },
    Rest { job: Name, incarnation: u64 },
    Run(TaskId),
    Wake(Token, Mono),
    Exit(i32),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Message {
    Boot,
    Attached { held: Vec<Held> },
    Spawned { job: usize, incarnation: u64 },
    Exited(Record),
    TaskDone(TaskId),
}

impl World {
    pub fn new(plan: &Plan, left: Scope) -> World {
        let saved = save(&Node::new(plan.clone()));
        let agent = Agent {
            mind: saved.clone(),
            todo: VecDeque::new(),
            inbox: VecDeque::from([Message::Boot]),
            waits: Vec::new(),
        };
        let jobs = plan.jobs.len();
        World {
            left,
            journal: saved,
            agent: Some(agent),
            keeper: Keeper::new(jobs),
            ledger: vec![Account::default(); jobs],
            broken: None,
            exit: None,
        }
    }

    /// All that can happen next.
    pub fn choices(&self, choices: &mut Vec<Choice>) {
        if self.exit.is_some() || self.broken.is_some() {
            return;
        }
        match &self.agent {
            None => choices.push(Choice::AgentStarts),
            Some(agent) => self.agent_choices(agent, choices),
        }
        for (job, kept) in self.keeper.jobs.iter().enumerate() {
            self.process_choices(job, kept, choices);
        }
    }

    fn agent_choices(&self, agent: &Agent, choices: &mut Vec<Choice>) {
        if self.left.agent_deaths > 0 {
            choices.push(Choice::AgentDies);
        }
        if !agent.todo.is_empty() {
            return choices.push(Choice::Agent);
        }
        if !agent.inbox.is_empty() {
            choices.push(Choice::Agent);
        }
        if matches!(agent.inbox.front(), Some(Message::Boot | Message::Attached { .. })) {
            return;
        }
        // What is killed is gone in time, and has told of it.
        let awaited = !self.keeper.is_empty() || !agent.inbox.is_empty();
        let waits = agent.waits.iter().enumerate();
        let ended = waits.filter(|(_, (token, _))| *token != Token::ShutdownOverdue || !awaited);
        choices.extend(ended.map(|(index, _)| Choice::WaitEnds { index }));
        if self.left.requests > 0 {
            for job in 0..self.keeper.jobs.len() {
                let all = [What::Start, What::Stop, What::Restart, What::Kill];
                choices.extend(all.map(|what| Choice::Asks { job, what }));
            }
        }
        if self.left.shutdowns > 0 {
            choices.push(Choice::AsksForShutdown);
        }
    }

    fn process_choices(&self, job: usize, kept: &Kept, choices: &mut Vec<Choice>) {
        if kept.task.is_some() {
            choices.push(Choice::TaskEnds { job });
        }
        let Some(live) = &kept.live else { return };
        if !live.executed {
            choices.push(Choice::Exec { job, well: true });
            if self.left.exits > 0 {
                choices.push(Choice::Exec { job, well: false });
            }
        } else if self.left.exits > 0 {
            choices.push(Choice::Ends { job, code: 0 });
            choices.push(Choice::Ends { job, code: 1 });
        }
        match live.asked {
            Asked::None if self.left.control_stops > 0 => choices.push(Choice::ControlStop { job }),
            Asked::None => {}
            Asked::Stop | Asked::Kill => choices.push(Choice::Dies { job }),
        }
    }

    pub fn choose(&mut self, plan: &Plan, agency: Agency, choice: Choice) {
        match choice {
            Choice::Agent => self.agent_acts(plan, agency),
            Choice::AgentDies => {
                self.left.agent_deaths -= 1;
                self.agent = None;
            }
            Choice::AgentStarts => self.agent_starts(plan, agency),
            Choice::Exec { job, well: true } => {
                let incarnation = self.keeper.execute(job);
                self.tell_agent(Message::Spawned { job, incarnation });
            }
            Choice::Exec { job, well: false } => {
                self.left.exits -= 1;
                self.ends(job, Exit::Error { error: "exec".to_owned(), errno: 2 });
            }
            Choice::Ends { job, code } => {
                self.left.exits -= 1;
                self.ends(job, Exit::Code { code });
            }
            Choice::Dies { job } => {
                let live = self.keeper.jobs[job].live.as_ref().expect("a process");
                let signal = match live.asked {
                    Asked::None | Asked::Stop => Signal::TERM,
                    Asked::Kill => Signal::KILL,
                };
                self.ends(job, Exit::Signal { signal, oom: false });
            }
            Choice::TaskEnds { job } => {
                let task = self.keeper.jobs[job].task.take().expect("a task");
                self.tell_agent(Message::TaskDone(task));
            }
            Choice::WaitEnds { index } => {
                let agent = self.agent.as_mut().expect("an agent");
                let (token, at) = agent.waits.remove(index);
                self.step(plan, agency, at, Input::Timer { token }, None);
            }
            Choice::Asks { job: place, what } => {
                self.left.requests -= 1;
                let job = plan.jobs[place].name.clone();
                let request = match what {
                    What::Start => Request::Start { jobs: vec![job], args: None, now: false },
                    What::Stop => Request::Stop { job },
                    What::Restart => Request::Restart { jobs: vec![job], args: None },
                    What::Kill => Request::Kill { job },
                };
                self.step(plan, agency, Mono(0), Input::Request(request), None);
                if self.journal.state.phase() != NodePhase::Stopping {
                    let run = matches!(what, What::Start | What::Restart);
                    self.ledger[place].wanted = Some(run);
                }
            }
            Choice::AsksForShutdown => {
                self.left.shutdowns -= 1;
                self.step(plan, agency, Mono(0), Input::Signalled { signal: Signal::TERM }, None);
            }
            Choice::ControlStop { job } => {
                self.left.control_stops -= 1;
                self.keeper.ask_past_agent(job);
            }
        }
    }

    fn agent_acts(&mut self, plan: &Plan, agency: Agency) {
        let agent = self.agent.as_mut().expect("an agent");
        if let Some(todo) = agent.todo.pop_front() {
            return match todo {
                Todo::Journal(numbers, told) => {
                    self.journal = agent.mind.clone();
                    self.note(&numbers, &told);
                }
                Todo::Acknowledge(number) => self.keeper.acknowledge(number),
                Todo::Do(action) => self.carry_out(plan, action),
            };
        }
        let message = agent.inbox.pop_front().expect("a message");
        let (input, record) = match message {
            Message::Boot => (Input::Boot, None),
            Message::Attached { held } => (
                Input::Attached { held, agent_restarts: 1, upgraded: Vec::new(), lost: None },
                None,
            ),
            Message::Spawned { job, incarnation } => {
                let job = plan.jobs[job].name.clone();
                (Input::Spawned { job, incarnation, pid: pid(incarnation) }, None)
            }
            Message::Exited(record) => {
                let job = plan.jobs[record.job].name.clone();
                let incarnation = match agency {
                    Agency::IgnoresIncarnations => agent.mind.jobs[record.job].incarnation(),
                    Agency::Correct | Agency::AcknowledgesTooEarly | Agency::ForgetsToAttach => {
                        record.incarnation
                    }
                };
                if record.past_agent {
                    // A start of what still ran was granted; then it ended as others wished.
                    self.ledger[record.job].wanted = None;
                }
                let Record { number, exit, asked, .. } = record;
                (Input::Exited { job, incarnation, exit, usage: None, asked }, Some(number))
            }
            Message::TaskDone(id) => {
                let exit = Exit::Code { code: 0 };
                let outcome = TaskOutcome { exit, output: String::new(), truncated: false };
                (Input::TaskDone { id, outcome }, None)
            }
        };
        self.step(plan, agency, Mono(0), input, record);
    }

    fn step(&mut self, plan: &Plan, agency: Agency, mono: Mono, input: Input, record: Option<u64>) {
        let agent = self.agent.as_mut().expect("an agent");
        let mut node = restore(plan, &agent.mind);
        let outcome = node.step(Now { mono, wall: 0 }, input);
        agent.mind = save(&node);
        let (numbers, told) = told(plan, &outcome);
        let journal = Todo::Journal(numbers, told);
        let acknowledge = record.map(Todo::Acknowledge);
        match agency {
            Agency::AcknowledgesTooEarly => {
                agent.todo.extend(acknowledge);
                agent.todo.push_back(journal);
            }
            Agency::Correct | Agency::IgnoresIncarnations | Agency::ForgetsToAttach => {
                agent.todo.push_back(journal);
                agent.todo.extend(acknowledge);
            }
        }
        agent.todo.extend(outcome.commands.into_iter().filter_map(action).map(Todo::Do));
        if agency != Agency::AcknowledgesTooEarly {
            // To die between the step and the journal is to die before the step.
            self.agent_acts(plan, agency);
        }
    }

    fn agent_starts(&mut self, plan: &Plan, agency: Agency) {
        let held = self
            .keeper
            .jobs
            .iter()
            .zip(&plan.jobs)
            .enumerate()
            .map(|(at, (kept, plan))| {
                let live = kept.live.as_ref().filter(|live| live.executed);
                let live = live.map(|live| (live.incarnation, pid(live.incarnation)));
                let recorded =
                    |record: &Record| record.job == at && record.incarnation == kept.highest;
                let pending = kept.live.is_some() || self.keeper.records.iter().any(recorded);
                let (job, highest, open) = (plan.name.clone(), kept.highest, kept.open);
                Held { job, highest, live, pending, open, summary: None }
            })
            .collect();
        let attached = match agency {
            Agency::ForgetsToAttach => None,
            Agency::Correct | Agency::AcknowledgesTooEarly | Agency::IgnoresIncarnations => {
                Some(Message::Attached { held })
            }
        };
        let records = self.keeper.records.iter().cloned().map(Message::Exited);
        self.agent = Some(Agent {
            mind: self.journal.clone(),
            todo: VecDeque::new(),
            inbox: attached.into_iter().chain(records).collect(),
            waits: Vec::new(),
        });
    }

    fn carry_out(&mut self, plan: &Plan, action: Action) {
        let place = |name: &Name| place(plan, name);
        match action {
            Action::Spawn { job, incarnation } => {
                let wrong = self.keeper.spawn(place(&job), incarnation);
                self.broken = self.broken.or(wrong);
            }
            Action::Stop { job, incarnation } => {
                self.keeper.ask(place(&job), incarnation, Asked::Stop)
            }
            Action::Kill { job, incarnation } => {
                self.keeper.ask(place(&job), incarnation, Asked::Kill)
            }
            Action::Rest { job, incarnation } => self.keeper.rest(place(&job), incarnation),
            Action::Run(id) => {
                let job = id.owner.job().expect("only jobs have tasks here");
                let kept = &mut self.keeper.jobs[place(job)];
                kept.task = Some(id);
            }
            Action::Wake(token, at) => {
                let agent = self.agent.as_mut().expect("an agent");
                agent.waits.retain(|(other, _)| *other != token);
                agent.waits.push((token, at));
                agent.waits.sort();
            }
            Action::Exit(code) => {
                if !self.keeper.is_empty() {
                    self.broken = Some("the run ends before its processes");
                }
                self.exit = Some(code);
            }
        }
    }

    fn ends(&mut self, job: usize, exit: Exit) {
        let record = self.keeper.end(job, exit);
        self.ledger[job].ended_untold.insert(record.incarnation);
        self.tell_agent(Message::Exited(record));
    }

    fn tell_agent(&mut self, message: Message) {
        if let Some(agent) = &mut self.agent {
            agent.inbox.push_back(message);
        }
    }

    /// What the journal has is what the world is told.
    fn note(&mut self, numbers: &[u64], told: &[(usize, Told)]) {
        if numbers.windows(2).any(|pair| pair[1] != pair[0] + 1) {
            self.broken = Some("events are not numbered one by one");
        }
        for (job, told) in told {
            let alive = self.keeper.jobs[*job].live.is_some();
            let wrong = self.ledger[*job].note(*told, alive);
            self.broken = self.broken.or(wrong);
        }
    }

    /// Nothing is under way: whatever is not settled now will never be.
    pub fn is_quiet(&self) -> bool {
        let idle = |agent: &Agent| {
            agent.todo.is_empty() && agent.inbox.is_empty() && agent.waits.is_empty()
        };
        self.agent.as_ref().is_some_and(idle) && self.keeper.is_quiet()
    }

    /// What is desired, what is journaled and what is there are the same, and all of it was told.
    pub fn is_settled(&self, plan: &Plan) -> bool {
        let stopping = self.journal.state.phase() == NodePhase::Stopping;
        let node = restore(plan, &self.journal);
        let settled = |(at, job): (usize, &Job)| {
            // A node that stops has nothing to explain.
            let resting = job.phase().is_at_rest();
            let waits = resting
                && (stopping || !node.blockers().of(plan.jobs[at].name.as_str()).is_empty());
            self.ledger[at].is_settled(job, stopping, waits)
                && ledger::agree(job, &self.keeper, at, waits)
        };
        // A run may end before the keeper has heard that a record is journaled.
        (self.keeper.records.is_empty() || self.exit.is_some())
            && self.journal.jobs.iter().enumerate().all(settled)
            && stopping == self.exit.is_some()
    }
}

pub fn save(node: &Node) -> Saved {
    let jobs = node.jobs().map(|(_, job)| job.clone()).collect();
    Saved { seq: node.seq(), state: node.state().clone(), jobs }
}

pub fn restore(plan: &Plan, saved: &Saved) -> Node {
    let mut memory = Memory::default();
    memory.told(saved.seq);
    memory.take(Journaled::Node(Box::new(saved.state.clone())));
    for (plan, job) in plan.jobs.iter().zip(&saved.jobs) {
        memory.take(Journaled::Job(plan.name.clone(), Arc::new(job.clone())));
    }
    memory.restore(plan.clone())
}

fn told(plan: &Plan, outcome: &Outcome) -> (Vec<u64>, Vec<(usize, Told)>) {
    let numbers = outcome.events.iter().map(|event| event.seq).collect();
    let told = outcome.events.iter().filter_map(|event| match &event.source {
        Source::Job(name) => Some((place(plan, name), Told::of(event)?)),
        Source::Node(_) | Source::Watch(_) | Source::Rollout(_) => None,
    });
    (numbers, told.collect())
}

fn place(plan: &Plan, name: &Name) -> usize {
    plan.jobs.iter().position(|job| job.name == *name).expect("a job of the plan")
}

fn action(command: Command) -> Option<Action> {
    Some(match command {
        Command::Spawn { job, incarnation, .. } => Action::Spawn { job, incarnation },
        Command::Stop { job, incarnation, .. } => Action::Stop { job, incarnation },
        Command::Kill { job, incarnation } => Action::Kill { job, incarnation },
        Command::Rest { job, incarnation } => Action::Rest { job, incarnation },
        Command::RunTask { id, .. } => Action::Run(id),
        Command::SetTimer { token, at } => Action::Wake(token, at),
        Command::Exit { code, .. } => Action::Exit(code),
        Command::Signal { .. }
        | Command::Probe { .. }
        | Command::ArmCron { .. }
        | Command::Forget { .. }
        | Command::Applied
        | Command::WriteInstances { .. }
        | Command::Remember { .. }
        | Command::Announce { .. }
        | Command::Withdraw { .. } => return None,
    })
}

pub fn pid(incarnation: u64) -> u32 {
    100 + u32::try_from(incarnation).expect("a small incarnation")
}
