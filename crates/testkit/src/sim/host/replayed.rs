//! Replays the whole journal: every decision, even during faults, must follow from the recorded
//! inputs alone.

use raymond_core::decide::replay::{Replay, Sources};
use raymond_core::run::Record;
use raymond_core::value::{BlobRef, Value};
use raymond_core::workflow::Definition;

use super::{Host, Violation};

/// One run in this many is replayed. Replaying all would take a quarter more time.
const SAMPLE: u64 = 5;

impl Host {
    /// Replays the run if the seed of its disk selects it.
    pub fn sample_replay(&self) -> Result<(), Violation> {
        // The sweep gives each run its own disk seed, but all the same world seed.
        if self.seeds.disk % SAMPLE == 1 { self.check_replay() } else { Ok(()) }
    }

    /// Decides every acknowledged record again, from its bytes.
    pub fn check_replay(&self) -> Result<(), Violation> {
        let world = self.world.borrow();
        let mut replay = Replay::default();
        for line in &world.acknowledged {
            // From the bytes, because the journal leaves out parts of causes that a replay must
            // read again from blobs and definitions.
            let record: Record =
                serde_json::from_slice(line).map_err(|error| Violation(error.to_string()))?;
            if let Some(difference) = replay.record(&record, self)? {
                return Err(Violation(format!("replayed: {difference}")));
            }
        }
        // Equal events could still be applied to another run, if a decision changed something
        // besides them.
        if *replay.run() == world.last {
            return Ok(());
        }
        Err(Violation("the replayed run differs".to_owned()))
    }
}

impl Sources for Host {
    type Error = Violation;

    fn text(&self, blob: &BlobRef) -> Result<String, Violation> {
        // A replay is a check of the simulator, so no fault that is still armed may hit it.
        let bytes = self.faults.without_faults(|| self.blobs().get(blob.hash.as_str()));
        let bytes = bytes.map_err(|error| Violation(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| Violation(error.to_string()))
    }

    fn definition(&self, manifest: &Value) -> Result<Definition, Violation> {
        let known = self.definitions.get(manifest).cloned();
        known.ok_or_else(|| Violation(format!("unknown definition {manifest:?}")))
    }
}
