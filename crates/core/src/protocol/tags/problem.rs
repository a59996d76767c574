//! Problems of a malformed tag, in words for the author of the message.
//!
//! The texts are parts of reminders, so each says what is wrong and, if it is not obvious, what to
//! write instead. Problems of a well-formed tag, such as an unknown state, are in
//! [`crate::protocol::fault`].

use std::fmt;

use super::TagName;
use super::need::Need;
use crate::text::excerpt;

/// The reason for which a tag is malformed. It borrows from the text, and a message is only made
/// for problems that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagProblem<'a> {
    /// The opening never ends.
    NoEnd,
    /// The quote of an attribute's value never ends.
    NoEndQuote(&'a str),
    /// A quote where an attribute is expected.
    StrayQuote,
    /// `<goto/>`
    SelfClosing,
    /// A slash between attributes.
    Slash,
    /// Something that is not an attribute.
    BadName(&'a str),
    /// An attribute without a value.
    Bare(&'a str),
    /// An attribute whose value has no quotes.
    Unquoted(&'a str),
    /// Two attributes without space between them.
    NoSpace(&'a str),
    /// An unknown attribute that resembles one of the tag.
    Misspelt {
        name: &'a str,
        meant: &'static str,
    },
    /// A repeated attribute.
    Repeated(&'a str),
    /// More than [`TagProblem::MOST_ATTRIBUTES`].
    TooMany,
    /// A missing attribute.
    Missing(&'static str),
    /// An attribute with an empty value that must not be empty.
    Empty(&'static str),
    /// An attribute of `fork` that is reserved for a later release.
    Reserved(&'a str),
    /// A value of `stack` other than `clear`.
    Stack,
    /// A value of `status` other than `ok` and `failed`.
    Status,
    /// An `after` that is not a duration.
    BadAfter(&'a str),
    /// An `after` outside the allowed range.
    AfterRange,
    /// An `at` that is not a time.
    BadAt(&'a str),
    AfterAndAt,
    /// An attribute for a later transition on a tag that is taken at once.
    OnlyLater(&'a str),
    /// An attribute of a wait for workers on another tag.
    OnlyGoto(&'a str),
    /// An attribute of a wait that can time out on another tag.
    OnlyGotoAndAsk(&'a str),
    /// An attribute of a question on another tag.
    OnlyAsk(&'a str),
    /// Such an attribute on a `fork`.
    OnFork(&'a str),
    /// A `wait` that is neither a word nor a number.
    BadWait(&'a str),
    /// A `timeout` or a `then` without `wait`.
    NeedsWait(&'a str),
    /// A `timeout` that is not a duration.
    BadTimeout(&'a str),
    /// A `timeout` outside the allowed range.
    TimeoutRange,
    TimeoutNeedsThen,
    WaitAndInput,
    /// A wait for workers and for a time.
    WaitAnd(&'static str),
    EmptyQuestion,
    LongQuestion,
    /// Fewer than two options, or more than twenty.
    OptionCount,
    /// An empty option, or a long one.
    OptionLength,
    OptionTwice,
    /// A `then` or a `default` without `timeout`.
    NeedsTimeout(&'static str),
    /// A `timeout` with neither `then` nor `default`, or with both.
    TimeoutNeedsOne,
    /// A `default` that is not one of the options.
    BadDefault {
        default: &'a str,
        options: &'a str,
    },
    /// A name of more than [`TagProblem::LONGEST_NAME`] bytes; `None` is the target.
    TooLong(Option<&'static str>),
    /// Nothing between the tags.
    NoTarget,
    /// A missing closing tag.
    NoClose(TagName),
    /// A second opening before the close of a raw text.
    OpenedTwice(TagName),
    /// A second close of a raw text.
    ClosedTwice(TagName),
}

impl TagProblem<'_> {
    /// Longest name of a state, directory, model or attribute, in bytes: the longest path on Linux.
    pub const LONGEST_NAME: usize = 4096;
    /// Attributes of one tag; a bound for hostile texts, far above any real fork.
    pub const MOST_ATTRIBUTES: usize = 1000;
}

/// Characters of a word from the message that are shown.
const SHOWN: usize = 40;

impl fmt::Display for TagProblem<'_> {
    #[expect(clippy::too_many_lines, reason = "one flat table of all problems reads best")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each text ends the sentence of a reminder: "The <goto> tag of your message cannot be
        // read: …".
        match self {
            Self::NoEnd => f.write_str("its opening has no `>`"),
            Self::NoEndQuote(name) => {
                write!(f, "the value of `{}` has no closing quote", excerpt(name, SHOWN))
            }
            Self::StrayQuote => f.write_str("there is a misplaced quote in its opening"),
            Self::SelfClosing => f.write_str("it ends with `/>` and names nothing"),
            Self::Slash => f.write_str("there is a misplaced `/` in its opening"),
            Self::BadName("") => f.write_str("there is a value without an attribute name"),
            Self::BadName(name) => {
                write!(f, "`{}` is not an attribute name", excerpt(name, SHOWN))
            }
            Self::Bare(name) => write!(f, "attribute `{}` has no value", excerpt(name, SHOWN)),
            Self::Unquoted(name) => {
                write!(f, "the value of `{}` is not in quotes", excerpt(name, SHOWN))
            }
            Self::NoSpace(name) => {
                write!(f, "there is no space before attribute `{}`", excerpt(name, SHOWN))
            }
            Self::Misspelt { name, meant } => {
                write!(f, "it has no attribute `{}`; did you mean `{meant}`?", excerpt(name, SHOWN))
            }
            Self::Repeated(name) => {
                write!(f, "attribute `{}` is repeated", excerpt(name, SHOWN))
            }
            Self::TooMany => {
                write!(f, "it has more than {} attributes", Self::MOST_ATTRIBUTES)
            }
            Self::Missing(name) => write!(f, "attribute `{name}` is missing"),
            Self::Empty(name) => write!(f, "attribute `{name}` is empty"),
            Self::Reserved(name) => write!(
                f,
                "attribute `{name}` is reserved and cannot be a template variable; use another name"
            ),
            Self::Stack => f.write_str("`stack` can only be \"clear\""),
            Self::Status => f.write_str("`status` can only be \"ok\" or \"failed\""),
            Self::BadAfter(text) => {
                let text = excerpt(text, SHOWN);
                write!(f, "`after`: {text:?} is not a duration such as 90s, 10m, 2h or 7d")
            }
            Self::AfterRange => f.write_str("`after` must be between 1s and 366d"),
            Self::BadAt(text) => {
                let text = excerpt(text, SHOWN);
                write!(f, "`at`: {text:?} is not a time such as 2026-11-18T07:00:00+01:00")
            }
            Self::AfterAndAt => f.write_str("`after` and `at` cannot be combined"),
            Self::OnlyLater(name) => write!(f, "`{name}` is only valid on goto and reset"),
            Self::OnlyGoto(name) => write!(f, "`{name}` is only valid on goto"),
            Self::OnlyGotoAndAsk(name) => write!(f, "`{name}` is only valid on goto and ask"),
            Self::OnlyAsk(name) => write!(f, "`{name}` is only valid on ask"),
            Self::OnFork(name) => write!(
                f,
                "`{name}` belongs on the goto beside the forks: <goto wait=\"all\">STATE</goto>"
            ),
            Self::BadWait(text) => {
                write!(f, "`wait` must be {}, not {:?}", Need::WORDS, excerpt(text, SHOWN))
            }
            Self::NeedsWait(name) => write!(f, "`{name}` needs `wait`"),
            Self::BadTimeout(text) => {
                let text = excerpt(text, SHOWN);
                write!(f, "`timeout`: {text:?} is not a duration such as 90s, 10m, 2h or 7d")
            }
            Self::TimeoutRange => f.write_str("`timeout` must be between 1s and 366d"),
            Self::TimeoutNeedsThen => {
                f.write_str("`timeout` needs `then`, the state to enter when the time is up")
            }
            Self::WaitAndInput => f.write_str(
                "`wait` and `input` cannot be combined: `wait` already passes on the results",
            ),
            Self::WaitAnd(name) => write!(f, "`{name}` and `wait` cannot be combined"),
            Self::EmptyQuestion => f.write_str("the question is empty"),
            Self::LongQuestion => f.write_str("the question is longer than 64 KiB"),
            Self::OptionCount => {
                f.write_str("`options` must list 2 to 20 options, separated by vertical bars")
            }
            Self::OptionLength => {
                f.write_str("`options`: each option must have 1 to 80 characters")
            }
            Self::OptionTwice => f.write_str("`options` contains an option twice"),
            Self::NeedsTimeout(name) => write!(f, "`{name}` needs `timeout`"),
            Self::TimeoutNeedsOne => f.write_str("`timeout` needs either `then` or `default`"),
            Self::BadDefault { default, options } => {
                let options: Vec<&str> = options.split('|').map(str::trim).collect();
                let options = options.join(", ");
                let [default, options] =
                    [*default, options.as_str()].map(|text| excerpt(text, SHOWN));
                write!(f, "`default` is {default:?}, but the options are {options}")
            }
            Self::TooLong(None) => f.write_str("its target is longer than any name"),
            Self::TooLong(Some(name)) => {
                write!(f, "the value of `{name}` is longer than any name")
            }
            Self::NoTarget => f.write_str("it names no state"),
            Self::NoClose(name @ (TagName::Result | TagName::Ask)) => {
                write!(f, "it has no `</{name}>`")
            }
            Self::NoClose(name) => {
                write!(f, "there is no `</{name}>` right after the name of a state")
            }
            Self::OpenedTwice(name) => write!(
                f,
                "`<{name}` appears twice before `</{name}>`, so the {text} is uncertain; \
                 where you mean the tag itself, describe it, do not write it",
                text = raw_text(*name)
            ),
            Self::ClosedTwice(name) => write!(
                f,
                "`</{name}>` appears twice, so the {text} is uncertain; \
                 where you mean the tag itself, describe it, do not write it",
                text = raw_text(*name)
            ),
        }
    }
}

/// Returns the word for the raw text of a tag.
const fn raw_text(name: TagName) -> &'static str {
    match name {
        TagName::Ask => "question",
        TagName::Goto
        | TagName::Reset
        | TagName::Call
        | TagName::Function
        | TagName::Fork
        | TagName::Result => "payload",
    }
}
