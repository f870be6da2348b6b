//! Trouble is told when it begins, changes and ends, not each time it is met.

use crate::catalogue::{About, Report};
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) struct Trouble {
    about: About,
    now: Option<String>,
    reports: mpsc::UnboundedSender<Report>,
}

impl Trouble {
    pub(crate) fn new(about: About, reports: mpsc::UnboundedSender<Report>) -> Trouble {
        Trouble { about, now: None, reports }
    }

    pub(crate) fn met(&mut self, error: String) {
        if self.now.as_ref() != Some(&error) {
            let about = self.about.clone();
            // Nobody listens only when the catalogue is about to be dropped.
            let _ = self.reports.send(Report::Trouble { about, error: error.clone() });
            self.now = Some(error);
        }
    }

    pub(crate) fn over(&mut self) {
        if self.now.take().is_some() {
            let _ = self.reports.send(Report::Well { about: self.about.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_trouble_is_told_once() {
        let (reports, mut told) = mpsc::unbounded_channel();
        let about = About::Service("web-1".to_owned());
        let mut trouble = Trouble::new(about.clone(), reports);
        trouble.over();
        for error in ["down", "down", "slow", "slow", "down"] {
            trouble.met(error.to_owned());
        }
        trouble.over();
        trouble.over();
        for error in ["down", "slow", "down"] {
            let expected = Report::Trouble { about: about.clone(), error: error.to_owned() };
            assert_eq!(told.try_recv(), Ok(expected));
        }
        assert_eq!(told.try_recv(), Ok(Report::Well { about }));
        assert!(told.try_recv().is_err());
    }
}
