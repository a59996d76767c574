//! Stop requests, through the owner's inbox or to a run without an owner; answers to questions.

use std::sync::Arc;

use raymond_core::agent::{AgentStatus, Asking};
use raymond_core::decide::Refusal;
use raymond_core::run::stop::{StopMode, StopOrigin};
use raymond_core::run::{Input, Phase, Run};
use raymond_engine::recovery;
use raymond_store::disk::DiskErrorKind;
use raymond_store::{Inbox, Journal, inbox};

use super::super::coverage::Situation;
use super::leftovers::Survivors;
use super::{Host, Verdicts};
use crate::violation::Violation;

impl Host {
    /// Posts a request from another process, without faults.
    pub fn post(&self, mode: StopMode, key: &str) -> Result<(), Violation> {
        let request = Input::Stop { mode, by: StopOrigin::Command, key: key.to_owned() };
        let json = serde_json::to_vec(&request).map_err(|error| Violation(error.to_string()))?;
        // Another process, because the owner's own calls would fail with the owner.
        let poster = self.disk.process();
        let inbox = Inbox::new(Arc::new(poster.clone()), self.paths.inbox.clone());
        let posted = self.faults.without_faults(|| inbox.post(key, &json));
        poster.kill();
        match posted {
            // A full disk or a power failure prevents the request, which is not a violation.
            Err(inbox::Error::Disk(error)) if error.kind() == DiskErrorKind::Full => Ok(()),
            Err(error) if !self.disk.is_down() => {
                Err(Violation(format!("a request cannot be posted: {error}")))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads the inbox and the clock, as an owner does once a second.
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
            // Counted before the batch: afterwards every key is known.
            if self.world.borrow().last.keys.contains(&message.key) {
                self.world.borrow_mut().coverage.note_situation(Situation::AskedAgain);
            }
        }
        // In the same batch, because a request and the end of a wait can arrive together.
        inputs.push(Input::Due);
        let downs = self.downs;
        self.handle(inputs)?;
        // `handle` may take the machine down and return normally, so only this counter shows it.
        if self.downs == downs {
            // Answered requests are removed, unless the owner died before.
            let inbox = self.inbox();
            for message in taken.messages {
                // After the record. A failed removal is harmless, because the key of the request is
                // recorded.
                inbox.remove(&message.key).ok();
            }
            self.went_down();
        }
        Ok(())
    }

    /// Takes the machine down if a fault has just happened, and returns whether it did.
    fn went_down(&mut self) -> bool {
        let fired = self.faults.take_fired();
        if fired.is_some() {
            self.world.borrow_mut().last_fault = fired;
            self.go_down();
        }
        fired.is_some()
    }

    /// Discards requests to an earlier owner; some removals fail.
    pub(super) fn discard_requests(&self) {
        let inbox = self.inbox();
        for message in inbox.take_all().unwrap_or_default().messages {
            // So that some requests stay, and a new owner meets the request of an earlier owner.
            if self.world.borrow_mut().dice.percent(50) {
                inbox.remove(&message.key).ok();
            }
        }
    }

    /// Stops a run without an owner: the requesting process owns the run meanwhile.
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
        // No owner follows a client after the stop, so the stopping process ends all of them first.
        let Some(reports) = self.reports(&head, Survivors::Ended) else { return Ok(()) };
        // The key of a request that counts although its own key was answered before the last
        // resume. The number of records makes it unique.
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
            // Any ending is correct: the run may have been over already, or the last outcome
            // completed it.
            (Phase::Ended(_), Some(_)) => self.world.borrow().check_no_client_runs(),
            (phase, verdict) => {
                Err(Violation(format!("a run that was stopped is {phase:?}: {verdict:?}")))
            }
        }
    }

    /// Answers an open question, as a person does: with the first option, or with `yes`. Without an
    /// owner, the answering process owns the run meanwhile.
    pub fn answer(&mut self) -> Result<(), Violation> {
        let Some(input) = answer(&self.world.borrow().last) else { return Ok(()) };
        if !self.is_up() {
            self.recovering = true;
            let answered = self.own_and_answer(input);
            self.recovering = false;
            return answered;
        }
        let verdicts = self.handle(vec![input])?;
        check_answered(&verdicts)
    }

    fn own_and_answer(&mut self, input: Input) -> Result<(), Violation> {
        if !self.take_lock()? {
            return Ok(());
        }
        let Ok(opened) = Journal::open(Arc::new(self.disk.clone()), &self.paths.journal) else {
            self.go_down();
            return Ok(());
        };
        let head = self.faults.without_faults(|| self.check_recovered(&opened))?;
        self.drive(head, opened.journal);
        let verdicts = self.handle(vec![input])?;
        if !self.is_up() {
            return Ok(());
        }
        self.driver = None;
        self.unlock();
        check_answered(&verdicts)
    }

    fn inbox(&self) -> Inbox {
        Inbox::new(Arc::new(self.disk.clone()), self.paths.inbox.clone())
    }
}

/// Returns the answer to the first open question of a state.
fn answer(run: &Run) -> Option<Input> {
    if run.phase == Phase::Stopping(StopMode::Cancel) {
        return None;
    }
    run.agents.values().find_map(|agent| match &agent.status {
        AgentStatus::Asking(Asking { kept, ask, answer: None, .. }) => {
            let first = kept.question()?.options.first();
            let value = first.map_or("yes", String::as_str).into();
            let (ask, by, key) = (ask.clone(), "ada".to_owned(), format!("answer-{ask}"));
            Some(Input::Answer { ask, value, by, key })
        }
        _ => None,
    })
}

/// Checks that an answer was accepted, or came too late. The list is empty if the machine went
/// down.
fn check_answered(verdicts: &Verdicts) -> Result<(), Violation> {
    match verdicts.as_slice() {
        // A recovery may have ended the question or the run.
        [] | [Ok(())] => Ok(()),
        [Err(Refusal::QuestionExpired(_) | Refusal::NoSuchQuestion(_) | Refusal::Ended(_))] => {
            Ok(())
        }
        other => Err(Violation(format!("an answer was refused: {other:?}"))),
    }
}
