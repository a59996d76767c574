//! Agents that reply anything: every tag, every mistake, every failure.
//!
//! A reply depends only on the request, so that a repeated turn gets the same reply. Deeper agents
//! fork less, so that a run has dozens of agents and not thousands.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::protocol::TagName;
use raymond_core::protocol::tags::Body;
use raymond_core::time::{Span, Timestamp};

use crate::dice::Dice;

use super::client_cost::MAX_REQUEST_COST;
use super::outages::Outages;
use super::reply::{Reply, ReplySource, TurnRequest};

#[derive(Debug, Clone)]
pub struct RandomAgents {
    pub seed: u64,
    /// The states that they may name.
    pub states: Vec<String>,
    /// How often a turn fails, in percent.
    pub failures: u64,
    /// How often a message is wrong, in percent.
    pub mistakes: u64,
    pub behavior: Behavior,
    pub outages: Outages,
    /// How many workers `main` forks with its first message; 0 means a random number.
    pub first_forks: usize,
}

/// The replies that agents may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    Full,
    /// Replies that the reference can interpret: exact costs, and no failure that holds other
    /// agents.
    Comparable,
    /// Like `Comparable`, without forks, but with missing logins and full disks.
    WithoutForks,
}

impl ReplySource for RandomAgents {
    fn reply(&self, request: TurnRequest<'_>, now: Timestamp) -> Reply {
        // Failures have their own stream of choices, so that they do not depend on the text.
        let mut dice = Dice::keyed(self.seed ^ 0xfa11, &key(request, request.attempt));
        if let Some(failure) = self.outages.failure_at(request.backend, now) {
            let cost = *dice.pick(&[Cost::Reported(Micros::ZERO), Cost::Unknown]);
            return Reply::Fails(failure, cost);
        }
        let script = !request.is_prompt();
        let full = self.behavior == Behavior::Full;
        let cost = if script { Cost::Free } else { self.cost(&mut dice) };
        let reply = if !dice.percent(self.failures) {
            let text = self.text(request);
            if full && !script && dice.percent(6) {
                Reply::Denied(if dice.percent(30) { large(&text) } else { text }, cost)
            } else {
                Reply::Says(text, cost)
            }
        } else if script {
            self.failing_script(&mut dice)
        } else {
            self.failing_reply(&mut dice, cost, now)
        };
        match request.cap {
            Some(cap) if full => limit_to_cap(&mut dice, cap, reply),
            Some(_) | None => reply,
        }
    }
}

/// Limits a reply to the cap of its turn.
///
/// A client checks its cap after every request, so at most one request exceeds it, and that request
/// may complete the answer. Some clients that stop at their cap report less than they spent.
fn limit_to_cap(dice: &mut Dice, cap: Micros, reply: Reply) -> Reply {
    match reply {
        Reply::Says(text, Cost::Reported(cost)) if cost > cap => {
            // One request beyond the cap is the most that a client can spend; the auditor allows no
            // more.
            let spent = Cost::Reported(cost.min(cap.plus(MAX_REQUEST_COST)));
            if dice.percent(50) { Reply::SaysCapped(text, spent) } else { Reply::Capped(spent) }
        }
        Reply::Says(text, cost) if cost != Cost::Free && dice.percent(4) => {
            Reply::SaysCapped(text, cost)
        }
        other => other,
    }
}

fn key(request: TurnRequest<'_>, attempt: u32) -> String {
    // Without the cap and the time: shares and delays differ after a crash, but the random numbers
    // must not.
    let TurnRequest { agent, state, count, turn, .. } = request;
    format!("{agent}/{state}/{count}/{turn}/{attempt}")
}

impl RandomAgents {
    fn cost(&self, dice: &mut Dice) -> Cost {
        match dice.below(10) {
            // The reference has exact costs only. So the other behaviours report every cost.
            0 if self.behavior == Behavior::Full => Cost::Unknown,
            1 if self.behavior == Behavior::Full => Cost::Estimated(Micros(dice.below(40_000))),
            2 if self.behavior == Behavior::Full => Cost::AtLeast(Micros(dice.below(40_000))),
            _ => Cost::Reported(Micros(dice.below(60_000))),
        }
    }

