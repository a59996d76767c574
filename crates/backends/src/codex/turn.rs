//! What the lines of a turn add up to.
//!
//! The stream says how the turn goes; what it costs, and what an error is, comes from the books. Both
//! are looked at whenever the client is heard, and the books oftener while there is a cap to keep.

use std::time::Duration;

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::TurnFailure;
use raymond_core::ids::SessionId;
use raymond_core::prices::Usage;
use tokio::time::Instant;

use super::books::{Books, Ending};
use super::fault::{Fault, Retry};
use super::line::{self, Item, Line};
use super::past_file;
use crate::contract::Request;
use crate::headless::{
    Fold, Hearing, Nonsense, Said, Speaker, Stage, Step, is_name, shortened, unwritable,
};

/// A turn, as far as it was heard.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) books: Books,
    /// The thread that the client names.
    pub(super) session: Option<SessionId>,
    /// The last message.
    pub(super) message: Option<String>,
    /// How the client concludes.
    pub(super) result: Option<Conclusion>,
    /// Why the client is ended before that.
    pub(super) trouble: Option<Trouble>,
    /// The calls that were declined.
    pub(super) denied: Vec<String>,
    pub(super) form: Form,
    pub(super) hearing: Hearing,
    cap: Option<Micros>,
    begun: Begun,
    /// Since when there is something to see in the books that cannot be seen.
    unseen: Since,
    /// Since when an answer lacks its tokens.
    uncounted: Since,
    /// Since when nothing should follow.
    finishing: Since,
    /// Since when a request is under way.
    asking: Since,
    /// The last that the client said is that it tries again.
    retries: bool,
    /// A request broke off and was tried again: the model may have worked on it.
    broke_off: bool,
    /// The thread that it is to go on with.
    resumes: Option<SessionId>,
    /// What the stream says that a thread used, in all its turns.
    told: Option<Usage>,
    /// The model of a thread that is opened: all that it uses is of this turn.
    pub(super) opens: Option<String>,
    spoke: bool,
}

/// What the final message is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// How a client concludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conclusion {
    Completed,
    Failed { message: String },
}

/// Why nothing good can follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nobody is logged in.
    LoggedOut(String),
    /// A usage limit is reached.
    Limited(String),
    /// The share is used up, and another request would follow.
    Capped,
    /// There is a share, and what the client spends cannot be seen.
    Unseen,
    /// It writes another thread than it should.
    Strayed { from: SessionId, to: SessionId },
    /// There is a share, and a model whose price is not known: it cannot be kept.
    Unpriced(String),
}

/// Whether the model may have been asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    NotYet,
    Already,
}

/// How often the books are read while there is a cap: a request that follows upon one that used up the
/// share is stopped before it is much older than this.
const GLANCE: Duration = Duration::from_millis(50);

/// Since when something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Since(Option<Instant>);

impl Since {
    fn note(&mut self, is_so: bool) {
        self.0 = if is_so { self.0.or_else(|| Some(Instant::now())) } else { None };
    }

    fn lasts(&self, span: Duration) -> bool {
        self.0.is_some_and(|since| since.elapsed() >= span)
    }
}

/// A request that is younger may not have been sent.
const SENT: Duration = Duration::from_millis(500);

/// How long the client may take to write down what goes with an answer: its tokens, the end of the turn.
pub(super) const SETTLED: Duration = Duration::from_secs(1);

/// How long a client that works may keep no books.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

impl Turn {
    pub(super) fn new(books: Books, cap: Option<Micros>, form: Form) -> Self {
        Self {
            books,
            session: None,
            message: None,
            result: None,
            trouble: None,
            denied: Vec::new(),
            form,
            hearing: Hearing::default(),
            cap,
            begun: Begun::NotYet,
            unseen: Since::default(),
            uncounted: Since::default(),
            finishing: Since::default(),
            asking: Since::default(),
            retries: false,
            broke_off: false,
            resumes: None,
            told: None,
            opens: None,
            spoke: false,
        }
    }

