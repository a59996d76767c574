//! F: what finding the tag of a message takes.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;
use raymond_core::protocol::reading::TagReading;
use raymond_core::protocol::source::Source;
use raymond_core::protocol::tags::Tag;

use crate::series::Series;
use crate::stage::Stage;
use crate::table::{Figure, Goal};

const BYTES: usize = 10_000_000;

/// Ten million bytes of the same, and a tag.
fn message(of: &str) -> String {
    ending(of.repeat(BYTES / of.len()))
}

fn ending(text: String) -> String {
    text + "\n\n<goto>NEXT</goto>\n"
}

const PROSE: &str = "The build passes now, and so do the tests; the rest of the plan is now done. ";
const HTML: &str =
    "<div class=\"note\"><p>The build <b>passes</b> now.</p><ul><li>one</li></ul></div>\n";
const CODE: &str =
    "\n```rust\nif a < b && c > d { v.push(Vec::<u8>::new()); }\n```\nas `x < y` says.\n";

/// How long a message takes, in milliseconds; and the least that could find anything in it.
fn took(stage: &Stage, text: &str) -> Result<(Series, Series)> {
    let goto = Tag::Goto { target: "NEXT".to_owned(), input: None };
    let mut ours = Vec::new();
    let mut floor = Vec::new();
    for _ in 0..stage.rounds {
        let begun = Instant::now();
        let reading = TagReading::of(black_box(text), Source::Message, &mut |bytes| {
            Err(anyhow::anyhow!("a value of {} bytes", bytes.len()))
        })?;
        ours.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(reading.tags == [goto.clone()], "it found {:?}", reading.tags);
        let begun = Instant::now();
        // Counts all and does not stop at the first: the reader also has to look at the whole
        // message.
        let found = memmem::find_iter(black_box(text).as_bytes(), "<goto>").count();
        floor.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(found > 0, "it found nothing");
    }
    Ok((Series(ours), Series(floor)))
}

/// Texts that would show quadratic time, and the slowest inputs that we know.
fn hostile() -> Vec<(&'static str, String)> {
    let mut texts: Vec<(&str, String)> = [
        "<",
        "<goto>",
        "<goto a=\"",
        "`",
        "```\n",
        "~~~\n```\n",
        "<!--",
        "&lt;",
        "<result>",
        "``` `",
        "</result>",
        "<result></result>",
        "<goto a='b' c='d'>X</goto>",
    ]
    .map(|of| (of, message(of)))
    .into();
    let growing = |mark: &str, between: &str| -> String {
        let row = |n: usize| mark.repeat(n) + between;
        ending((1..4_500).map(row).collect())
    };
    texts.push(("rows of backticks, each longer", growing("`", " ")));
    texts.push(("fences, each longer", growing("~", "\n")));
    texts.push(("spaces before fences, ever more", growing(" ", "```\n")));
    texts.push(("one opening without an end", format!("<goto a=\"{}", "x".repeat(BYTES))));
    texts
}

/// How long each of the hostile texts takes, in milliseconds.
fn all(stage: &Stage, source: Source) -> Result<Vec<(Series, &'static str)>> {
    let mut all = Vec::new();
    for (name, text) in hostile() {
        let mut times = Vec::new();
        for _ in 0..stage.rounds {
            let begun = Instant::now();
            let reading = TagReading::of(black_box(&text), source, &mut |bytes| {
                Ok::<_, anyhow::Error>(raymond_core::value::Hash::of(bytes))
            })?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            // The tag at the end, or what keeps it from being one.
            ensure!(
                !reading.tags.is_empty() || !reading.malformed.is_empty(),
                "nothing in {name:?}"
            );
        }
        all.push((Series(times), name));
    }
    Ok(all)
}

/// Friendly texts, and hostile ones.
pub(crate) fn tags(stage: &Stage) -> Result<Vec<Figure>> {
    let friendly = [("prose", PROSE, 1.0), ("HTML", HTML, 8.0), ("code", CODE, 8.0)];
    let mut figures = Vec::new();
    for (name, of, most) in friendly {
        let (ours, floor) = took(stage, &message(of))?;
        let what = format!("the tag in 10 MB of {name}, wall");
        figures.push(Figure::new('F', what, "ms", ours).floor(floor).goal(Goal::AtMost(most)));
    }
    for (whose, source) in [("a message", Source::Message), ("a script", Source::Script)] {
        let mut all = all(stage, source)?;
        all.sort_by(|(one, _), (other, _)| one.median().total_cmp(&other.median()));
        let of = all.len();
        let (time, name) = all.pop().context("there are hostile texts")?;
        let what = format!("10 MB of the worst of {of} hostile texts of {whose} ({name:?}), wall");
        figures.push(Figure::new('F', what, "ms", time).goal(Goal::AtMost(100.0)));
    }
    Ok(figures)
}