    fn failing_reply(&self, dice: &mut Dice, cost: Cost, now: Timestamp) -> Reply {
        let full = self.behavior == Behavior::Full;
        let timeout = TurnFailure::Timeout { clock: Clock::Idle, after: Span::minutes(30) };
        let failure = match dice.below(14) {
            0..=2 => TurnFailure::Transient { why: "overloaded".into() },
            // A client that is ended for its silence writes no result, and so reports no cost.
            3 => return Reply::Fails(timeout, if full { Cost::Unknown } else { cost }),
            4 | 5 => {
                let until = dice.percent(50).then(|| now + Span::minutes(20));
                TurnFailure::Quota { until, why: "limit".into() }
            }
            // A missing login holds all turns of the backend, and timing decides which of them
            // start before. The reference has no time.
            6 | 7 if self.behavior != Behavior::Comparable => {
                TurnFailure::Auth { why: "log in".into() }
            }
            8 => TurnFailure::Task { why: "gave up".into() },
            9 => TurnFailure::LostSession { session: SessionId::new("gone") },
            10 if full => return Reply::Capped(cost),
            11 if full => return Reply::Hangs,
            12 if full => TurnFailure::OutputTooLarge {
                limit: 64 << 20,
                head: String::new(),
                tail: String::new(),
            },
            13 if self.behavior != Behavior::Comparable => {
                return Reply::Fails(full_disk(), if full { as_lower_bound(cost) } else { cost });
            }
            // The numbers that a behaviour excludes also end here, so that every behaviour draws
            // the same numbers.
            _ => TurnFailure::Transient { why: "reset by peer".into() },
        };
        Reply::Fails(failure, cost)
    }

    fn failing_script(&self, dice: &mut Dice) -> Reply {
        let failure = match dice.below(3) {
            0 => TurnFailure::Timeout { clock: Clock::Wall, after: Span::seconds(10) },
            1 if self.behavior == Behavior::Full => return Reply::Hangs,
            _ => TurnFailure::Script {
                status: "exit status 1".into(),
                stderr: "no".into(),
                tag: None,
            },
        };
        Reply::Fails(failure, Cost::Free)
    }

    pub fn text(&self, request: TurnRequest<'_>) -> String {
        // The attempt is not part of the key: a retry gives the same text.
        let mut dice = Dice::keyed(self.seed, &key(request, 0));
        // With `first_forks`, the first message of `main` creates many agents at once.
        if self.first_forks > 0
            && request.agent == "main"
            && request.count == 1
            && request.turn == 1
        {
            return self.forks(&mut dice, self.first_forks);
        }
        // Later visits and deeper agents (with longer names) end sooner, so that runs are finite.
        let end_chance =
            u64::from(request.count) * 14 + request.agent.len().saturating_sub(4) as u64 * 2;
        let is_wrong = dice.percent(self.mistakes);
        let tag = if is_wrong {
            self.wrong_text(&mut dice)
        } else if dice.percent(end_chance) {
            result(&mut dice)
        } else {
            self.tag(&mut dice, request)
        };
        // Rare texts are large more often, so that both properties occur together.
        let (fork, ask) = (tag.contains("<fork"), tag.contains("<ask"));
        match dice.below(28) {
            0 => large(&tag),
            1 if request.count > 1 => large(&tag),
            1..=2 if is_wrong => large(&tag),
            1..=6 if fork => large(&tag),
            1..=9 if ask => large(&tag),
            4..=6 => format!("All done, I think.\n\n{tag}\n"),
            // A tag in a code block must not count, also beside one that does.
            7..=12 => format!("```\n<goto>EXAMPLE</goto>\n```\nas shown, {tag} it is"),
            _ => tag,
        }
    }

    fn forks(&self, dice: &mut Dice, workers: usize) -> String {
        let forks: Vec<String> =
            (0..workers).map(|_| format!("<fork item=\"z\">{}</fork>", self.state(dice))).collect();
        format!("{}<goto>{}</goto>", forks.join("\n"), self.state(dice))
    }

