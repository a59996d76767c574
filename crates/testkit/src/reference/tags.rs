//! The rules of each tag: its attributes, and the transition that it makes.
//!
//! This is the only file of the reference that knows the tags one by one. It repeats core's table
//! on purpose, because nothing would find a mistake that both have in common. The tags of one
//! message are chosen in [`super::decide`].

use std::collections::{BTreeMap, BTreeSet};

use raymond_core::ids::StateName;
use raymond_core::protocol::TagName;
use raymond_core::text::nearest;
use raymond_core::time::Timestamp;

use super::history::Fault;
use super::message_context::MessageContext;

/// A well-formed tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    pub name: TagName,
    /// The trimmed target; for a result the unchanged payload.
    pub body: String,
    /// The decoded attributes that the tag knows (on a fork: all of them).
    pub attributes: BTreeMap<String, String>,
}

/// How a tag is written.
pub(super) struct Grammar {
    /// Whether the text between the tags names a state; otherwise it is a raw payload.
    pub(super) has_target: bool,
    /// Attributes with any text.
    texts: &'static [&'static str],
    /// Attributes with a state, a directory or a model, whose value is trimmed like a target.
    words: &'static [&'static str],
    /// Attributes without which the tag is malformed, even beside other tags.
    pub(super) required: &'static [&'static str],
    /// The attribute that names a second state.
    pub(super) second_state: Option<&'static str>,
    /// Whether all other attributes are template variables.
    has_variables: bool,
}

pub(super) fn grammar(tag: TagName) -> Grammar {
    let plain = Grammar {
        has_target: true,
        texts: &["input"],
        words: &[],
        required: &[],
        second_state: None,
        has_variables: false,
    };
    match tag {
        TagName::Goto => {
            let texts = &["input", "after", "at", "wait", "timeout"];
            Grammar { texts, words: &["then"], ..plain }
        }
        TagName::Reset => {
            let texts = &["input", "stack", "after", "at"];
            Grammar { texts, words: &["cd"], ..plain }
        }
        TagName::Call | TagName::Function => Grammar {
            words: &["return", "model"],
            required: &["return"],
            second_state: Some("return"),
            ..plain
        },
        TagName::Fork => Grammar {
            words: &["next", "cd"],
            second_state: Some("next"),
            has_variables: true,
            ..plain
        },
        TagName::Ask => Grammar {
            has_target: false,
            texts: &["options", "timeout", "default"],
            words: &["next", "then"],
            required: &["next"],
            second_state: Some("next"),
            ..plain
        },
        TagName::Result => Grammar { has_target: false, texts: &["status"], ..plain },
    }
}

impl Grammar {
    pub(super) fn knows(&self, attribute: &str) -> bool {
        self.has_variables || self.texts.contains(&attribute) || self.is_word(attribute)
    }

    /// Returns whether the value means the same as no attribute.
    pub(super) fn is_default(&self, attribute: &str, value: &str) -> bool {
        self.texts.contains(&attribute) && attribute == "status" && value == "ok"
    }

    /// Returns whether these attributes do not go together, or belong on other tags.
    pub(super) fn refuses_together(&self, attributes: &[String]) -> bool {
        let has = |name: &str| attributes.iter().any(|given| given == name);
        let known: Vec<&str> = self.texts.iter().chain(self.words).copied().collect();
        // A misspelt attribute must not be ignored.
        let is_misspelt = |given: &&String| {
            !self.has_variables
                && given.len() >= 3
                && !self.knows(given)
                && nearest(given, known.iter().copied()).is_some()
        };
        if attributes.iter().find(is_misspelt).is_some() {
            return true;
        }
        let asks = self.texts.contains(&"options");
        if asks {
            let ends = usize::from(has("then")) + usize::from(has("default"));
            if ends != usize::from(has("timeout")) || has("wait") {
                return true;
            }
        } else if !self.has_variables && (has("options") || has("default")) {
            return true;
        }
        if asks {
            // Checked above.
        } else if self.texts.contains(&"wait") {
            let alone = !has("wait") && (has("timeout") || has("then"));
            let beside = ["input", "after", "at"].iter().any(|name| has(name));
            if alone || has("wait") && beside || has("timeout") && !has("then") {
                return true;
            }
        } else if !self.has_variables && ["wait", "timeout", "then"].iter().any(|name| has(name)) {
            return true;
        }
        let waits = ["after", "at"].map(|name| attributes.iter().any(|given| given == name));
        let can_wait = self.texts.contains(&"after");
        // The variables of a worker may have any name that is not reserved.
        if can_wait { waits == [true, true] } else { !self.has_variables && waits.contains(&true) }
    }

