//! The code paths of every turn, each alone and repeated. `cargo xtask instructions` runs a path
//! with two different counts and takes the difference.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use raymond_core::budget::{Cost, Micros};
use raymond_core::decide::batch;
use raymond_core::extension::Platform;
use raymond_core::ids::AgentId;
use raymond_core::protocol::{Source, TagReading};
use raymond_core::run::outcome::{Finished, Outcome, ReadReply};
use raymond_core::run::start::Start;
use raymond_core::run::{Input, Program, Record, Run, Settings};
use raymond_core::time::Timestamp;
use raymond_core::value::{Hash, Value};
use raymond_core::view::asked;
use raymond_core::workflow::{Definition, EntryPoint, SourceFile, template};
use raymond_store::Journal;
use raymond_store::disk::RealDisk;

/// The last message of an agent: some prose, some code, a tag.
const MESSAGE: &str = "The failing test was right: an index of version 4 shortens names, and the reader took the \
rest for the length of a whole name. I read the prefix from the entry before, as the format says.\n\n\
```rust\nlet shared = before.len() - usize::from(strip);\nname.truncate(shared);\n```\n\n\
All tests pass now: `cargo test -p reader` ends with 42 passed. What is left is the page about it, which still \
says `< 4`.\n\n<goto input=\"the page about versions\">STEP</goto>\n";

const PROMPT: &str = "Look at {{input}}, which was found in round {{visit}}.\nWrite down what {{name}} should know, \
and what it would take to fix it. Do not edit it.\n\nThe plan so far:\n\n{{result}}\n";

/// Takes one of the paths so many times.
pub(crate) fn take(name: &str, times: u32) -> Result<()> {
    match name {
        "scan" => (0..times).for_each(|_| drop(black_box(read()))),
        "render" => (0..times).for_each(|_| drop(black_box(render()))),
        "decide" => {
            // Outside of the loop: the start of a run is not a part of the path.
            let mut play = Play::new()?;
            (0..times).try_for_each(|_| play.goto().map(|record| drop(black_box(record))))?;
        }
        "append" => {
            let directory = tempfile::TempDir::new()?;
            let path = directory.path().join("journal.jsonl");
            let mut journal = Journal::create(Arc::new(RealDisk), &path, b"{\"format\":1}")?;
            // One record, appended again and again, so that only the journal is counted.
            let record = Play::new()?.goto()?;
            for _ in 0..times {
                journal.append(&serde_json::to_vec(black_box(&record))?)?;
            }
        }
        _ => bail!("there is no path {name:?}: scan, render, decide, append"),
    }
    Ok(())
}

fn read() -> TagReading {
    let store = &mut |bytes: &[u8]| Ok::<_, Infallible>(Hash::of(bytes));
    let Ok(reading) = TagReading::of(black_box(MESSAGE), Source::Message, store);
    reading
}

fn render() -> String {
    let value = |name: &str| Some(name.repeat(20).into());
    template::render(black_box(PROMPT), &mut { value }).text
}

/// A run of one state that is gone to again and again.
struct Play {
    run: Run,
    definition: Definition,
    /// The message that its agent repeats.
    finished: Finished,
    seq: u64,
}

impl Play {
    fn new() -> Result<Self> {
        let file = SourceFile {
            name: "STEP.md".into(),
            bytes: PROMPT.as_bytes().into(),
            executable: false,
        };
        let entry = EntryPoint::State("STEP.md".into());
        let parsed = Definition::parse(vec![file], &entry, Platform::Unix);
        let definition = parsed.ok().context("it is a workflow")?.definition;
        // Without a cap the run never stops, however often the path is taken.
        let settings = Settings { budget: None, ..Settings::default() };
        let start = Start {
            run: "bench".into(),
            nonce: "nonce".into(),
            workflow: "/flow".into(),
            scope: "/flow".into(),
            manifest: Value::from("v1"),
            cwd: "/home".into(),
            input: None,
            backends: asked(&settings, &definition),
            program: Program::States,
            settings,
        };
        let reply = ReadReply { reading: read(), ..Value::from(MESSAGE).into() };
        let finished = Finished::new(reply, Cost::Reported(Micros(100)));
        let mut play = Self { run: Run::default(), definition, finished, seq: 0 };
        play.feed(Input::Start(Box::new(start)));
        Ok(play)
    }

    fn feed(&mut self, input: Input) -> Record {
        // Not the time of day: the same input has to take the same number of instructions.
        let at = Timestamp(self.seq);
        self.seq += 1;
        let decided = batch(&mut self.run, &self.definition, at, vec![input]);
        Record { seq: self.seq, at, steps: decided.steps }
    }

    /// The turn in flight ends, and the next one begins.
    fn goto(&mut self) -> Result<Record> {
        let turn =
            self.run.scheduler.turns.get(&AgentId::from("main")).context("no turn is due")?;
        let outcome = Outcome::Finished(Box::new(self.finished.clone()));
        let input = Input::Settled { turn: turn.id.clone(), attempt: turn.attempt, outcome };
        Ok(self.feed(input))
    }
}