    fn state(&self, dice: &mut Dice) -> String {
        // Half of the names have no extension. If two states share the stem, such a name is a
        // fault.
        let name = dice.pick(&self.states);
        let (stem, _) = name.split_once('.').unwrap_or((name, ""));
        if dice.percent(50) { stem.to_owned() } else { name.clone() }
    }

    fn tag(&self, dice: &mut Dice, request: TurnRequest<'_>) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        let input = if dice.percent(30) { " input=\"a &lt; b\"" } else { "" };
        let model = if dice.percent(30) { " model=\"haiku\"" } else { "" };
        // `..` leads to a directory that may not exist, so a correct tag can still be a fault.
        let cd = *dice.pick(&[" cd=\"/srv\"", " cd=\"sub\"", " cd='..'", "", "", "", "", ""]);
        let fork = self.may_fork(request);
        match dice.below(16) {
            0..=2 => format!("<goto{input}>{target}</goto>"),
            3 => format!("<reset{input}{cd}>{target}</reset>"),
            4 => format!("<reset stack='clear'>{target}</reset>"),
            5 | 6 => format!("<call return=\"{other}\"{input}{model}>{target}</call>"),
            7 => format!("<function return=\"{other}\"{model}>{target}</function>"),
            8 if fork => format!("<fork next=\"{other}\"{cd}{input} item=\"x\">{target}</fork>"),
            9 | 10 if fork => {
                let workers = *dice.pick(&[1, 1, 2, 3]);
                let forks = format!("<fork item=\"y\"{cd}>{target}</fork>\n").repeat(workers);
                format!("{forks}<goto{input}>{other}</goto>")
            }
            11 => {
                let wait = *dice.pick(&["1s", "5m", "2h", "400d"]);
                format!("<goto after=\"{wait}\"{input}>{target}</goto>")
            }
            12 => {
                let wait = *dice.pick(&["after=\"90s\"", "at=\"2001-01-01T00:00:00Z\""]);
                format!("<reset {wait}{input}{cd}>{target}</reset>")
            }
            13 if fork && dice.percent(60) => self.join(dice, &target, &other, cd),
            13 if fork => {
                let forks = format!("<fork item=\"w\"{cd}>{target}</fork>\n");
                format!("{forks}<goto after=\"1m\"{input}>{other}</goto>")
            }
            14 | 15 => self.question(dice, &target, &other),
            _ => any_tag_but_fork(dice, &target, &other),
        }
    }

    /// Returns a question. The reference knows only questions that do not depend on timing.
    fn question(&self, dice: &mut Dice, target: &str, other: &str) -> String {
        let options = *dice.pick(&["", " options=\"approve|reject\""]);
        let timeout = match self.behavior {
            Behavior::Full => match dice.below(4) {
                0 => format!(" timeout=\"2h\" then=\"{other}\""),
                1 => " timeout=\"1s\" default=\"reject\"".to_owned(),
                _ => String::new(),
            },
            Behavior::Comparable | Behavior::WithoutForks => String::new(),
        };
        format!("<ask next=\"{target}\"{options}{timeout}>Shall I?</ask>")
    }

    /// Returns a message that waits for its workers. The reference knows only waits that do not
    /// depend on timing.
    fn join(&self, dice: &mut Dice, target: &str, other: &str, cd: &str) -> String {
        let forks =
            format!("<fork item=\"j\"{cd}>{target}</fork>\n").repeat(*dice.pick(&[1, 2, 3]));
        let waits = match self.behavior {
            Behavior::Full => &["all", "any", "done", "2"][..],
            Behavior::Comparable | Behavior::WithoutForks => &["all", "done"],
        };
        let wait = *dice.pick(waits);
        let then = match self.behavior {
            Behavior::Full if dice.percent(50) => {
                let timeout = *dice.pick(&["", " timeout=\"2s\"", " timeout=\"1h\""]);
                format!("{timeout} then=\"{}\"", self.state(dice))
            }
            Behavior::Full | Behavior::Comparable | Behavior::WithoutForks => String::new(),
        };
        format!("{forks}<goto wait=\"{wait}\"{then}>{other}</goto>")
    }

