//! Agents that say anything: every tag, every mistake, every failure.
//!
//! What is said depends on the place alone. Forks thin out with the depth of the agent, so that a
//! run has dozens of agents and not thousands.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::time::{Span, Timestamp};

use crate::dice::Dice;

use super::bill::REQUEST;
use super::speech::{Place, Speech, Voice};
use super::weather::Weather;

/// A cast of agents.
#[derive(Debug, Clone)]
pub struct Cast {
    /// Decides everything they say.
    pub seed: u64,
    /// The states that they know of.
    pub states: Vec<String>,
    /// How often a turn fails, in percent.
    pub trouble: u64,
    /// How often a message is wrong, in percent.
    pub nonsense: u64,
    /// What they may do.
    pub repertoire: Repertoire,
    /// When their backends refuse.
    pub weather: Weather,
    /// How many workers `main` forks with its first message; none leaves it to chance.
    pub storm: usize,
}

/// What a cast may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repertoire {
    /// Everything.
    Full,
    /// What the reference knows of: exact costs, and no failure that holds up other agents.
    Plain,
    /// The same without forks, and with logins and room on the disk that are missing.
    Alone,
}

impl Voice for Cast {
    fn speech(&self, place: Place<'_>, now: Timestamp) -> Speech {
        let mut dice = Dice::keyed(self.seed ^ 0xfa11, &key(place, place.attempt));
        if let Some(failure) = self.weather.refusal(place.backend, now) {
            let cost = *dice.pick(&[Cost::Reported(Micros::ZERO), Cost::Unknown]);
            return Speech::Fails(failure, cost);
        }
        let script = !place.is_prompt();
        let full = self.repertoire == Repertoire::Full;
        let cost = if script { Cost::Free } else { self.cost(&mut dice) };
        let speech = if !dice.percent(self.trouble) {
            let text = self.text(place);
            if full && !script && dice.percent(6) {
                Speech::Denied(if dice.percent(30) { large(&text) } else { text }, cost)
            } else {
                Speech::Says(text, cost)
            }
        } else if script {
            self.script_trouble(&mut dice)
        } else {
            self.trouble(&mut dice, cost, now)
        };
        match place.cap {
            Some(cap) if full => within(&mut dice, cap, speech),
            Some(_) | None => speech,
        }
    }
}

/// A client looks at its cap after every request: at most one of them goes beyond it. It may have
/// finished its answer with that one. Some clients that stop at their cap report less than they spent.
fn within(dice: &mut Dice, cap: Micros, speech: Speech) -> Speech {
    match speech {
        Speech::Says(text, Cost::Reported(cost)) if cost > cap => {
            let spent = Cost::Reported(cost.min(cap.plus(REQUEST)));
            if dice.percent(50) { Speech::SaysCapped(text, spent) } else { Speech::Capped(spent) }
        }
        Speech::Says(text, cost) if cost != Cost::Free && dice.percent(4) => {
            Speech::SaysCapped(text, cost)
        }
        other => other,
    }
}

fn key(place: Place<'_>, attempt: u32) -> String {
    let Place { agent, state, count, turn, .. } = place;
    format!("{agent}/{state}/{count}/{turn}/{attempt}")
}

impl Cast {
    fn cost(&self, dice: &mut Dice) -> Cost {
        match dice.below(10) {
            0 if self.repertoire == Repertoire::Full => Cost::Unknown,
            1 if self.repertoire == Repertoire::Full => Cost::Estimated(Micros(dice.below(40_000))),
            2 if self.repertoire == Repertoire::Full => Cost::AtLeast(Micros(dice.below(40_000))),
            _ => Cost::Reported(Micros(dice.below(60_000))),
        }
    }

    fn trouble(&self, dice: &mut Dice, cost: Cost, now: Timestamp) -> Speech {
        let full = self.repertoire == Repertoire::Full;
        let timeout = TurnFailure::Timeout { clock: Clock::Idle, after: Span::minutes(30) };
        let failure = match dice.below(14) {
            0..=2 => TurnFailure::Transient { why: "overloaded".into() },
            3 => return Speech::Fails(timeout, if full { Cost::Unknown } else { cost }),
            4 | 5 => {
                let until = dice.percent(50).then(|| now + Span::minutes(20));
                TurnFailure::Quota { until, why: "limit".into() }
            }
            6 | 7 if self.repertoire != Repertoire::Plain => {
                TurnFailure::Auth { why: "log in".into() }
            }
            8 => TurnFailure::Task { why: "gave up".into() },
            9 => TurnFailure::LostSession { session: SessionId::new("gone") },
            10 if full => return Speech::Capped(cost),
            11 if full => return Speech::Hangs,
            12 if full => TurnFailure::OutputTooLarge {
                limit: 64 << 20,
                head: String::new(),
                tail: String::new(),
            },
            13 if self.repertoire != Repertoire::Plain => {
                return Speech::Fails(no_room(), if full { in_part(cost) } else { cost });
            }
            _ => TurnFailure::Transient { why: "reset by peer".into() },
        };
        Speech::Fails(failure, cost)
    }

