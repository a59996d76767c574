//! Computes the live rows: one for each agent that works or waits, and one for the run.
//!
//! The rows are a pure function of the known state, the time and the size of the terminal. Every
//! row is narrower than the terminal, because a terminal wraps longer ones and `region` would
//! miscount lines.

use anstyle::{AnsiColor, Style};
use jiff::tz::TimeZone;
use raymond_core::budget::Micros;
use raymond_core::ids::AgentId;
use raymond_core::text::joined_words;
use raymond_core::time::Timestamp;
use raymond_core::view::RunView;
use raymond_core::view::run_view::{AgentActivity, AgentCounts, AgentRow, Course};
use unicode_width::UnicodeWidthStr as _;

use super::{Interrupt, agent_style};
use crate::activity;
use crate::local_time::{age, between, in_seconds};
use crate::sanitize::{pad, sanitized, truncate_end, truncate_start};
use crate::terminal::Size;

/// Columns below which the costs of agents are omitted.
const ROOM_FOR_MONEY: usize = 60;
/// Least columns for the activity of an agent.
const LEAST_ROOM: usize = 8;
const GAP: &str = "  ";

/// The time, the zone, the size and the effect of Ctrl-C, which rows depend on.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) now: Timestamp,
    pub(super) zone: TimeZone,
    pub(super) size: Size,
    pub(super) interrupt: Interrupt,
}

/// A row in pieces, each with its style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drawn {
    pieces: Vec<(Style, String)>,
}

impl Drawn {
    pub(super) fn plain(style: Style, text: String) -> Self {
        Self { pieces: vec![(style, text)] }
    }

    /// Returns the columns that the row takes.
    pub(super) fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// Returns the row without its styles.
    pub(super) fn unstyled(self) -> Self {
        let pieces = self.pieces.into_iter().map(|(_, text)| (Style::new(), text)).collect();
        Self { pieces }
    }

    /// Returns the row with its styles as escape sequences.
    pub(super) fn styled(&self) -> String {
        let styled = |(style, text): &(Style, String)| format!("{style}{text}{style:#}");
        self.pieces.iter().map(styled).collect::<Vec<_>>().concat()
    }
}

/// Returns the rows to draw.
pub(super) fn rows(view: &RunView, scene: &Scene) -> Vec<Drawn> {
    // Before the first record, the view has no start, and the age of the run would be decades.
    if *view == RunView::default() {
        return Vec::new();
    }
    let busy = view.busy();
    // At most a third of the screen, so that the log stays readable.
    let most = (scene.size.rows / 3).max(1);
    let shown = if busy.len() <= most { busy.len() } else { (most - 1).max(1) };
    let cells: Vec<Cells> = busy[..shown]
        .iter()
        .map(|(agent, row, activity)| Cells::of(agent, row, activity, scene))
        .collect();
    // One column less: some terminals wrap when the last column is written.
    let columns = Columns::of(&cells, scene.size.columns.saturating_sub(1));
    // Widths are computed from all shown rows first, so that columns align.
    let mut rows: Vec<Drawn> = cells.iter().map(|cells| columns.row(cells)).collect();
    if let more @ 1.. = busy.len() - shown {
        let noun = if more == 1 { "agent" } else { "agents" };
        let text = format!("{GAP}… and {more} more {noun}");
        rows.push(Drawn::plain(Style::new(), truncate_end(&text, columns.all).into_owned()));
    }
    rows.push(Drawn::plain(Style::new().dimmed(), footer(view, scene, columns.all)));
    rows
}

struct Cells {
    mark: &'static str,
    style: Style,
    agent: String,
    state: String,
    activity: String,
    age: String,
    spent: String,
}

impl Cells {
    fn of(agent: &AgentId, row: &AgentRow, activity: &AgentActivity, scene: &Scene) -> Self {
        let state = match row.place() {
            None => String::new(),
            Some((state, 1)) => state.stem(),
            Some((state, visit)) => format!("{} #{visit}", state.stem()),
        };
        // The attributes say which part of the work a worker has.
        let state = [state].into_iter().chain(row.item()).collect::<Vec<_>>().join(" ");
        let (mark, style) = match activity {
            AgentActivity::Waiting(_) => ("·", AnsiColor::Yellow.on_default()),
            AgentActivity::Working(_)
            | AgentActivity::Queued
            | AgentActivity::Interrupted
            | AgentActivity::Stopped
            | AgentActivity::Nothing => ("▸", Style::new()),
        };
        Self {
            mark,
            style,
            agent: sanitized(agent.as_str()),
            state: one_line(&state),
            activity: one_line(&activity::describe(row, activity, scene.now, &scene.zone)),
            age: age(between(row.summary.since, scene.now)),
            spent: match row.summary.spent {
                Micros::ZERO => String::new(),
                spent => spent.to_string(),
            },
        }
    }
}

struct Columns {
    all: usize,
    agent: usize,
    state: usize,
    age: usize,
    spent: usize,
}

