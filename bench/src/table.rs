//! What was measured, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What is hoped for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// At most so many times the floor.
    Times(f64),
    /// At most so much, whatever the floor is.
    AtMost(f64),
    /// Nothing: it is shown beside the others.
    Shown,
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) row: char,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: f64,
    /// The least that would do.
    pub(crate) floor: Option<f64>,
    /// What others take.
    pub(crate) peers: Vec<(&'static str, f64)>,
    pub(crate) goal: Goal,
}

impl Figure {
    pub(crate) fn new(row: char, what: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        let (what, peers) = (what.into(), Vec::new());
        Self { row, what, unit, ours, floor: None, peers, goal: Goal::Shown }
    }

    pub(crate) fn floor(self, floor: f64) -> Self {
        Self { floor: Some(floor), ..self }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self { goal, ..self }
    }

    pub(crate) fn peer(mut self, name: &'static str, took: Option<f64>) -> Self {
        self.peers.extend(took.map(|took| (name, took)));
        self
    }

    /// Ours in terms of the floor.
    fn ratio(&self) -> Option<f64> {
        self.floor.filter(|floor| *floor > 0.0).map(|floor| self.ours / floor)
    }

    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::Times(most) => self.ratio().map(|ratio| ratio <= most),
            Goal::AtMost(most) => Some(self.ours <= most),
            Goal::Shown => None,
        }
    }

    fn cells(&self) -> [String; 7] {
        let show = |value: f64| format!("{} {}", digits(value), self.unit);
        let goal = match self.goal {
            Goal::Times(most) => format!("≤ {most} ×"),
            Goal::AtMost(most) => format!("≤ {most} {}", self.unit),
            Goal::Shown => String::new(),
        };
        let met = match self.is_met() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let peers: Vec<String> =
            self.peers.iter().map(|(name, took)| format!("{name} {}", show(*took))).collect();
        [
            format!("{}. {}", self.row, self.what),
            show(self.ours),
            self.floor.map(show).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{ratio:.2} ×")).unwrap_or_default(),
            goal,
            met.to_owned(),
            peers.join(", "),
        ]
    }

    fn json(&self) -> Value {
        let peers: serde_json::Map<String, Value> =
            self.peers.iter().map(|(name, took)| ((*name).to_owned(), json!(took))).collect();
        let goal = match self.goal {
            Goal::Times(most) => json!({ "times": most }),
            Goal::AtMost(most) => json!({ "atMost": most }),
            Goal::Shown => Value::Null,
        };
        json!({
            "row": self.row.to_string(), "what": self.what, "unit": self.unit, "ours": self.ours,
            "floor": self.floor, "ratio": self.ratio(), "goal": goal, "met": self.is_met(), "peers": peers,
        })
    }
}

/// Three digits that count.
fn digits(value: f64) -> String {
    let after = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.after$}")
}

/// All lines, as documents have them.
pub(crate) fn table(figures: &[Figure]) -> String {
    let head = ["work", "Raymond", "floor", "ratio", "goal", "", "others"].map(str::to_owned);
    let rows: Vec<[String; 7]> =
        std::iter::once(head).chain(figures.iter().map(Figure::cells)).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default().max(3)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(text, "| {} |", cells.join(" | ")).ok();
        if number == 0 {
            writeln!(text, "|{}|", widths.map(|width| "-".repeat(width + 2)).join("|")).ok();
        }
    }
    text
}

/// All lines, for programs.
pub(crate) fn json(figures: &[Figure]) -> Value {
    figures.iter().map(Figure::json).collect()
}