    /// Returns what is known of the cost. Tokens are counted, and priced by the list.
    pub(super) fn cost(&self) -> Cost {
        let free = Cost::Reported(Micros::ZERO);
        let is_empty = self.books.are_open() && self.books.is_empty();
        let turned_away = matches!(self.trouble, Some(Trouble::LoggedOut(_) | Trouble::Limited(_)));
        let is_refused = !self.broke_off && (turned_away || self.was_refused());
        match (&self.result, self.begun) {
            (_, Begun::NotYet) => free,
            // The provider served none of the requests. One that broke off, or that a gateway failed, may
            // have been answered in part, also if the client tried it again and only that was refused.
            (Some(Conclusion::Failed { .. }) | None, _) if is_empty && is_refused => free,
            // The books may not have got further than the turn before.
            (None, _) if self.books.may_be_behind() => Cost::Unknown,
            (Some(Conclusion::Completed), _) if self.books.is_empty() => {
                self.told().map_or(Cost::Unknown, Cost::Estimated)
            }
            (Some(Conclusion::Failed { .. }) | None, _) if self.books.is_empty() => Cost::Unknown,
            (Some(Conclusion::Completed), _) => self.books.bill(Ending::Reported).cost(),
            (Some(Conclusion::Failed { .. }) | None, _) if is_refused => {
                self.books.bill(Ending::Reported).cost()
            }
            (Some(Conclusion::Failed { .. }) | None, _) => {
                self.books.bill(Ending::Interrupted).cost()
            }
        }
    }

    /// Whether the turn failed because no model was to work on its last request.
    fn was_refused(&self) -> bool {
        match &self.result {
            Some(Conclusion::Failed { message }) => {
                Fault::is_refusal(self.books.problem(), message)
            }
            Some(Conclusion::Completed) | None => false,
        }
    }

    /// Whether the client may have asked the model.
    pub(super) fn may_have_asked(&self) -> bool {
        self.begun == Begun::Already
    }

    /// What the stream says, where the books say nothing.
    fn told(&self) -> Option<Micros> {
        let model = self.opens.as_ref().filter(|_| self.books.is_empty())?;
        self.books.price(model, self.told.as_ref()?)
    }

    /// Whether there is a share to keep, and nobody knows how much of it is left.
    pub(super) fn is_unseen(&self) -> bool {
        let is_over = self.result.is_some() || !self.books.are_open() || self.books.lacks_tokens();
        let is_known = self.cost() != Cost::Unknown && self.books.is_priced();
        self.cap.is_some() && is_over && !is_known
    }

    fn take(&mut self, line: Line) -> Result<Vec<Said>, Nonsense> {
        match line {
            Line::Thread(id) => self.is_in(&id),
            Line::Begins => self.begun = Begun::Already,
            Line::Doing(item) => return Ok(self.doing(&item)),
            Line::Done(item) => return Ok(self.done(item)),
            Line::Completed(usage) => {
                self.begun = Begun::Already;
                self.told = usage;
                self.result = Some(Conclusion::Completed);
            }
            Line::Failed(message) => {
                let said = Said::Final { by: Speaker::Client, text: message.clone() };
                self.result = Some(Conclusion::Failed { message });
                return Ok(vec![said]);
            }
            Line::Trouble(message) => return Ok(self.troubled(&message)),
            Line::Ignored => {}
            Line::NotJson => {
                self.missed();
                return Err(Nonsense::NotJson);
            }
            Line::Unknown(kind) => {
                self.missed();
                return Err(Nonsense::Unknown(kind));
            }
        }
        Ok(Vec::new())
    }

    /// The thread that the client names will be an argument of the next client.
    fn is_in(&mut self, id: &str) {
        if !is_name(id) {
            self.hearing.warnings.say("the client names a thread in a way that cannot be used");
            return;
        }
        let id = SessionId::new(id);
        match self.session.as_ref().or(self.resumes.as_ref()).filter(|known| **known != id) {
            Some(from) => self.trouble = Some(Trouble::Strayed { from: from.clone(), to: id }),
            None => {
                self.books.add(id.as_str());
                self.session = Some(id);
            }
        }
    }