    /// Decides whether an agent may fork: `main` always, its workers sometimes, their workers
    /// rarely.
    fn may_fork(&self, request: TurnRequest<'_>) -> bool {
        // Each fork appends a state and a number to the name, so a change from letter to digit is
        // one level of forks.
        let digits: Vec<bool> = request.agent.bytes().map(|byte| byte.is_ascii_digit()).collect();
        let depth = digits.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let chance = match depth {
            0 => 100,
            1 => 40,
            2 => 20,
            _ => 0,
        };
        // Keyed by the agent alone: an agent that may fork keeps that property at all its visits.
        let mut dice = Dice::keyed(self.seed ^ 0xf0f0, request.agent);
        self.behavior != Behavior::WithoutForks && request.count <= 2 && dice.percent(chance)
    }

    fn wrong_text(&self, dice: &mut Dice) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        // The last three kinds contain forks.
        let kinds = if self.behavior == Behavior::WithoutForks { 11 } else { 14 };
        match dice.below(kinds) {
            0 => "I am not sure what to do next.".to_owned(),
            1 => format!("<goto>{target}</goto> or <goto>{other}</goto>"),
            2 => format!("<result>yes</result><goto>{target}</goto>"),
            3 => "<goto/>".to_owned(),
            4 => format!("<call>{target}</call>"),
            5 => "<goto>NOWHERE</goto>".to_owned(),
            6 => "<goto>../secrets</goto>".to_owned(),
            // Twice, because few other texts give this fault, and the coverage table needs it at
            // every point where the machine can fail.
            7 | 8 => format!("<reset cd=\"/nowhere\">{target}</reset>"),
            9 => format!("I would write `<goto>{target}</goto>` here."),
            10 => "<result>one <result>two</result>".to_owned(),
            11 => {
                format!("<fork next=\"{other}\">{target}</fork><fork next=\"QUX\">{target}</fork>")
            }
            12 => format!("<fork next=\"{other}\" cd=\"nowhere\">{target}</fork>"),
            _ => format!(
                "<fork next=\"{target}\">{other}</fork><fork next=\"{other}\">{target}</fork>"
            ),
        }
    }
}

fn full_disk() -> TurnFailure {
    TurnFailure::Environment { why: "the disk is full".into() }
}

/// Returns the known cost if the end of a transcript could not be written.
fn as_lower_bound(cost: Cost) -> Cost {
    match cost {
        // The disk was full, so the transcript ends before the last costs.
        Cost::Reported(known) => Cost::AtLeast(known),
        other => other,
    }
}

/// Returns a text that does not fit into a record.
fn large(tag: &str) -> String {
    // 16 × 1,030 bytes are more than the 16 KiB that a record holds inline.
    format!("{}\n\n{tag}\n", "So much to say. ".repeat(1_030))
}

/// Writes a tag without options. It comes from core's table, so that a new tag is simulated, too.
fn any_tag_but_fork(dice: &mut Dice, target: &str, other: &str) -> String {
    let has_target = |tag: &TagName| tag.spec().body == Body::Target;
    let tags = TagName::ALL.into_iter().filter(has_target).filter(|tag| *tag != TagName::Fork);
    let tag = *dice.pick(&tags.collect::<Vec<_>>());
    let follower = tag.spec().follower.map(|given| format!(" {}=\"{other}\"", given.attribute));
    format!("<{tag}{}>{target}</{tag}>", follower.unwrap_or_default())
}

fn result(dice: &mut Dice) -> String {
    match dice.below(12) {
        // 16,800 bytes, more than the 16 KiB that a record holds inline.
        0 => format!("<result>{}</result>", "large ".repeat(2_800)),
        1 => "<result></result>".to_owned(),
        3 => "<result status=\"failed\">gave up</result>".to_owned(),
        2 => "<result>  kept\n as is <goto>X</goto> </result>".to_owned(),
        n => format!("<result>payload {n}</result>"),
    }
}
