use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn timeout(clock: Clock, after: Span) -> Due {
    Due::TimedOut(clock, after)
}

struct Fixture {
    start: Instant,
    timer: TurnTimer,
}

impl Fixture {
    fn new(wall: Option<Span>, idle: Option<Span>) -> Self {
        let start = Instant::now();
        Self { start, timer: TurnTimer::new(ClientTimeouts::default(), wall, idle, start) }
    }

    fn outputs(mut self, after: Duration) -> Self {
        self.timer.note_output(self.start + after);
        self
    }

    fn reports(mut self) -> Self {
        self.timer.note_silence_report();
        self
    }

    fn wakes(mut self, gap: Duration) -> Self {
        self.timer.add_gap(gap);
        self
    }

    fn check(&self, stage: Stage, after: Duration, due: Due) {
        assert_eq!(self.timer.next(stage), (self.start + after, due));
    }
}

// proves: P11
#[test]
fn each_clock_runs_out_in_its_time() {
    use Stage::{Background, Done, Working};
    let idle = |minutes| timeout(Clock::Idle, Span::minutes(minutes));
    let silent = Due::Silent(Span::minutes(10));
    let new = || Fixture::new(None, None);
    new().check(Working, 2 * MINUTE, timeout(Clock::FirstOutput, Span::minutes(2)));
    new().outputs(MINUTE).check(Working, 11 * MINUTE, silent);
    new().outputs(MINUTE).reports().check(Working, 31 * MINUTE, idle(30));
    // A new silence is reported again.
    new().outputs(MINUTE).reports().outputs(5 * MINUTE).check(Working, 15 * MINUTE, silent);
    // Any line restarts the grace; a background task suspends it.
    let done = new().outputs(MINUTE);
    done.check(Done, MINUTE + Duration::from_secs(10), Due::Settled);
    done.check(Background, 11 * MINUTE, silent);
    done.outputs(2 * MINUTE).check(Done, 2 * MINUTE + Duration::from_secs(10), Due::Settled);
}

#[test]
fn a_turn_may_have_clocks_of_its_own() {
    use Stage::{Done, Working};
    let wall = Fixture::new(Some(Span::minutes(5)), None).outputs(MINUTE);
    wall.check(Working, 5 * MINUTE, timeout(Clock::Wall, Span::minutes(5)));
    let idle = Fixture::new(None, Some(Span::seconds(30)));
    idle.check(Working, MINUTE / 2, timeout(Clock::Idle, Span::seconds(30)));
    let idle = idle.outputs(MINUTE / 3);
    idle.check(Working, MINUTE / 3 + MINUTE / 2, timeout(Clock::Idle, Span::seconds(30)));
    idle.check(Done, MINUTE / 3 + Duration::from_secs(10), Due::Settled);
    // A long idle timeout does not extend the wait for the first output.
    let patient = Fixture::new(None, Some(Span::minutes(120)));
    patient.check(Working, 2 * MINUTE, timeout(Clock::FirstOutput, Span::minutes(2)));
    let spoken = patient.outputs(MINUTE).reports();
    spoken.check(Working, 121 * MINUTE, timeout(Clock::Idle, Span::minutes(120)));
    let endless = Fixture::new(Some(Span(u64::MAX)), Some(Span(u64::MAX))).outputs(MINUTE);
    endless.check(Working, 11 * MINUTE, Due::Silent(Span::minutes(10)));
}

#[test]
fn no_clock_runs_while_this_process_does_not() {
    use Stage::{Done, Working};
    let gap = Duration::from_hours(8);
    let new = || Fixture::new(Some(Span::minutes(5)), None).wakes(gap);
    new().check(Working, gap + 2 * MINUTE, timeout(Clock::FirstOutput, Span::minutes(2)));
    let spoken = Fixture::new(Some(Span::minutes(5)), None).outputs(MINUTE).wakes(gap);
    spoken.check(Working, gap + 5 * MINUTE, timeout(Clock::Wall, Span::minutes(5)));
    spoken.check(Done, gap + MINUTE + Duration::from_secs(10), Due::Settled);
}
