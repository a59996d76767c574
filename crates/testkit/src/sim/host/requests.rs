//! Requests to a run: through the inbox of its owner, or without one.

use std::sync::Arc;

use raymond_core::run::stop::StopMode;
use raymond_core::run::{Input, Phase};
use raymond_engine::recovery;
use raymond_store::disk::DiskErrorKind;
use raymond_store::{Inbox, Journal, inbox};

use super::super::coverage::Situation;
use super::leftovers::Survivors;
use super::{Host, Verdicts};
use crate::violation::Violation;

impl Host {
    /// Somebody posts a request; another process does it, and the machine stays up.
    pub fn post(&self, mode: StopMode, key: &str) -> Result<(), Violation> {
        let request = Input::Stop { mode, key: key.to_owned() };
        let json = serde_json::to_vec(&request).map_err(|error| Violation(error.to_string()))?;
        let poster = self.disk.process();
        let inbox = Inbox::new(Arc::new(poster.clone()), self.paths.inbox.clone());
        let posted = self.faults.without_faults(|| inbox.post(key, &json));
        poster.kill();
        match posted {
            // Without room nobody posts anything, nor without power.
            Err(inbox::Error::Disk(error)) if error.kind() == DiskErrorKind::Full => Ok(()),
            Err(error) if !self.disk.is_down() => {
                Err(Violation(format!("a request cannot be posted: {error}")))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The owner looks into its inbox and at its clock, as it does once a second.
    pub fn poll_inbox(&mut self) -> Result<(), Violation> {
        if !self.is_up() {
            return Ok(());
        }
        let taken = self.inbox().take_all();
        if self.went_down() {
            return Ok(());
        }
        let taken = taken.map_err(|error| Violation(error.to_string()))?;
        let mut inputs = Vec::new();
        for message in &taken.messages {
            let request = serde_json::from_slice(&message.bytes);
            inputs.push(request.map_err(|error| Violation(error.to_string()))?);
            if self.world.borrow().last.keys.contains(&message.key) {
                self.world.borrow_mut().coverage.note_situation(Situation::AskedAgain);
            }
        }
        inputs.push(Input::Due);
        let downs = self.downs;
        self.handle(inputs)?;
        if self.downs == downs {
            // Whatever was answered is taken away, unless the owner died before it could.
            let inbox = self.inbox();
            for message in taken.messages {
                inbox.remove(&message.key).ok();
            }
            self.went_down();
        }
        Ok(())
    }

    /// Whether something just went wrong; if so, the machine is down now.
    fn went_down(&mut self) -> bool {
        let hit = self.faults.take_fired();
        if hit.is_some() {
            self.world.borrow_mut().hit = hit;
            self.go_down();
        }
        hit.is_some()
    }

    /// Requests to an owner that is gone are not for this one; taking them away may fail.
    pub(super) fn discard_requests(&self) {
        let inbox = self.inbox();
        for message in inbox.take_all().unwrap_or_default().messages {
            if self.world.borrow_mut().dice.percent(50) {
                inbox.remove(&message.key).ok();
            }
        }
    }

    /// Somebody ends a run that nobody drives: whoever asks owns it for as long as that takes.
    pub fn stop_without_owner(&mut self, mode: StopMode, key: &str) -> Result<(), Violation> {
        self.recovering = true;
        let stopped = self.own_and_stop(mode, key);
        self.recovering = false;
        stopped
    }

    fn own_and_stop(&mut self, mode: StopMode, key: &str) -> Result<(), Violation> {
        if !self.take_lock()? {
            return Ok(());
        }
        let Ok(opened) = Journal::open(Arc::new(self.disk.clone()), &self.paths.journal) else {
            self.go_down();
            return Ok(());
        };
        let head = self.faults.without_faults(|| self.check_recovered(&opened))?;
        let Some(reports) = self.reports(&head, Survivors::Ended) else { return Ok(()) };
        let afresh = format!("afresh-{}", head.seq);
        let inputs = recovery::stop_inputs(&head.run, reports, mode, key, &afresh);
        self.drive(head, opened.journal);
        let verdicts: Verdicts = self.handle(inputs)?;
        if !self.is_up() {
            return Ok(());
        }
        self.world.borrow_mut().coverage.note_situation(Situation::AskedWithoutOwner);
        self.driver = None;
        self.unlock();
        match (self.phase(), verdicts.last()) {
            (Phase::Ended(_), Some(_)) => self.world.borrow().check_no_client_runs(),
            (phase, verdict) => {
                Err(Violation(format!("a run that was stopped is {phase:?}: {verdict:?}")))
            }
        }
    }

    fn inbox(&self) -> Inbox {
        Inbox::new(Arc::new(self.disk.clone()), self.paths.inbox.clone())
    }
}