impl Columns {
    fn of(cells: &[Cells], all: usize) -> Self {
        let widest = |part: fn(&Cells) -> &str| {
            cells.iter().map(|cells| part(cells).width()).max().unwrap_or(0)
        };
        // Long names must leave room for the activity.
        let quarter = all / 4;
        Self {
            all,
            agent: widest(|cells| &cells.agent).min(quarter.max(8)),
            state: widest(|cells| &cells.state).min(quarter.max(6)),
            age: widest(|cells| &cells.age),
            spent: if all < ROOM_FOR_MONEY { 0 } else { widest(|cells| &cells.spent) },
        }
    }

    fn row(&self, cells: &Cells) -> Drawn {
        let agent = pad(&truncate_start(&cells.agent, self.agent), self.agent);
        let state = pad(&truncate_end(&cells.state, self.state), self.state);
        let spent = match self.spent {
            0 => String::new(),
            spent => format!("{GAP}{:>spent$}", cells.spent),
        };
        let end = format!("{GAP}{:>1$}{spent}", cells.age, self.age);
        let taken = 2 + self.agent + GAP.len() + self.state + GAP.len() + end.width();
        let mut pieces = vec![(cells.style, format!("{} ", cells.mark))];
        let room = self.all.saturating_sub(taken);
        if room < LEAST_ROOM {
            let start = format!("{agent}{GAP}{state}");
            pieces.push((
                Style::new(),
                truncate_end(&start, self.all.saturating_sub(2)).into_owned(),
            ));
            return Drawn { pieces };
        }
        let activity = pad(&truncate_end(&cells.activity, room), room);
        pieces.push((agent_style(&cells.agent), agent));
        pieces.push((Style::new(), format!("{GAP}{state}{GAP}")));
        pieces.push((cells.style, activity));
        pieces.push((Style::new(), end));
        Drawn { pieces }
    }
}

/// Formats the footer, such as `$0.16 of $10.00 · 2 running · 1 waiting · 41s · Ctrl-C stops`;
/// omits parts that do not fit.
fn footer(view: &RunView, scene: &Scene, columns: usize) -> String {
    let AgentCounts { running, queued, waiting, .. } = view.tally();
    let money = match view.cap() {
        Some(cap) => format!("{} of {cap}", view.spent),
        None => format!("{} spent", view.spent),
    };
    let reserved = view.reserved();
    let reserved = (reserved > Micros::ZERO).then(|| format!("{reserved} reserved"));
    let workers = view.workers();
    let workers =
        (workers.total > 0).then(|| format!("{} of {} workers done", workers.done, workers.total));
    let number = |count: usize, word: &str| (count > 0).then(|| format!("{count} {word}"));
    let interrupt = match (view.course, scene.interrupt) {
        // The rows of an ended run are about to disappear: Ctrl-C has no effect on the run.
        (Course::Ended | Course::Interrupted, _) => None,
        (Course::Stopping, _) => Some("stopping"),
        (Course::Ahead, Interrupt::Stops) => Some("Ctrl-C stops"),
        (Course::Ahead, Interrupt::Leaves) => Some("Ctrl-C leaves it running"),
    };
    let asks = view.agents().any(|(_, row)| row.question.is_some());
    let parts = [
        (Part::Money, Some(money)),
        (Part::Reserved, reserved),
        (Part::Running, number(running, "running")),
        (Part::Queued, number(queued, "queued")),
        (Part::Waiting, number(waiting, "waiting")),
        (Part::Age, Some(in_seconds(between(view.totals.driven_since, scene.now)))),
        (Part::Workers, workers),
        (Part::Answer, asks.then(|| format!("to answer: raymond answer {}", view.run))),
        (Part::Interrupt, interrupt.map(str::to_owned)),
    ];
    // The first parts to omit: the others show how the run continues.
    let omitted: [&[Part]; 3] = [&[], &[Part::Reserved], &[Part::Reserved, Part::Workers]];
    let texts = omitted.map(|omitted| {
        let kept = parts.iter().filter(|(part, _)| !omitted.contains(part));
        joined(kept.filter_map(|(_, text)| text.as_deref()), columns)
    });
    let fits = |text: &&(String, bool)| text.1;
    texts.iter().find(fits).unwrap_or(&texts[2]).0.clone()
}

/// A part of the footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Money,
    Reserved,
    Running,
    Queued,
    Waiting,
    /// The time since the start or the last resume.
    Age,
    Workers,
    /// The command that answers a question.
    Answer,
    /// The effect of Ctrl-C.
    Interrupt,
}

/// Joins parts as far as they fit, and returns whether all do.
fn joined<'p>(parts: impl Iterator<Item = &'p str>, columns: usize) -> (String, bool) {
    let mut text = GAP.to_owned();
    for (place, part) in parts.enumerate() {
        let longer = format!("{text}{}{part}", if place > 0 { " · " } else { "" });
        if longer.width() > columns {
            return (text, false);
        }
        text = longer;
    }
    (text, true)
}

/// Returns the text in one line, without control characters and secrets.
fn one_line(text: &str) -> String {
    joined_words(&sanitized(text))
}

#[cfg(test)]
mod tests;
