//! The whole journal decided again: what was decided in the middle of trouble follows from what was
//! recorded, and from nothing else.

use raymond_core::decide::replay::{Replay, Sources};
use raymond_core::run::Record;
use raymond_core::value::{BlobRef, Value};
use raymond_core::workflow::Definition;

use super::{Host, Violation};

/// One run in so many is decided again: all of them would take a quarter more time.
const SAMPLE: u64 = 5;

impl Host {
    /// The same for one run in so many, chosen by the seed of its disk.
    pub fn sample_replay(&self) -> Result<(), Violation> {
        if self.seeds.disk % SAMPLE == 1 { self.check_replay() } else { Ok(()) }
    }

    /// Decides every record that counts again, from the bytes that were acknowledged.
    pub fn check_replay(&self) -> Result<(), Violation> {
        let world = self.world.borrow();
        let mut replay = Replay::default();
        for line in &world.acknowledged {
            let record: Record =
                serde_json::from_slice(line).map_err(|error| Violation(error.to_string()))?;
            if let Some(difference) = replay.record(&record, self)? {
                return Err(Violation(format!("decided again, {difference}")));
            }
        }
        if *replay.run() == world.last {
            return Ok(());
        }
        Err(Violation("decided again, the run is another one".to_owned()))
    }
}

impl Sources for Host {
    type Error = Violation;

    fn text(&self, blob: &BlobRef) -> Result<String, Violation> {
        let bytes = self.faults.without_faults(|| self.blobs().get(blob.hash.as_str()));
        let bytes = bytes.map_err(|error| Violation(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| Violation(error.to_string()))
    }

    fn definition(&self, manifest: &Value) -> Result<Definition, Violation> {
        let known = self.definitions.get(manifest).cloned();
        known.ok_or_else(|| Violation(format!("nobody knows the definition {manifest:?}")))
    }
}