    pub(super) fn is_word(&self, attribute: &str) -> bool {
        self.words.contains(&attribute)
    }

    /// Returns whether the value of an attribute makes the tag malformed.
    pub(super) fn refuses(&self, attribute: &str, value: &str) -> bool {
        let unusable = value.is_empty() || value.len() > MAX_NAME_BYTES;
        let is_text = self.texts.contains(&attribute);
        (self.is_word(attribute) && unusable)
            || (is_text && attribute == "stack" && value != "clear")
            || (is_text && attribute == "status" && !["ok", "failed"].contains(&value))
            || (is_text && attribute == "after" && !is_wait(value))
            || (is_text && attribute == "timeout" && !is_wait(value))
            || (is_text && attribute == "wait" && !is_need(value))
            || (is_text && attribute == "options" && !are_options(value))
            || (is_text && attribute == "at" && Timestamp::parse(value).is_none())
            || (self.has_variables && RESERVED.contains(&attribute))
    }
}

/// Returns whether a text lists the options of a question.
fn are_options(text: &str) -> bool {
    let options: Vec<String> = options(text).map(str::to_lowercase).collect();
    let different: BTreeSet<&String> = options.iter().collect();
    let fits = |option: &String| !option.is_empty() && option.chars().count() <= 80;
    (2..=20).contains(&options.len())
        && different.len() == options.len()
        && options.iter().all(fits)
}

/// Returns the options of a question, as core keeps them.
pub(super) fn options(text: &str) -> impl Iterator<Item = &str> {
    text.split('|').map(str::trim)
}

/// Writes options and default of a question as core keeps them. Returns whether the default is one
/// of the options.
pub(super) fn settle_options(attributes: &mut BTreeMap<String, String>) -> bool {
    let Some(written) = attributes.get("options").cloned() else { return true };
    let listed: Vec<&str> = options(&written).collect();
    if let Some(default) = attributes.get_mut("default") {
        let meant = default.trim().to_lowercase();
        let Some(option) = listed.iter().find(|option| option.to_lowercase() == meant) else {
            return false;
        };
        (*option).clone_into(default);
    }
    attributes.insert("options".to_owned(), listed.join("|"));
    true
}

/// Returns whether a text says how many workers have to end.
fn is_need(text: &str) -> bool {
    let text = text.trim();
    let number = text.parse::<u32>();
    ["all", "any", "done"].contains(&text) || number.is_ok_and(|number| number > 0)
}

/// Returns whether a text is a duration from 1 second to 366 days.
fn is_wait(text: &str) -> bool {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    // `ms` is first, because such a text also ends with `s`.
    let unit = units.iter().find_map(|(unit, millis)| Some((text.strip_suffix(unit)?, millis)));
    let Some((digits, millis)) = unit else { return false };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.parse::<u128>().ok().filter(|_| is_number);
    number.is_some_and(|number| (1_000..=366 * 86_400_000).contains(&(number * millis)))
}

/// The longest target, `return`, `next`, `cd` or `model`, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 4096;

/// Attributes that a `fork` may not use as template variables.
const RESERVED: [&str; 10] = [
    "wait",
    "wait_timeout",
    "after",
    "model",
    "backend",
    "budget",
    "worktree",
    "branch",
    "timeout",
    "name",
];