    fn doing(&mut self, item: &Item) -> Vec<Said> {
        (self.spoke, self.retries) = (true, false);
        self.begun = Begun::Already;
        self.enlist(item);
        match item {
            Item::Command { command, .. } => vec![Said::Tool { name: shell(command) }],
            Item::Tool { name, .. } => vec![Said::Tool { name: name.clone() }],
            Item::Agents { tool, .. } => vec![Said::Tool { name: tool.clone() }],
            Item::Message(_) | Item::Files { .. } | Item::Note(_) | Item::Other => Vec::new(),
        }
    }

    fn done(&mut self, item: Item) -> Vec<Said> {
        self.enlist(&item);
        if !matches!(item, Item::Note(_)) {
            (self.spoke, self.retries) = (true, false);
            self.begun = Begun::Already;
        }
        match item {
            Item::Message(text) => {
                self.hearing.unread = false;
                self.message = Some(text.clone());
                vec![Said::Text { by: Speaker::Agent, text }]
            }
            Item::Command { command, status, .. } if status == "declined" => {
                self.deny(format!("the command {}", line(&command)))
            }
            Item::Command { status, output, .. } if status == "failed" => {
                vec![Said::ToolFailed { why: output }]
            }
            Item::Files { paths, status } => {
                let paths = paths.join(", ");
                if status == "declined" {
                    self.deny(format!("the edit of {paths}"))
                } else {
                    vec![Said::Tool { name: format!("Edit({paths})") }]
                }
            }
            Item::Tool { failed: Some(why), .. } => vec![Said::ToolFailed { why }],
            Item::Note(message) => {
                self.hearing.warnings.say(format!("the client says: {message}"));
                vec![Said::Unread { what: shortened(&message) }]
            }
            Item::Command { .. } | Item::Tool { .. } | Item::Agents { .. } | Item::Other => {
                Vec::new()
            }
        }
    }

    /// The agents that it starts are paid with the same money.
    fn enlist(&mut self, item: &Item) {
        if let Item::Agents { threads, .. } = item {
            let threads = threads.iter().filter(|_| self.session.is_some());
            threads.for_each(|thread| self.books.add(thread));
        }
    }

    /// Not in the words of a rule: no list would allow it.
    fn deny(&mut self, call: String) -> Vec<Said> {
        const MOST: usize = 1000;
        if self.denied.len() < MOST {
            self.denied.push(call.clone());
        }
        vec![Said::Denied { tool: call }]
    }

    fn troubled(&mut self, message: &str) -> Vec<Said> {
        let why = shortened(message);
        self.broke_off |= Retry::follows_a_break(message);
        match Retry::of(message) {
            // What it fails with is told again when it does.
            None => return Vec::new(),
            Some(Retry::Useful) => self.retries = true,
            Some(Retry::LoggedOut) => self.trouble = Some(Trouble::LoggedOut(why.clone())),
            Some(Retry::Limited) => self.trouble = Some(Trouble::Limited(why.clone())),
        }
        vec![Said::Retries { why }]
    }
}

impl Fold for Turn {
    fn hearing(&mut self) -> &mut Hearing {
        &mut self.hearing
    }

    fn read(&mut self, line: &str) -> Result<Vec<Said>, Nonsense> {
        self.take(line::read(line))
    }

    /// The unread part may have been the start of the turn.
    fn missed(&mut self) {
        self.begun = Begun::Already;
    }

    fn stage(&self) -> Stage {
        if self.result.is_some() { Stage::Done } else { Stage::Working }
    }

    fn is_complete(&self) -> bool {
        self.result.is_some()
    }

    fn progressed(&self) -> bool {
        self.spoke || !self.books.is_empty()
    }

    fn is_hopeless(&self) -> bool {
        self.trouble.is_some() && self.result.is_none()
    }

