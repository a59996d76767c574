//! The figures as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::series::Series;

/// What is hoped for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// At most so many times the floor.
    Times(f64),
    /// At most this much, independent of the floor.
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
    pub(crate) ours: Series,
    /// The least that would do.
    pub(crate) floor: Option<Series>,
    /// The costs of other tools.
    pub(crate) peers: Vec<(&'static str, Series)>,
    pub(crate) goal: Goal,
}

impl Figure {
    pub(crate) fn new(
        row: char,
        what: impl Into<String>,
        unit: &'static str,
        ours: Series,
    ) -> Self {
        let (what, peers) = (what.into(), Vec::new());
        Self { row, what, unit, ours, floor: None, peers, goal: Goal::Shown }
    }

    pub(crate) fn floor(self, floor: Series) -> Self {
        Self { floor: Some(floor), ..self }
    }

    pub(crate) fn goal(self, goal: Goal) -> Self {
        Self { goal, ..self }
    }

    pub(crate) fn peer(mut self, name: &'static str, took: Option<Series>) -> Self {
        self.peers.extend(took.map(|took| (name, took)));
        self
    }

    /// Ours in terms of the floor.
    fn ratio(&self) -> Option<f64> {
        self.floor.as_ref().map(|floor| self.ours.median() / floor.median())
    }

    /// How far the rounds lie apart: by their ratios where there is a floor.
    fn ends(&self) -> (f64, f64) {
        // Round by round: only within a round did both run at the same speed of the machine.
        let ratio = |floor: &Series| self.ours.with(floor, |ours, floor| ours / floor).ends();
        self.floor.as_ref().map_or_else(|| self.ours.ends(), ratio)
    }

    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::Times(most) => self.ratio().map(|ratio| ratio <= most),
            Goal::AtMost(most) => Some(self.ours.median() <= most),
            Goal::Shown => None,
        }
    }

    fn cells(&self) -> [String; 8] {
        let show = |series: &Series| format!("{} {}", digits(series.median()), self.unit);
        let (least, most) = self.ends();
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
            self.peers.iter().map(|(name, took)| format!("{name} {}", show(took))).collect();
        [
            format!("{}. {}", self.row, self.what),
            show(&self.ours),
            self.floor.as_ref().map(show).unwrap_or_default(),
            self.ratio().map(|ratio| format!("{ratio:.2} ×")).unwrap_or_default(),
            format!(
                "{}–{} {}",
                digits(least),
                digits(most),
                self.floor.as_ref().map_or(self.unit, |_| "×")
            ),
            goal,
            met.to_owned(),
            peers.join(", "),
        ]
    }

    fn json(&self) -> Value {
        let peers: serde_json::Map<String, Value> =
            self.peers.iter().map(|(name, took)| ((*name).to_owned(), json!(took.0))).collect();
        let floor = self.floor.as_ref();
        let goal = match self.goal {
            Goal::Times(most) => json!({ "times": most }),
            Goal::AtMost(most) => json!({ "atMost": most }),
            Goal::Shown => Value::Null,
        };
        json!({
            "row": self.row.to_string(), "what": self.what, "unit": self.unit,
            "ours": self.ours.median(), "floor": floor.map(Series::median), "ratio": self.ratio(),
            "goal": goal, "met": self.is_met(),
            "rounds": { "ours": self.ours.0, "floor": floor.map(|floor| &floor.0), "peers": peers },
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
    let head = ["work", "Raymond", "floor", "ratio", "least–most", "goal", "", "others"];
    let head = head.map(str::to_owned);
    let rows: Vec<[String; 8]> =
        std::iter::once(head).chain(figures.iter().map(Figure::cells)).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default().max(3)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
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