/// A transition that may be taken: everything in it exists and is allowed.
#[derive(Debug)]
pub(super) enum Transition {
    Move(Move),
    /// Returns to the caller; without a caller, the agent ends.
    Return {
        payload: String,
        is_failure: bool,
    },
}

/// A transition to a state.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) tag: TagName,
    pub(super) to: StateName,
    pub(super) input: Option<String>,
    pub(super) conversation: NextConversation,
    pub(super) returns: PendingReturns,
    pub(super) cwd: Option<String>,
    /// The model until the callee returns.
    pub(super) model: Option<String>,
    pub(super) workers: Vec<Worker>,
    /// Whether the agent waits for its workers first, and whether each must end with a result.
    pub(super) joins: Option<Join>,
    /// Whether the agent is parked first.
    // The reference has no time: a wait ends at once, and a time of `at` is always past.
    pub(super) parks: bool,
}

/// The wait for workers. Other waits depend on timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    All,
    Done,
}

/// The conversation of the next state.
#[derive(Debug)]
pub(super) enum NextConversation {
    Same,
    Fresh,
    Branch,
}

/// The effect of a move on pending returns.
#[derive(Debug)]
pub(super) enum PendingReturns {
    Keep,
    Clear,
    /// Adds a return to this state.
    Push(StateName),
}

/// A worker before its start.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) state: StateName,
    pub(super) cwd: String,
    pub(super) input: Option<String>,
    pub(super) attributes: BTreeMap<String, String>,
}

/// Returns the transition of a message with one tag.
pub(super) fn single(context: &MessageContext<'_>, tag: &Tag) -> Result<Transition, Fault> {
    match tag.name {
        TagName::Goto => Ok(Transition::Move(to_target(context, tag)?)),
        TagName::Reset => reset(context, tag),
        TagName::Call => invoke(context, tag, NextConversation::Branch),
        TagName::Function => invoke(context, tag, NextConversation::Fresh),
        TagName::Fork => forks(context, std::slice::from_ref(tag)),
        TagName::Ask => ask(context, tag),
        TagName::Result => {
            context.permit(tag.name, None, None)?;
            let is_failure = tag.attributes.get("status").is_some_and(|status| status == "failed");
            Ok(Transition::Return { payload: tag.body.clone(), is_failure })
        }
    }
}

/// Moves to the target in the same conversation, and changes nothing else.
fn to_target(context: &MessageContext<'_>, tag: &Tag) -> Result<Move, Fault> {
    let to = context.state(&tag.body)?;
    context.permit(tag.name, Some(&to), None)?;
    let plain = Move::plain(tag.name, to, tag.attributes.get("input").cloned());
    Ok(Move { parks: tag.attributes.contains_key("after"), ..plain })
}

fn reset(context: &MessageContext<'_>, tag: &Tag) -> Result<Transition, Fault> {
    let to = context.state(&tag.body)?;
    let cwd = context.directory(tag.attributes.get("cd"))?;
    context.permit(tag.name, Some(&to), None)?;
    let returns = match tag.attributes.get("stack") {
        Some(_) => PendingReturns::Clear,
        None => PendingReturns::Keep,
    };
    let plain = Move::plain(tag.name, to, tag.attributes.get("input").cloned());
    let conversation = NextConversation::Fresh;
    let parks = tag.attributes.contains_key("after");
    Ok(Transition::Move(Move { conversation, returns, cwd, parks, ..plain }))
}

/// Asks a person. The answer is the first option, or `yes`.
fn ask(context: &MessageContext<'_>, tag: &Tag) -> Result<Transition, Fault> {
    let to = context.state(&tag.attributes["next"])?;
    context.permit(tag.name, None, Some(&to))?;
    if let Some(then) = tag.attributes.get("then") {
        let then = context.state(then)?;
        context.permit(tag.name, None, Some(&then))?;
    }
    let first = tag.attributes.get("options").and_then(|text| options(text).next());
    let answer = first.unwrap_or("yes").to_owned();
    let plain = Move::plain(tag.name, to, Some(answer));
    Ok(Transition::Move(Move { parks: true, ..plain }))
}

