//! Checks that a recovery finds exactly the acknowledged records.

use std::collections::BTreeSet;

use raymond_core::crayfish::StepKey;
use raymond_core::run::{Event, Record, Run};
use raymond_core::value::Value;
use raymond_engine::driver::Head;
use raymond_engine::fold;
use raymond_store::disk::{Disk as _, Metadata};
use raymond_store::{Blobs, journal};

use super::{Host, Violation};

impl Host {
    /// Checks that no acknowledged record is lost or changed, and that no effect lacks a record.
    pub(super) fn check_recovered(&self, opened: &journal::Opened) -> Result<Head, Violation> {
        let unreadable = |error: fold::FoldError| Violation(error.to_string());
        fold::header(&opened.header).map_err(unreadable)?;
        let end = opened.journal.end().offset;
        match self.disk.metadata(&self.paths.journal) {
            // Bytes after the end would be a torn line that the recovery kept. The next record
            // would start in the middle of that line.
            Ok(Metadata::File(size)) if size == end => {}
            other => {
                return Err(Violation(format!("the journal ends at {end}, its file: {other:?}")));
            }
        }
        let world = &mut *self.world.borrow_mut();
        let (known, found) = (world.acknowledged.len(), opened.lines.len());
        // More lines than known are correct: a record can become durable although its writer saw an
        // error.
        if found < known {
            return Err(Violation(format!("{known} records were acknowledged, {found} are left")));
        }
        let blobs = self.blobs();
        for (index, line) in opened.lines.iter().enumerate() {
            // By bytes, because an equal record in another encoding would break the chain of
            // checksums.
            if world.acknowledged.get(index).is_some_and(|known| **known != *line.body) {
                return Err(Violation(format!("record {} changed", line.seq)));
            }
            if line.seq <= world.read.seq {
                // An earlier recovery has read and folded the same bytes.
                continue;
            }
            let record = fold::record(line.body, line.seq).map_err(unreadable)?;
            // Folded from the bytes of the journal, independent of the run that the driver has in
            // memory.
            world.read.fold(&record);
            for event in record.steps.iter().flat_map(|step| &step.events) {
                if let Event::TurnStarted { turn, attempt, .. } = event {
                    world.started.insert((turn.clone(), *attempt));
                }
            }
            // Most records name no blob; this test avoids converting them to JSON values.
            if str::from_utf8(line.body).is_ok_and(|text| text.contains("\"blob\":")) {
                note_blobs(&record, &mut world.blobs)?;
            }
            if index >= known {
                // It became durable although its writer saw an error or died: from now on it
                // counts.
                world.acknowledged.push(line.body.into());
                // The driver never applied this record, so the auditor gets the run that the
                // journal gives.
                let run = world.read.run.clone();
                world.accept(&run, &record)?;
            }
        }
        // Only a power failure destroys blobs.
        let mut suspects = world.blobs.iter().filter(|_| self.power_was_cut);
        if let Some(lost) = suspects.find(|hash| blobs.get(hash).is_err()) {
            return Err(Violation(format!("a record names the blob {lost}, which is lost")));
        }
        let Head { run, ledger, seq } = &world.read;
        // The driver's run and the fold of its records come from different code paths: decisions in
        // memory, and lines that were written and read again.
        if *run != world.last {
            return Err(Violation("the recovered run differs from the one that was driven".into()));
        }
        let mut head = Head { run: run.clone(), ledger: ledger.clone(), seq: *seq };
        read_results(&mut head.run, &blobs)?;
        // Not the reverse: an attempt may be recorded and never released, if the machine failed in
        // between.
        match world.released.difference(&world.started).next() {
            None => Ok(head),
            Some((turn, attempt)) => {
                let what = format!("attempt {attempt} of {turn} was run, and no record says so");
                Err(Violation(what))
            }
        }
    }
}

/// Reads the results of steps, which decisions need.
pub(super) fn read_results(run: &mut Run, blobs: &Blobs) -> Result<(), Violation> {
    let Some(flow) = run.program.steps_mut() else { return Ok(()) };
    let unread: Vec<(StepKey, Value)> =
        flow.unread().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in unread {
        let text = match value {
            Value::Inline(text) => text.into_bytes(),
            Value::Blob(blob) => {
                blobs.get(blob.hash.as_str()).map_err(|error| Violation(error.to_string()))?
            }
        };
        let json = serde_json::from_slice(&text);
        flow.read(&key, json.map_err(|error| Violation(error.to_string()))?);
    }
    Ok(())
}

/// Collects the blobs that a record names: they were durable before it.
fn note_blobs(record: &Record, blobs: &mut BTreeSet<String>) -> Result<(), Violation> {
    // Any field may contain a blob. Searching the JSON also finds the blobs of fields that do not
    // exist yet.
    let named = serde_json::to_value(record).map_err(|error| Violation(error.to_string()))?;
    let mut waiting = vec![&named];
    while let Some(value) = waiting.pop() {
        match value {
            serde_json::Value::Array(items) => waiting.extend(items),
            serde_json::Value::Object(fields) => {
                let hash = fields.get("blob").and_then(serde_json::Value::as_str);
                blobs.extend(hash.map(str::to_owned));
                waiting.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(())
}