    fn session(&self) -> Option<SessionId> {
        self.session.clone()
    }

    /// One that does not know its thread has spent nothing.
    fn successor(&self) -> Self {
        Self::new(self.books.anew(), self.cap, self.form)
    }

    fn starts(&mut self, step: &Step, request: &Request) -> Result<(), TurnFailure> {
        let past = past_file(&request.started);
        let closed = self.books.close(step.needs().map(SessionId::as_str));
        closed.map_err(|error| unwritable(&past, &error))?;
        if request.schema.is_some() {
            self.form = Form::Json;
        }
        if let Step::Open(_) = step {
            self.opens.clone_from(&request.model);
        }
        if let Step::Resume(id) = step {
            self.books.add(id.as_str());
            self.resumes = Some(id.clone());
            let told = |text: &String| !self.books.was_told(id.as_str(), text);
            if request.extras.append_system_prompt.as_ref().is_some_and(told) {
                let why = "the client keeps the system prompt that a thread was opened with";
                self.hearing.warnings.say(format!("append_system_prompt was not heard: {why}"));
            }
        }
        Ok(())
    }

    fn ends(&mut self) {
        self.look();
        // A share that is used up is charged in full. For every other reason to end the client, the
        // request counts: no matter how often a turn is stopped and resumed, none is free.
        if self.trouble == Some(Trouble::Capped) && !self.asking.lasts(SENT) {
            self.books.withdraw();
        }
        self.books.ends();
    }

    fn is_getting_nowhere(&self) -> bool {
        self.retries
    }

    fn look_every(&self) -> Option<Duration> {
        let is_watched = self.session.is_some() || self.begun == Begun::Already;
        self.cap.filter(|_| is_watched).map(|_| GLANCE)
    }

    fn look(&mut self) {
        self.books.read_on();
        if !self.books.is_empty() && !self.books.may_be_behind() {
            self.begun = Begun::Already;
        }
        self.asking.note(self.books.is_asking());
        self.look_for_books();
        if self.books.may_be_behind() {
            return;
        }
        // Also of a turn that is done: else a run of short ones would never meet its cap.
        let unpriced = self.cap.and_then(|_| self.books.unpriced()).map(str::to_owned);
        if let Some(model) = unpriced.filter(|_| self.trouble.is_none()) {
            self.trouble = Some(Trouble::Unpriced(model));
        }
        let used_up =
            self.cap.is_some_and(|cap| !self.books.is_empty() && self.books.spent() >= cap);
        self.finishing.note(self.books.is_finishing());
        let follows = !self.books.is_finishing() || self.finishing.lasts(SETTLED);
        if used_up && follows && self.trouble.is_none() {
            self.trouble = Some(Trouble::Capped);
        }
    }
}

impl Turn {
    /// What cannot be seen cannot be kept below a share.
    fn look_for_books(&mut self) {
        let is_watched = self.cap.is_some() && self.begun == Begun::Already;
        self.unseen.note(is_watched && !self.books.are_open());
        self.uncounted.note(is_watched && self.books.lacks_tokens());
        let is_unseen = self.unseen.lasts(PATIENCE) || self.uncounted.lasts(SETTLED);
        if is_unseen && self.trouble.is_none() {
            self.trouble = Some(Trouble::Unseen);
        }
    }
}

/// A command as a tool.
fn shell(command: &str) -> String {
    format!("Bash({})", line(command))
}

/// A command as it was meant: the client has a shell run it.
fn line(command: &str) -> String {
    const LENGTH: usize = 2000;
    let line = command.split_once(" -lc ").map_or(command, |(_, line)| line).trim();
    let quoted = |quote| line.strip_prefix(quote).and_then(|line| line.strip_suffix(quote));
    let line = quoted('\'').or_else(|| quoted('"')).unwrap_or(line);
    let cut = line.floor_char_boundary(LENGTH);
    let dots = if cut < line.len() { "…" } else { "" };
    format!("{}{dots}", &line[..cut])
}

#[cfg(test)]
mod tests;