fn invoke(
    context: &MessageContext<'_>,
    tag: &Tag,
    conversation: NextConversation,
) -> Result<Transition, Fault> {
    let to = context.state(&tag.body)?;
    // The reader treats a tag without `return` as malformed, so the attribute exists here.
    let return_to = context.state(&tag.attributes["return"])?;
    context.permit(tag.name, Some(&to), Some(&return_to))?;
    let plain = Move::plain(tag.name, to, tag.attributes.get("input").cloned());
    let model = tag.attributes.get("model").cloned();
    let returns = PendingReturns::Push(return_to);
    Ok(Transition::Move(Move { conversation, returns, model, ..plain }))
}

/// Decides about forks, perhaps with one `goto` beside them.
pub(super) fn forks(context: &MessageContext<'_>, tags: &[Tag]) -> Result<Transition, Fault> {
    let mut targets = Vec::new();
    // By state and not by name: `A` and `A.md` are the same next state.
    let mut nexts = BTreeSet::new();
    for tag in tags {
        let target = context.state(&tag.body)?;
        if tag.name == TagName::Goto {
            nexts.insert(target.clone());
        } else if let Some(next) = tag.attributes.get("next") {
            nexts.insert(context.state(next)?);
        }
        targets.push(target);
    }
    let next = nexts.pop_first().filter(|_| nexts.is_empty());
    let next = next.ok_or(Fault::NextDiffers)?;

    // One loop for each kind of fault, because the first fault in the order of `Fault` is reported,
    // not the first in the message.
    let mut directories = Vec::new();
    for tag in tags {
        directories.push(context.directory(tag.attributes.get("cd"))?);
    }
    for (tag, target) in tags.iter().zip(&targets) {
        // Also for a fork without `next`: the `goto` beside it takes that place.
        let then = (tag.name == TagName::Fork).then_some(&next);
        context.permit(tag.name, Some(target), then)?;
    }

    let mut workers = Vec::new();
    let mut input = None;
    let mut joins = None;
    let mut parks = false;
    for ((tag, state), directory) in tags.iter().zip(targets).zip(directories) {
        if tag.name == TagName::Fork {
            workers.push(worker(context, tag, state, directory));
        } else {
            input = tag.attributes.get("input").cloned();
            joins = tag.attributes.get("wait").and_then(|wait| match wait.as_str() {
                "all" => Some(Join::All),
                "done" => Some(Join::Done),
                _ => None,
            });
            parks = joins.is_some() || tag.attributes.contains_key("after");
        }
    }
    // Only the `goto` gives the parent an input; the input of a fork belongs to its worker.
    // While the parent waits, only its workers start, so its own move is the `goto`.
    let name = if parks { TagName::Goto } else { TagName::Fork };
    let plain = Move::plain(name, next, input);
    Ok(Transition::Move(Move { workers, joins, parks, ..plain }))
}

fn worker(
    context: &MessageContext<'_>,
    tag: &Tag,
    state: StateName,
    directory: Option<String>,
) -> Worker {
    let mut attributes = tag.attributes.clone();
    attributes.remove("next");
    attributes.remove("cd");
    Worker {
        state,
        cwd: directory.unwrap_or_else(|| context.cwd.to_owned()),
        input: attributes.remove("input"),
        attributes,
    }
}

impl Move {
    /// Returns a move in the same conversation that changes nothing else.
    pub(super) fn plain(tag: TagName, to: StateName, input: Option<String>) -> Self {
        Self {
            tag,
            to,
            input,
            conversation: NextConversation::Same,
            returns: PendingReturns::Keep,
            cwd: None,
            model: None,
            workers: Vec::new(),
            joins: None,
            parks: false,
        }
    }
}
