//! A keeper that keeps what the real one promises: it refuses a number that is not higher than
//! the highest, it keeps an exit record until it is acknowledged, a kill always succeeds, and a
//! control socket is open from the first exec of a life until an end that was asked for, or until
//! it hears that the job rests.

use mainstay_core::{
    exit::{Asked, Exit},
    task::TaskId,
};
use std::collections::VecDeque;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Keeper {
    pub jobs: Vec<Kept>,
    pub records: VecDeque<Record>,
    next_record: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    pub highest: u64,
    pub live: Option<Live>,
    pub task: Option<TaskId>,
    /// Its control socket is open.
    pub open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Live {
    pub incarnation: u64,
    pub executed: bool,
    pub asked: Asked,
    /// Asked by somebody whom the agent does not know of.
    pub past_agent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    pub number: u64,
    pub job: usize,
    pub incarnation: u64,
    pub exit: Exit,
    pub asked: Asked,
    pub past_agent: bool,
}

impl Keeper {
    pub fn new(jobs: usize) -> Keeper {
        Keeper { jobs: vec![Kept::default(); jobs], records: VecDeque::new(), next_record: 1 }
    }

    /// Says what is wrong with it.
    pub fn spawn(&mut self, job: usize, incarnation: u64) -> Option<&'static str> {
        let kept = &mut self.jobs[job];
        if incarnation <= kept.highest {
            return None;
        }
        kept.highest = incarnation;
        let (executed, asked, past_agent) = (false, Asked::None, false);
        let other = kept.live.replace(Live { incarnation, executed, asked, past_agent });
        other.map(|_| "two live incarnations")
    }

    pub fn ask(&mut self, job: usize, incarnation: u64, asked: Asked) {
        if let Some(live) = &mut self.jobs[job].live
            && live.incarnation == incarnation
        {
            live.asked = live.asked.max(asked);
        }
    }

    pub fn ask_past_agent(&mut self, job: usize) {
        if let Some(live) = &mut self.jobs[job].live {
            (live.asked, live.past_agent) = (Asked::Stop, true);
        }
    }

    /// exec has succeeded, for this incarnation.
    pub fn execute(&mut self, job: usize) -> u64 {
        let live = self.jobs[job].live.as_mut().expect("a process");
        live.executed = true;
        self.jobs[job].open = true;
        self.jobs[job].live.as_ref().expect("a process").incarnation
    }

    pub fn end(&mut self, job: usize, exit: Exit) -> Record {
        let Live { incarnation, asked, past_agent, .. } =
            self.jobs[job].live.take().expect("a process");
        self.jobs[job].open = asked == Asked::None;
        let number = self.next_record;
        self.next_record += 1;
        let record = Record { number, job, incarnation, exit, asked, past_agent };
        self.records.push_back(record.clone());
        record
    }

    pub fn rest(&mut self, job: usize, incarnation: u64) {
        let kept = &mut self.jobs[job];
        if kept.live.is_none() && kept.highest <= incarnation {
            kept.open = false;
        }
    }

    pub fn acknowledge(&mut self, number: u64) {
        self.records.retain(|record| record.number != number);
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.iter().all(|kept| kept.live.is_none())
    }

    /// Nothing will happen by itself. A stop signal may be ignored for ever, a kill not.
    pub fn is_quiet(&self) -> bool {
        let under_way = |live: &Live| !live.executed || live.asked == Asked::Kill;
        !self
            .jobs
            .iter()
            .any(|kept| kept.task.is_some() || kept.live.as_ref().is_some_and(under_way))
    }
}