    fn script_trouble(&self, dice: &mut Dice) -> Speech {
        let failure = match dice.below(3) {
            0 => TurnFailure::Timeout { clock: Clock::Wall, after: Span::seconds(10) },
            1 if self.repertoire == Repertoire::Full => return Speech::Hangs,
            _ => TurnFailure::Script { status: "exit status 1".into(), stderr: "no".into() },
        };
        Speech::Fails(failure, Cost::Free)
    }

    /// What is said at a place.
    pub fn text(&self, place: Place<'_>) -> String {
        let mut dice = Dice::keyed(self.seed, &key(place, 0));
        // The longer it goes on, the sooner it ends.
        if self.storm > 0 && place.agent == "main" && place.count == 1 && place.turn == 1 {
            return self.forks(&mut dice, self.storm);
        }
        let tired = u64::from(place.count) * 14 + place.agent.len().saturating_sub(4) as u64 * 2;
        let nonsense = dice.percent(self.nonsense);
        let tag = if nonsense {
            self.nonsense(&mut dice)
        } else if dice.percent(tired) {
            result(&mut dice)
        } else {
            self.tag(&mut dice, place)
        };
        // What is rare is large more often, so that both meet.
        let fork = tag.contains("<fork");
        match dice.below(28) {
            0 => large(&tag),
            1 if place.count > 1 => large(&tag),
            1..=2 if nonsense => large(&tag),
            1..=6 if fork => large(&tag),
            4..=6 => format!("All done, I think.\n\n{tag}\n"),
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
        let name = dice.pick(&self.states);
        let (stem, _) = name.split_once('.').unwrap_or((name, ""));
        if dice.percent(50) { stem.to_owned() } else { name.clone() }
    }

    fn tag(&self, dice: &mut Dice, place: Place<'_>) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        let input = if dice.percent(30) { " input=\"a &lt; b\"" } else { "" };
        let model = if dice.percent(30) { " model=\"haiku\"" } else { "" };
        let cd = *dice.pick(&[" cd=\"/srv\"", " cd=\"sub\"", " cd='..'", "", "", "", "", ""]);
        let fork = self.may_fork(place);
        match dice.below(11) {
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
            _ => format!("<goto>{target}</goto>"),
        }
    }

    /// `main` forks at will, its workers now and then, theirs hardly ever.
    fn may_fork(&self, place: Place<'_>) -> bool {
        let digits: Vec<bool> = place.agent.bytes().map(|byte| byte.is_ascii_digit()).collect();
        let depth = digits.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let chance = match depth {
            0 => 100,
            1 => 40,
            2 => 20,
            _ => 0,
        };
        let mut dice = Dice::keyed(self.seed ^ 0xf0f0, place.agent);
        self.repertoire != Repertoire::Alone && place.count <= 2 && dice.percent(chance)
    }

    fn nonsense(&self, dice: &mut Dice) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        // The last three fork.
        let kinds = if self.repertoire == Repertoire::Alone { 11 } else { 14 };
        match dice.below(kinds) {
            0 => "I am not sure what to do next.".to_owned(),
            1 => format!("<goto>{target}</goto> or <goto>{other}</goto>"),
            2 => format!("<result>yes</result><goto>{target}</goto>"),
            3 => "<goto/>".to_owned(),
            4 => format!("<call>{target}</call>"),
            5 => "<goto>NOWHERE</goto>".to_owned(),
            6 => "<goto>../secrets</goto>".to_owned(),
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

fn no_room() -> TurnFailure {
    TurnFailure::Environment { why: "the disk is full".into() }
}

/// What is known of the cost when the end of a transcript could not be written.
fn in_part(cost: Cost) -> Cost {
    match cost {
        Cost::Reported(known) => Cost::AtLeast(known),
        other => other,
    }
}

/// More than fits into a record.
fn large(tag: &str) -> String {
    format!("{}\n\n{tag}\n", "So much to say. ".repeat(1_030))
}

fn result(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => format!("<result>{}</result>", "large ".repeat(2_800)),
        1 => "<result></result>".to_owned(),
        2 => "<result>  kept\n as is <goto>X</goto> </result>".to_owned(),
        n => format!("<result>payload {n}</result>"),
    }
}
