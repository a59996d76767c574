//! A well-formed tag that still borrows from its text.
//!
//! A message can contain thousands of tags, but few are kept. Values are copied only when a tag
//! becomes a [`Tag`].

use std::borrow::Cow;

use super::entity::decode;
use super::opening::Opening;
use super::tag_problem::TagProblem;
use crate::few::Few;
use crate::protocol::tag::{Invoke, Stack, Tag, TagName};
use crate::value::{Hash, Value};

/// Attribute names that a later release may give a meaning on `fork`. They are refused now, because
/// a workflow that used them as template variables would change its meaning then.
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

/// A well-formed tag as written in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BorrowedTag<'a> {
    pub kind: Kind<'a>,
    /// Unknown attributes.
    pub unknown: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind<'a> {
    /// `<goto>`
    Goto { target: &'a str, input: Option<Cow<'a, str>> },
    /// `<reset>`
    Reset {
        target: &'a str,
        input: Option<Cow<'a, str>>,
        cd: Option<Cow<'a, str>>,
        /// Whether pending returns are dropped.
        stack: Stack,
    },
    /// `<call>`
    Call(Invocation<'a>),
    /// `<function>`
    Function(Invocation<'a>),
    /// `<fork>`
    Fork {
        target: &'a str,
        /// The state in which the parent continues.
        next: Option<Cow<'a, str>>,
        cd: Option<Cow<'a, str>>,
        input: Option<Cow<'a, str>>,
        /// All other attributes: template variables of the worker.
        attributes: Vec<(&'a str, Cow<'a, str>)>,
    },
    /// `<result>`
    Result { payload: &'a str },
}

/// The common parts of `call` and `function`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation<'a> {
    pub target: &'a str,
    /// The state that receives the result.
    pub return_to: Cow<'a, str>,
    pub input: Option<Cow<'a, str>>,
    /// The model until the call returns.
    pub model: Option<Cow<'a, str>>,
}

impl<'a> BorrowedTag<'a> {
    /// Checks the attributes of `opening`. `body` is the trimmed target, or the raw payload.
    pub(super) fn of(
        name: TagName,
        opening: Opening<'a>,
        body: &'a str,
    ) -> Result<Self, TagProblem<'a>> {
        if let Some(problem) = opening.problem {
            return Err(problem);
        }
        let mut given = Attributes(opening.attributes);
        let kind = match name {
            TagName::Goto => Kind::Goto { target: body, input: given.text("input") },
            TagName::Reset => Kind::Reset {
                target: body,
                input: given.text("input"),
                cd: given.word("cd")?,
                stack: given.stack()?,
            },
            TagName::Call => Kind::Call(given.invocation(body)?),
            TagName::Function => Kind::Function(given.invocation(body)?),
            TagName::Fork => given.fork(body)?,
            TagName::Result => Kind::Result { payload: body },
        };
        let unknown = given.0.into_iter().map(|(name, _)| name).collect();
        Ok(Self { kind, unknown })
    }

    /// Converts into an owned tag. Long values go through `store`.
    pub fn keep<E>(self, store: &mut dyn FnMut(&[u8]) -> Result<Hash, E>) -> Result<Tag, E> {
        let mut keep = |text: &str| Value::keep(text, store);
        Ok(match self.kind {
            Kind::Goto { target, input } => Tag::Goto {
                target: target.to_owned(),
                input: input.as_deref().map(keep).transpose()?,
            },
            Kind::Reset { target, input, cd, stack } => Tag::Reset {
                target: target.to_owned(),
                input: input.as_deref().map(keep).transpose()?,
                cd: cd.map(Cow::into_owned),
                stack,
            },
            Kind::Call(invocation) => Tag::Call(invocation.keep(keep)?),
            Kind::Function(invocation) => Tag::Function(invocation.keep(keep)?),
            Kind::Fork { target, next, cd, input, attributes } => Tag::Fork {
                target: target.to_owned(),
                next: next.map(Cow::into_owned),
                cd: cd.map(Cow::into_owned),
                input: input.as_deref().map(&mut keep).transpose()?,
                attributes: attributes
                    .into_iter()
                    .map(|(name, text)| Ok((name.to_owned(), keep(&text)?)))
                    .collect::<Result<Few<_, _>, E>>()?,
            },
            Kind::Result { payload } => Tag::Result { payload: keep(payload)? },
        })
    }
}

impl Invocation<'_> {
    fn keep<E>(self, keep: impl FnOnce(&str) -> Result<Value, E>) -> Result<Invoke, E> {
        Ok(Invoke {
            target: self.target.to_owned(),
            return_to: self.return_to.into_owned(),
            input: self.input.as_deref().map(keep).transpose()?,
            model: self.model.map(Cow::into_owned),
        })
    }
}

/// The attributes of an opening that were not used yet.
struct Attributes<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Attributes<'a> {
    /// Takes an attribute that may be any text.
    fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let index = self.0.iter().position(|(given, _)| *given == name)?;
        let (_, raw) = self.0.remove(index);
        Some(decode(raw))
    }

    /// Takes an attribute that is a name: trimmed, not empty, and of bounded length.
    fn word(&mut self, name: &'static str) -> Result<Option<Cow<'a, str>>, TagProblem<'a>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let word = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        if word.is_empty() {
            return Err(TagProblem::Empty(name));
        }
        if word.len() > TagProblem::LONGEST_NAME {
            return Err(TagProblem::TooLong(Some(name)));
        }
        Ok(Some(word))
    }

    fn stack(&mut self) -> Result<Stack, TagProblem<'a>> {
        match self.text("stack").as_deref() {
            None => Ok(Stack::Keep),
            Some("clear") => Ok(Stack::Clear),
            Some(_) => Err(TagProblem::Stack),
        }
    }

    fn invocation(&mut self, target: &'a str) -> Result<Invocation<'a>, TagProblem<'a>> {
        Ok(Invocation {
            target,
            return_to: self.word("return")?.ok_or(TagProblem::Missing("return"))?,
            input: self.text("input"),
            model: self.word("model")?,
        })
    }

    fn fork(&mut self, target: &'a str) -> Result<Kind<'a>, TagProblem<'a>> {
        let reserved = self.0.iter().find(|(name, _)| RESERVED.contains(name));
        if let Some((name, _)) = reserved {
            return Err(TagProblem::Reserved(name));
        }
        let next = self.word("next")?;
        let cd = self.word("cd")?;
        let input = self.text("input");
        let others = std::mem::take(&mut self.0).into_iter();
        Ok(Kind::Fork {
            target,
            next,
            cd,
            input,
            attributes: others.map(|(name, raw)| (name, decode(raw))).collect(),
        })
    }
}
