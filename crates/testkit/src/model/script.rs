//! Finds the script in a conversation, and the reply that is next.
//!
//! The last prompt with directives is the script. The number of model replies since then decides
//! which message is next, so a request that is repeated, even after a crash, gets the same answer.
//! Prompts without directives (reminders) use the lines after `model: then`. A script that the
//! conversation already contains (a continued turn) uses the lines after `model: again`.

use raymond_core::prices::Usage;

use super::conversation::{ConversationItem, Role};
use super::directive::{Directive, directives};
use super::reply::{Action, Block, DEFAULT_USAGE, Message, Pause, Reply, StopReason};

/// Returns the reply to a conversation; an error says what is wrong with its script.
pub(super) fn reply(conversation: &[ConversationItem]) -> Result<Reply, String> {
    let Some((before, script, since)) = last_script(conversation)? else {
        return Ok(default_reply(DEFAULT_USAGE));
    };
    let mut runs = ScriptRuns::of(script.clone())?;
    // Prompts without directives after the script: each of them uses the next part behind `then`.
    let prompts = since.iter().filter(|item| item.role == Role::User).count();
    let steps = replies_since_last_prompt(since);
    let mut run = runs.run_for(count_earlier(before, &script));
    let part = run.parts.get_mut(prompts);
    // The run is thrown away afterwards, so the order that `swap_remove` destroys is not needed.
    let due = part.filter(|part| steps < part.len()).map(|part| part.swap_remove(steps));
    Ok(due.unwrap_or_else(|| default_reply(run.usage)))
}

/// The items before the script, its directives, and the items after it.
type FoundScript<'a> = (&'a [ConversationItem], Vec<Directive>, &'a [ConversationItem]);

fn last_script(conversation: &[ConversationItem]) -> Result<Option<FoundScript<'_>>, String> {
    // From the end: a conversation contains the scripts of all earlier turns.
    for (index, item) in conversation.iter().enumerate().rev() {
        if item.role == Role::User {
            let script = directives(&item.text)?;
            if !script.is_empty() {
                return Ok(Some((&conversation[..index], script, &conversation[index + 1..])));
            }
        }
    }
    Ok(None)
}

/// Counts how often the same script was given before.
fn count_earlier(before: &[ConversationItem], script: &[Directive]) -> usize {
    let prompts = before.iter().filter(|item| item.role == Role::User);
    // By directives and not by text, because a continued turn puts a sentence before the same
    // prompt.
    prompts.filter(|item| directives(&item.text).is_ok_and(|other| other == script)).count()
}

/// Counts the model's replies since the last prompt; a reply may have several items.
fn replies_since_last_prompt(item: &[ConversationItem]) -> usize {
    let start = item.iter().rposition(|item| item.role == Role::User).map_or(0, |last| last + 1);
    item[start..]
        // A reply of a text and a tool call is two items, but one message.
        .chunk_by(|a, b| a.is_from_model() == b.is_from_model())
        .filter(|group| group[0].is_from_model())
        .count()
}

/// Returns the reply of a model without directives.
fn default_reply(usage: Usage) -> Reply {
    let blocks = vec![Block::Text("ok".to_owned())];
    let message = Message { blocks, stop: StopReason::Ended, usage, cut: None };
    Reply { pauses: Vec::new(), action: Action::Send(message) }
}

/// The runs of a script: the first time it is given, the second time, and so on.
struct ScriptRuns {
    runs: Vec<ScriptRun>,
    open: OpenMessage,
}

/// The replies to a prompt, and to the prompts without directives after it.
struct ScriptRun {
    parts: Vec<Vec<Reply>>,
    /// Usage of the next messages.
    usage: Usage,
}

/// A message whose last line has not been read yet.
#[derive(Default)]
struct OpenMessage {
    pauses: Vec<Pause>,
    blocks: Vec<Block>,
    cut: Option<usize>,
}

impl ScriptRuns {
    fn of(script: Vec<Directive>) -> Result<Self, String> {
        let mut runs =
            Self { runs: vec![ScriptRun::after(DEFAULT_USAGE)], open: OpenMessage::default() };
        for directive in script {
            runs.read(directive)?;
        }
        runs.check_complete()?;
        Ok(runs)
    }

    /// Returns the run for this repetition; the last run covers all further ones.
    fn run_for(&mut self, earlier: usize) -> ScriptRun {
        self.runs.swap_remove(earlier.min(self.runs.len() - 1))
    }

    fn last(&mut self) -> &mut ScriptRun {
        self.runs.last_mut().expect("it begins with one, and none is taken away")
    }

    fn read(&mut self, directive: Directive) -> Result<(), String> {
        match directive {
            Directive::Say(text) => self.speak(Some(Block::Text(text)), StopReason::Ended),
            Directive::Tool { name, input } => {
                self.speak(Some(Block::Tool { name, input }), StopReason::Tool);
            }
            Directive::Refuse => self.speak(None, StopReason::Refused),
            Directive::Text(text) => self.open.blocks.push(Block::Text(text)),
            Directive::Think(text) => self.open.blocks.push(Block::Thinking(text)),
            Directive::Usage(usage) => self.last().usage = usage,
            Directive::Latency(time) => self.open.pauses.push(Pause::Latency(time)),
            Directive::Wait(file) => self.open.pauses.push(Pause::Gate(file)),
            Directive::Cut(events) => self.open.cut = Some(events),
            Directive::Error(failure) => self.act(Action::Fail(failure))?,
            Directive::Drop => self.act(Action::Drop)?,
            Directive::Hang => self.act(Action::Hang)?,
            Directive::Then => {
                self.check_complete()?;
                self.last().parts.push(Vec::new());
            }
            Directive::Again => {
                self.check_complete()?;
                let usage = self.last().usage;
                self.runs.push(ScriptRun::after(usage));
            }
        }
        Ok(())
    }

    fn speak(&mut self, last: Option<Block>, stop: StopReason) {
        let OpenMessage { pauses, mut blocks, cut } = std::mem::take(&mut self.open);
        blocks.extend(last);
        let action = Action::Send(Message { blocks, stop, usage: self.last().usage, cut });
        self.push(Reply { pauses, action });
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        let OpenMessage { pauses, blocks, cut } = std::mem::take(&mut self.open);
        if !blocks.is_empty() || cut.is_some() {
            return Err(
                "model: think, text and cut belong to a message: say, tool or refuse".into()
            );
        }
        self.push(Reply { pauses, action });
        Ok(())
    }

    fn push(&mut self, reply: Reply) {
        if let Some(part) = self.last().parts.last_mut() {
            part.push(reply);
        }
    }

    fn check_complete(&self) -> Result<(), String> {
        let OpenMessage { pauses, blocks, cut } = &self.open;
        if pauses.is_empty() && blocks.is_empty() && cut.is_none() {
            return Ok(());
        }
        Err("model: the last message is not complete: say, tool, refuse, error, drop or hang is missing"
            .to_owned())
    }
}

impl ScriptRun {
    fn after(usage: Usage) -> Self {
        Self { parts: vec![Vec::new()], usage }
    }
}

#[cfg(test)]
mod tests;
