//! What simulated agents say: every tag, every mistake, every failure.
//!
//! What is said depends on the agent, the state, the visit of that state and the turn, and on
//! nothing else; how a turn fails may also depend on the attempt. So a run that is killed and
//! resumed hears the same as one that was left alone.

use raymond_core::budget::{Cost, Micros};
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::SessionId;
use raymond_core::time::{Span, Timestamp};

use crate::dice::Dice;

/// The place of a turn in the program.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The state's file name.
    pub state: &'a str,
    /// How often the agent has entered the state.
    pub count: u32,
    /// The turn of the visit.
    pub turn: u32,
}

/// How a turn goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speech {
    /// It ends with a text.
    Says(String, Cost),
    /// It uses up its share.
    Capped(Cost),
    /// It fails.
    Fails(TurnFailure, Cost),
    /// It never ends by itself.
    Hangs,
}

/// Those who speak in a simulation.
pub trait Voice: std::fmt::Debug {
    /// What happens in an attempt at a turn.
    fn speech(&self, place: &Place<'_>, attempt: u32, now: Timestamp) -> Speech;
}

/// A cast of agents that say anything.
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
}

impl Voice for Cast {
    fn speech(&self, place: &Place<'_>, attempt: u32, now: Timestamp) -> Speech {
        let Place { agent, state, count, turn } = place;
        let key = format!("{agent}/{state}/{count}/{turn}/{attempt}");
        let mut dice = Dice::keyed(self.seed ^ 0xfa11, &key);
        let script = !state.ends_with(".md");
        let cost = if script { Cost::Free } else { cost(&mut dice) };
        if !dice.percent(self.trouble) {
            return Speech::Says(self.text(place), cost);
        }
        if script {
            return script_trouble(&mut dice);
        }
        match dice.below(12) {
            0..=3 => Speech::Fails(TurnFailure::Transient { why: "overloaded".into() }, cost),
            4 => {
                let (clock, after) = (Clock::Idle, Span::minutes(30));
                Speech::Fails(TurnFailure::Timeout { clock, after }, Cost::Unknown)
            }
            5 => {
                let until = dice.percent(50).then(|| now + Span::minutes(20));
                Speech::Fails(TurnFailure::Quota { until, why: "limit".into() }, cost)
            }
            6 => Speech::Fails(TurnFailure::Auth { why: "log in".into() }, cost),
            7 => Speech::Fails(TurnFailure::Task { why: "gave up".into() }, cost),
            8 => {
                let session = SessionId::new("gone");
                Speech::Fails(TurnFailure::LostSession { session }, Cost::Reported(Micros::ZERO))
            }
            9 => Speech::Capped(cost),
            10 => Speech::Hangs,
            _ => Speech::Fails(TurnFailure::OutputTooLarge { limit: 64 << 20 }, cost),
        }
    }
}

fn cost(dice: &mut Dice) -> Cost {
    match dice.below(10) {
        0 => Cost::Unknown,
        1 => Cost::Estimated(Micros(dice.below(40_000))),
        _ => Cost::Reported(Micros(dice.below(60_000))),
    }
}

impl Cast {
    /// What is said at a place.
    pub fn text(&self, place: &Place<'_>) -> String {
        let Place { agent, state, count, turn } = place;
        let mut dice = Dice::keyed(self.seed, &format!("{agent}/{state}/{count}/{turn}"));
        // The longer it goes on, the sooner it ends.
        let tired = u64::from(*count) * 18 + (agent.len() as u64).saturating_sub(4) * 2;
        let tag = if dice.percent(self.nonsense) {
            self.nonsense(&mut dice)
        } else if dice.percent(12 + tired) {
            result(&mut dice)
        } else {
            self.tag(&mut dice, agent)
        };
        match dice.below(4) {
            0 => format!("All done, I think.\n\n{tag}\n"),
            1 => format!("```\n<goto>EXAMPLE</goto>\n```\nas shown, {tag} it is"),
            _ => tag,
        }
    }

    fn state(&self, dice: &mut Dice) -> String {
        let name = dice.pick(&self.states);
        let (stem, _) = name.split_once('.').unwrap_or((name, ""));
        if dice.percent(50) { stem.to_owned() } else { name.clone() }
    }

    fn tag(&self, dice: &mut Dice, agent: &str) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        let input = if dice.percent(30) { " input=\"a &lt; b\"" } else { "" };
        let model = if dice.percent(30) { " model=\"haiku\"" } else { "" };
        let cd = match dice.below(6) {
            0 => " cd=\"/srv\"",
            1 => " cd=\"sub\"",
            _ => "",
        };
        match dice.below(10) {
            0..=2 => format!("<goto{input}>{target}</goto>"),
            3 => format!("<reset{input}{cd}>{target}</reset>"),
            4 => format!("<reset stack='clear'>{target}</reset>"),
            5 | 6 => format!("<call return=\"{other}\"{input}{model}>{target}</call>"),
            7 => format!("<function return=\"{other}\"{model}>{target}</function>"),
            _ if agent.matches('_').count() > 3 => result(dice),
            8 => format!("<fork next=\"{other}\"{cd}{input} item=\"x\">{target}</fork>"),
            _ => {
                let workers = 1 + dice.index(3);
                let forks = format!("<fork item=\"y\"{cd}>{target}</fork>\n").repeat(workers);
                format!("{forks}<goto{input}>{other}</goto>")
            }
        }
    }

    fn nonsense(&self, dice: &mut Dice) -> String {
        let (target, other) = (self.state(dice), self.state(dice));
        match dice.below(12) {
            0 => "I am not sure what to do next.".to_owned(),
            1 => format!("<goto>{target}</goto> or <goto>{other}</goto>"),
            2 => format!("<result>yes</result><goto>{target}</goto>"),
            3 => "<goto/>".to_owned(),
            4 => format!("<call>{target}</call>"),
            5 => "<goto>NOWHERE</goto>".to_owned(),
            6 => "<goto>../secrets</goto>".to_owned(),
            7 => format!("<fork next=\"{other}\">{target}</fork><fork next=\"QUX\">{target}</fork>"),
            8 => format!("<reset cd=\"/nowhere\">{target}</reset>"),
            9 => format!(
                "<fork next=\"{target}\">{other}</fork><fork next=\"{other}\">{target}</fork>"
            ),
            10 => format!("I would write `<goto>{target}</goto>` here."),
            _ => "<result>one <result>two</result>".to_owned(),
        }
    }
}

fn result(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => format!("<result>{}</result>", "large ".repeat(4_000)),
        1 => "<result></result>".to_owned(),
        2 => "<result>  kept\n as is <goto>X</goto> </result>".to_owned(),
        n => format!("<result>payload {n}</result>"),
    }
}

fn script_trouble(dice: &mut Dice) -> Speech {
    let failure = match dice.below(3) {
        0 => TurnFailure::Script { status: "exit status 1".into(), stderr: "no".into() },
        1 => TurnFailure::Timeout { clock: Clock::Wall, after: Span::seconds(10) },
        _ => return Speech::Hangs,
    };
    Speech::Fails(failure, Cost::Free)
}
