//! One clock for each fence.
//!
//! When a page is played, any time of day matches every other. So an update would leave old times
//! beside new ones, and a run of a second would seem to take half an hour. Only times at the start
//! of a line are checked, because those are the log.

/// How far apart the times of one fence may be, in seconds.
const APART: u32 = 60;

/// The page, with every time that is too far from the first one of its fence set to that one.
pub(crate) fn set(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut first: Option<&str> = None;
    let mut set = String::new();
    for line in text.lines() {
        match fence {
            Some(ticks) if line.trim_end() == ticks => fence = None,
            Some(_) => {}
            None => (fence, first) = (opened(line), None),
        }
        let time = time(line).filter(|_| fence.is_some());
        first = first.or(time);
        match (first, time) {
            (Some(first), Some(time)) if seconds(first).abs_diff(seconds(time)) > APART => {
                set.push_str(&line.replacen(time, first, 1));
            }
            _ => set.push_str(line),
        }
        set.push('\n');
    }
    set
}

/// The lines whose time is too far from the first one of their fence.
pub(crate) fn wrong(text: &str) -> Vec<String> {
    let set = set(text);
    let lines = (1..).zip(text.lines().zip(set.lines()));
    let wrong = lines.filter(|(_, (found, set))| found != set);
    wrong.map(|(number, (found, _))| format!("{number}: another time of day: {found}")).collect()
}

/// The ticks of a fence that shows commands.
fn opened(line: &str) -> Option<&str> {
    let head = line.trim_start_matches('`');
    let ticks = &line[..line.len() - head.len()];
    (ticks.len() >= 3 && head.starts_with("console")).then_some(ticks)
}

/// The time of day that begins a line.
fn time(line: &str) -> Option<&str> {
    let time = line.get(..8)?;
    let is_time = time.bytes().enumerate().all(|(at, byte)| match at {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    is_time.then_some(time)
}

fn seconds(time: &str) -> u32 {
    time.split(':').fold(0, |sum, part| sum * 60 + part.parse::<u32>().unwrap_or(0))
}

#[test]
fn times_of_a_fence_use_one_clock() {
    let check = |text: &str, expected: &str| assert_eq!(set(text), expected, "{text}");
    let fence = |lines: &str| format!("```console\n$ x\n{lines}\n```\n");
    let near = fence("12:03:04 a\n12:03:06 b");
    check(&near, &near);
    check(&fence("12:03:04 a\n12:45:00 b"), &fence("12:03:04 a\n12:03:04 b"));
    let apart = fence("12:03:04 a") + &fence("12:45:00 b");
    check(&apart, &apart);
    let elsewhere = fence("12:03:04 a\nuntil 12:45:00") + "13:00:00\n";
    check(&elsewhere, &elsewhere);
    assert_eq!(wrong(&fence("12:03:04 a\n12:45:00 b")), ["4: another time of day: 12:45:00 b"]);
}
