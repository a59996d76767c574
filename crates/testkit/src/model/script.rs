//! What a model does, read from the conversation that it is shown.
//!
//! The last prompt that has directives is the script. Its messages are taken one by one: the one that
//! is due is told by how often the model has spoken since. So a request that is sent again, or after
//! a crash, gets the same answer. Prompts without directives (reminders) play what stands after
//! `model: then`; a script that was given before (a continuation) what stands after `model: again`.

use raymond_core::prices::Usage;

use super::conversation::{Role, Said};
use super::directive::{Directive, directives};
use super::reply::{Act, Block, Message, Pause, Reply, Stop, USUAL};

/// The answer to a conversation; the message says what is wrong with its script.
pub(super) fn reply(conversation: &[Said]) -> Result<Reply, String> {
    let Some((before, script, since)) = last_script(conversation)? else {
        return Ok(nothing_more(USUAL));
    };
    let mut takes = Takes::of(script.clone())?;
    let prompts = since.iter().filter(|said| said.role == Role::User).count();
    let steps = steps_of_the_last_prompt(since);
    let mut take = takes.take_for(earlier(before, &script));
    let part = take.parts.get_mut(prompts);
    let due = part.filter(|part| steps < part.len()).map(|part| part.swap_remove(steps));
    Ok(due.unwrap_or_else(|| nothing_more(take.usage)))
}

/// What was said before, the directives, and what was said since.
type Script<'a> = (&'a [Said], Vec<Directive>, &'a [Said]);

fn last_script(conversation: &[Said]) -> Result<Option<Script<'_>>, String> {
    for (index, said) in conversation.iter().enumerate().rev() {
        if said.role == Role::User {
            let script = directives(&said.text)?;
            if !script.is_empty() {
                return Ok(Some((&conversation[..index], script, &conversation[index + 1..])));
            }
        }
    }
    Ok(None)
}

/// How often the same script was given before.
fn earlier(before: &[Said], script: &[Directive]) -> usize {
    let prompts = before.iter().filter(|said| said.role == Role::User);
    prompts.filter(|said| directives(&said.text).is_ok_and(|other| other == script)).count()
}

/// How often the model has spoken since the last prompt. A message may have several entries.
fn steps_of_the_last_prompt(said: &[Said]) -> usize {
    let start = said.iter().rposition(|said| said.role == Role::User).map_or(0, |last| last + 1);
    said[start..]
        .chunk_by(|a, b| a.is_of_the_model() == b.is_of_the_model())
        .filter(|group| group[0].is_of_the_model())
        .count()
}

/// What a model says that was told nothing.
fn nothing_more(usage: Usage) -> Reply {
    let blocks = vec![Block::Text("ok".to_owned())];
    let message = Message { blocks, stop: Stop::Ended, usage, cut: None };
    Reply { pauses: Vec::new(), act: Act::Speak(message) }
}

/// What is played the first time, the second time, … that a script is given.
struct Takes {
    takes: Vec<Take>,
    begun: Begun,
}

/// The replies to a prompt, and to the prompts without directives that follow it.
struct Take {
    parts: Vec<Vec<Reply>>,
    /// Of the messages from here on.
    usage: Usage,
}

/// A message that is not complete.
#[derive(Default)]
struct Begun {
    pauses: Vec<Pause>,
    blocks: Vec<Block>,
    cut: Option<usize>,
}

impl Takes {
    fn of(script: Vec<Directive>) -> Result<Self, String> {
        let mut takes = Self { takes: vec![Take::after(USUAL)], begun: Begun::default() };
        for directive in script {
            takes.read(directive)?;
        }
        takes.nothing_is_open()?;
        Ok(takes)
    }

    /// The last one is for every further time.
    fn take_for(&mut self, earlier: usize) -> Take {
        self.takes.swap_remove(earlier.min(self.takes.len() - 1))
    }

    fn last(&mut self) -> &mut Take {
        self.takes.last_mut().expect("it begins with one, and none is taken away")
    }

    fn read(&mut self, directive: Directive) -> Result<(), String> {
        match directive {
            Directive::Say(text) => self.speak(Some(Block::Text(text)), Stop::Ended),
            Directive::Tool { name, input } => {
                self.speak(Some(Block::Tool { name, input }), Stop::Tool);
            }
            Directive::Refuse => self.speak(None, Stop::Refused),
            Directive::Text(text) => self.begun.blocks.push(Block::Text(text)),
            Directive::Think(text) => self.begun.blocks.push(Block::Thinking(text)),
            Directive::Usage(usage) => self.last().usage = usage,
            Directive::Latency(time) => self.begun.pauses.push(Pause::Latency(time)),
            Directive::Wait(file) => self.begun.pauses.push(Pause::Gate(file)),
            Directive::Cut(events) => self.begun.cut = Some(events),
            Directive::Error(failure) => self.act(Act::Fail(failure))?,
            Directive::Drop => self.act(Act::Drop)?,
            Directive::Hang => self.act(Act::Hang)?,
            Directive::Then => {
                self.nothing_is_open()?;
                self.last().parts.push(Vec::new());
            }
            Directive::Again => {
                self.nothing_is_open()?;
                let usage = self.last().usage;
                self.takes.push(Take::after(usage));
            }
        }
        Ok(())
    }

    fn speak(&mut self, last: Option<Block>, stop: Stop) {
        let Begun { pauses, mut blocks, cut } = std::mem::take(&mut self.begun);
        blocks.extend(last);
        let act = Act::Speak(Message { blocks, stop, usage: self.last().usage, cut });
        self.push(Reply { pauses, act });
    }

    fn act(&mut self, act: Act) -> Result<(), String> {
        let Begun { pauses, blocks, cut } = std::mem::take(&mut self.begun);
        if !blocks.is_empty() || cut.is_some() {
            return Err(
                "model: think, text and cut belong to a message: say, tool or refuse".into()
            );
        }
        self.push(Reply { pauses, act });
        Ok(())
    }

    fn push(&mut self, reply: Reply) {
        if let Some(part) = self.last().parts.last_mut() {
            part.push(reply);
        }
    }

    fn nothing_is_open(&self) -> Result<(), String> {
        let Begun { pauses, blocks, cut } = &self.begun;
        if pauses.is_empty() && blocks.is_empty() && cut.is_none() {
            return Ok(());
        }
        Err("model: the last message is not complete: say, tool, refuse, error, drop or hang is missing"
            .to_owned())
    }
}

impl Take {
    fn after(usage: Usage) -> Self {
        Self { parts: vec![Vec::new()], usage }
    }
}

#[cfg(test)]
mod tests;
