//! The picture of a run in the README, drawn from the screen of a real terminal.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::RAYMOND;
use crate::harness::Project;
use crate::screen::Terminal;

/// The command of the picture, as a user types it.
const COMMAND: &str = "raymond run workflow --replies replies.yaml --input 'We sailed at dawn.'";
const LINE_HEIGHT: usize = 19;
const MARGIN: usize = 14;
/// A character of a monospaced font of 14 pixels is 8.4 pixels wide.
const COLUMN_WIDTH_TENTHS: usize = 84;

/// A text of one style.
struct Span {
    column: u16,
    text: String,
    class: String,
}

#[test]
fn picture_of_the_readme_is_a_real_run() {
    let project = Project::of(&[]);
    assert_eq!(project.raymond("init --from title").code(), 0);
    let directory = project.path("title");
    let words = COMMAND.replacen("raymond", RAYMOND, 1) + " --run-id title";
    let terminal = Terminal::start(&directory, &["bash", "-c", &words], &[]);
    terminal.until_shown("A night at sea (8)");
    let picture = terminal.draw(drawn);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/run.svg");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &picture).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == picture, "docs/pictures/run.svg is stale: run this test with UPDATE=1");
}

/// Draws a screen below the command that filled it.
fn drawn(screen: &vt100::Screen) -> String {
    let (rows, columns) = (screen.size().0.get(), screen.size().1.get());
    let mut lines: Vec<Vec<Span>> = (0..rows).map(|row| spans(screen, row, columns)).collect();
    while lines.pop_if(|line| line.is_empty()).is_some() {}
    lines.insert(0, vec![Span { column: 0, text: format!("$ {COMMAND}"), class: "b".to_owned() }]);
    let (width, height) = (
        2 * MARGIN + usize::from(columns) * COLUMN_WIDTH_TENTHS / 10,
        2 * MARGIN + lines.len() * LINE_HEIGHT,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         role=\"img\" aria-label=\"A run of Raymond in a terminal\">\n<style>text {{ font: 14px \
         ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d6deeb; white-space: \
         pre }} .b {{ font-weight: bold; fill: #ffffff }} .d {{ fill: #8292a8 }} .c1 {{ fill: \
         #ef7b7b }} .c2 {{ fill: #8fd18f }} .c3 {{ fill: #e6c67a }} .c6 {{ fill: #7fc8d8 }}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16202e\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + number * LINE_HEIGHT + LINE_HEIGHT * 3 / 4;
        for Span { column, text, class } in line {
            let x = MARGIN + usize::from(*column) * COLUMN_WIDTH_TENTHS / 10;
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            writeln!(svg, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>").unwrap();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Splits a row into texts of one style, with fixed times.
fn spans(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let class = class(cell);
        match spans.last_mut() {
            Some(last) if last.class == class => last.text.push_str(text),
            _ => spans.push(Span { column, text: text.to_owned(), class }),
        }
    }
    for span in &mut spans {
        span.text = with_fixed_times(span.text.trim_end());
    }
    spans.retain(|span| !span.text.is_empty());
    spans
}

fn class(cell: &vt100::Cell) -> String {
    match cell.fgcolor() {
        vt100::Color::Idx(color) => format!("c{color}"),
        _ if cell.bold() => "b".to_owned(),
        _ if cell.dim() => "d".to_owned(),
        _ => String::new(),
    }
}

/// Replaces the times of this run, so that the picture changes only with the program.
fn with_fixed_times(text: &str) -> String {
    let fixed = |word: &str| {
        let zeros = word.replace(|c: char| c.is_ascii_digit(), "0");
        match zeros.as_str() {
            "0000-00-00" => "2026-11-19".to_owned(),
            "00:00:00" => "12:03:04".to_owned(),
            "0.0s:" => "0.2s:".to_owned(),
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(fixed).collect::<Vec<_>>().join(" ")
}
