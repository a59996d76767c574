//! Shares, charges, thresholds, and a run that is over budget.

use insta::assert_snapshot;

use super::play::{self, Play, prompts, usd, workflow};
use crate::budget::{Cost, Micros};
use crate::decide::effects;
use crate::run::effect::Effect;
use crate::run::outcome::Finished;
use crate::run::share::{Share, charge, share};
use crate::run::stop::Interruption;
use crate::run::{Run, Settings};

/// The money of a run, from which the share of the next paid turn follows.
struct Money {
    budget: Option<&'static str>,
    spent: &'static str,
    reserved: &'static str,
    slots: u32,
    flying: u32,
    paid: u32,
    live: u32,
    visit: Option<&'static str>,
}

const PLENTY: Money = Money {
    budget: Some("10"),
    spent: "0",
    reserved: "0",
    slots: 4,
    flying: 0,
    paid: 0,
    live: 1,
    visit: None,
};

fn check(money: &Money, expected: Share) {
    let settings = Settings {
        budget: money.budget.map(usd),
        max_parallel: money.slots,
        ..Settings::default()
    };
    let mut run = Run { settings, spent: usd(money.spent), live: money.live, ..Run::default() };
    run.scheduler.reserved = usd(money.reserved);
    run.scheduler.paid_in_flight = money.paid;
    run.scheduler.in_flight = (0..money.flying).map(|n| format!("w{n}").as_str().into()).collect();
    assert_eq!(share(&run, money.visit.map(usd)), expected);
}

#[test]
fn share_is_a_fair_part_of_the_rest() {
    let of = |amount| Share::Of(usd(amount));
    // One agent may spend it all.
    check(&PLENTY, of("10"));
    // Divided by the agents without a model turn, or by the slots without one, whichever are fewer.
    check(&Money { live: 3, ..PLENTY }, of("3.333333"));
    check(&Money { live: 9, ..PLENTY }, of("2.50"));
    check(&Money { live: 9, flying: 3, paid: 3, reserved: "7.50", ..PLENTY }, of("2.50"));
    check(&Money { live: 4, flying: 2, paid: 2, reserved: "5", ..PLENTY }, of("2.50"));
    // Scripts in flight will leave their slots, and their agents may want a model turn later.
    check(&Money { live: 4, flying: 2, paid: 0, ..PLENTY }, of("2.50"));
    check(&Money { live: 5, flying: 3, paid: 2, reserved: "5", ..PLENTY }, of("2.50"));
    check(
        &Money { spent: "9", reserved: "0.50", live: 2, flying: 1, paid: 1, ..PLENTY },
        of("0.50"),
    );
    // At least five cents, at most what is left.
    check(&Money { spent: "9.90", live: 4, ..PLENTY }, of("0.05"));
    check(&Money { spent: "9.97", live: 4, ..PLENTY }, of("0.03"));
    // With less than that, the turn waits while turns in flight may return some.
    check(
        &Money { spent: "9", reserved: "0.96", live: 4, flying: 1, paid: 1, ..PLENTY },
        Share::Wait,
    );
    check(&Money { spent: "9", reserved: "1", live: 4, flying: 1, paid: 1, ..PLENTY }, Share::Wait);
    // A script in flight gives nothing back.
    check(&Money { spent: "9.96", live: 4, flying: 1, ..PLENTY }, of("0.04"));
    check(&Money { spent: "10", ..PLENTY }, Share::Nothing);
    check(&Money { spent: "11.50", ..PLENTY }, Share::Nothing);
    // The visit's own budget bounds it from above, even below five cents.
    check(&Money { visit: Some("1"), ..PLENTY }, of("1"));
    check(&Money { visit: Some("0.01"), ..PLENTY }, of("0.01"));
    check(&Money { budget: None, ..PLENTY }, Share::Unlimited);
    check(&Money { budget: None, visit: Some("2"), ..PLENTY }, of("2"));
    check(&Money { budget: Some("0"), ..PLENTY }, Share::Nothing);
}

// proves: A2
#[test]
fn turn_of_unknown_cost_is_never_free() {
    let check = |strict: bool, most_expensive: &str, cost: Cost, expected: &str| {
        let settings = Settings { strict_budget: strict, ..Settings::default() };
        let run = Run { settings, most_expensive: usd(most_expensive), ..Run::default() };
        let charge = charge(&run, cost, Some(usd("2")));
        assert_eq!(format!("{:?} {}", charge.basis, charge.amount), expected);
    };
    let (reported, estimated) = (Cost::Reported(usd("0.30")), Cost::Estimated(usd("0.20")));
    check(false, "0.40", Cost::Free, "Free $0.00");
    check(false, "0.40", reported, "Reported $0.30");
    check(false, "0.40", estimated, "Estimated $0.20");
    check(false, "0.40", Cost::Unknown, "Estimated $0.40");
    check(false, "0", Cost::Unknown, "Unpriced $0.00");
    check(true, "0.40", reported, "Reported $0.30");
    check(true, "0.40", estimated, "Estimated $2.00");
    check(true, "0", Cost::Unknown, "Estimated $2.00");
    // A strict budget never charges less than what is known: a client may exceed its share.
    check(true, "0.40", Cost::Estimated(usd("205")), "Estimated $205.00");
    check(true, "0.40", Cost::AtLeast(usd("205")), "Estimated $205.00");
    check(true, "3", Cost::AtLeast(usd("0.20")), "Estimated $2.00");
    // An unknown part never counts as nothing.
    check(false, "0.40", Cost::AtLeast(usd("0.20")), "Estimated $0.40");
    check(false, "0.40", Cost::AtLeast(usd("0.40")), "Unpriced $0.40");
    check(false, "0.40", Cost::AtLeast(usd("0.50")), "Unpriced $0.50");
    check(false, "0", Cost::AtLeast(usd("0")), "Unpriced $0.00");
}

#[test]
fn most_expensive_turn_may_be_estimated() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.costs(Cost::Unknown).says("main", "<goto>A</goto>");
    assert_eq!((play.run.spent, play.run.unpriced), (Micros::ZERO, 1));
    // The known part of an unpriced turn counts for the next ones.
    let mut partly = Play::new(prompts(&["A.md"])).started();
    partly.costs(Cost::AtLeast(usd("0.30"))).says("main", "<goto>A</goto>");
    partly.costs(Cost::Unknown).says("main", "<goto>A</goto>");
    assert_eq!((partly.run.spent, partly.run.unpriced), (usd("0.60"), 1));
    play.costs(Cost::Estimated(usd("0.20"))).says("main", "<goto>A</goto>");
    play.costs(Cost::Reported(usd("0.10"))).says("main", "<goto>A</goto>");
    play.costs(Cost::Unknown).says("main", "<goto>A</goto>");
    assert_eq!((play.run.spent, play.run.unpriced), (usd("0.50"), 1));
}

#[test]
fn failed_and_interrupted_turns_cost_too() {
    let mut play = Play::new(prompts(&["A.md"])).started();
    play.stumbles("main");
    play.after("1h".parse().unwrap());
    play.crashes(true);
    play.says("main", "no tag");
    assert_eq!((play.run.spent, play.agent("main").visit.spent), (usd("0.30"), usd("0.30")));
}

#[test]
fn thresholds_are_warned_of_once() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
    let mut warned = |cost: &str| {
        let events = play.costs(Cost::Reported(usd(cost))).says("main", "<goto>A</goto>");
        let warnings = events.lines().filter(|line| line.starts_with("warn"));
        warnings.map(str::to_owned).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(warned("0.49"), "");
    assert_eq!(warned("0.01"), "warn run: 50 % of the cap is spent");
    assert_eq!(warned("0.29"), "");
    assert_eq!(warned("0.17"), "warn run: 95 % of the cap is spent");
    assert_eq!(warned("0.01"), "");
    // No second warning after a resume with the same cap; a new cap has its own thresholds.
    play.halt();
    play.resume();
    assert!(!play.costs(Cost::Reported(usd("0"))).says("main", "<goto>A</goto>").contains("warn"));
    play.halt();
    play.settings.budget = Some(usd("2"));
    play.resume();
    assert!(!play.says("main", "<goto>A</goto>").contains("warn"));
    play.costs(Cost::Reported(usd("0.10")));
    assert!(play.says("main", "<goto>A</goto>").contains("warn run: 50 % of the cap is spent"));
}

// proves: P5
#[test]
fn concurrent_turns_share_the_rest() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork>"#);
    assert_snapshot!(play.scene(), @"
    Open: $0.10 spent, $9.90 reserved
    main at A.md: runs with $2.4750
    main_w1 at W.md: runs with $2.4750
    main_w2 at W.md: runs with $2.4750
    main_w3 at W.md: runs with $2.4750
    ");
    play.says("main_w1", "<goto>W</goto>");
    assert_snapshot!(play.scene(), @"
    Open: $0.20 spent, $9.80 reserved
    main at A.md: runs with $2.4750
    main_w1 at W.md: runs with $2.3750
    main_w2 at W.md: runs with $2.4750
    main_w3 at W.md: runs with $2.4750
    ");
}

#[test]
fn turn_with_under_five_cents_waits() {
    let play = Play::new(prompts(&["A.md", "W.md"]));
    let mut play = play.with(|s| s.budget = Some(usd("0.17"))).started();
    play.costs(Cost::Reported(usd("0.01")));
    play.says("main", r#"<fork next="A">W</fork><fork next="A">W</fork><fork next="A">W</fork>"#);
    assert_snapshot!(play.scene(), @"
    Open: $0.01 spent, $0.15 reserved
    main at A.md: runs with $0.05
    main_w1 at W.md: runs with $0.05
    main_w2 at W.md: runs with $0.05
    main_w3 at W.md: queued
    ");
    play.says("main", "<result>done</result>");
    assert_snapshot!(play.scene(), @"
    Open: $0.02 spent, $0.15 reserved
    main_w1 at W.md: runs with $0.05
    main_w2 at W.md: runs with $0.05
    main_w3 at W.md: runs with $0.05
    ");
}

#[test]
fn turns_in_flight_finish_without_money_left() {
    let play = Play::new(prompts(&["A.md", "B.md", "W.md"]));
    let mut play = play.with(|s| s.budget = Some(usd("1"))).started();
    play.costs(Cost::Reported(usd("0.50")));
    play.says("main", r#"<call return="B">A</call>"#);
    play.costs(Cost::Reported(usd("0"))).says("main", r#"<fork next="A">W</fork>"#);
    play.costs(Cost::Reported(usd("0.50")));
    // A return into the caller is kept; it spends nothing.
    assert_snapshot!(play.says("main", "<result>x</result>"), @r#"
    settle main.3.1 #1 $0.50: at main.2.1
    main result: at main.1.1, pop, in /home, forks 1
    main enters B.md (1) as visit 4 with "x"
    queue main.4.1 at 4 for claude: resume main.1.1
    warn run: 95 % of the cap is spent
    "#);
    assert_snapshot!(play.says("main_w1", "<goto>W</goto>"), @"
    settle main_w1.1.1 #1 $0.50: at main_w1.1.1
    main_w1 goto: at main_w1.1.1
    main_w1 enters W.md (2) as visit 2
    queue main_w1.2.1 at 5 for claude: resume main_w1.1.1
    ended: OverBudget
    ");
    assert_snapshot!(play.scene(), @"
    Ended(OverBudget): $1.50 spent
    main at B.md: queued
    main_w1 at W.md: queued
    ");
    // More money takes what was kept, and runs no turn again.
    play.settings.budget = Some(usd("2"));
    play.costs(Cost::Reported(usd("0.10")));
    assert_snapshot!(play.resume(), @"
    resumed
    start main.4.1 #1 with $0.25: resume main.1.1
    start main_w1.2.1 #1 with $0.25: resume main_w1.1.1
    ");
}

#[test]
fn more_money_that_is_already_spent_changes_nothing() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
    play.costs(Cost::Reported(usd("3"))).says("main", "<goto>A</goto>");
    play.settings.budget = Some(usd("2"));
    assert_snapshot!(play.resume(), @"
    resumed
    ended: OverBudget
    ");
    play.settings.budget = None;
    assert_snapshot!(play.resume(), @"
    resumed
    start main.2.1 #1: resume main.1.1
    ");
}

#[test]
fn final_result_counts_beyond_the_budget() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
    let events = play.costs(Cost::Reported(usd("3"))).says("main", "<result>x</result>");
    assert!(events.ends_with("ended: Completed"), "{events}");
}

#[test]
fn scripts_continue_without_money() {
    let files = [("A.md", "text"), ("RUN.sh", "true"), ("END.sh", "true")];
    let mut play = Play::new(workflow(&files)).with(|s| s.budget = Some(usd("1"))).started();
    play.costs(Cost::Reported(usd("1"))).says("main", "<goto>RUN</goto>");
    assert_eq!(play.scene(), "Open: $1.00 spent\nmain at RUN.sh: runs");
    play.says("main", r#"<fork next="A">END</fork>"#);
    assert_eq!(play.scene(), "Open: $1.00 spent\nmain at A.md: queued\nmain_end1 at END.sh: runs");
    play.says("main_end1", "<result>x</result>");
    assert_eq!(play.scene(), "Ended(OverBudget): $1.00 spent\nmain at A.md: queued");
    // Without money to spend there is no threshold either.
    let mut play = Play::new(workflow(&[("RUN.sh", "true")]));
    play.settings.budget = Some(Micros::ZERO);
    play.start();
    let events = play.says("main", "<result>x</result>");
    assert!(events.ends_with("ended: Completed") && !events.contains("warn"), "{events}");
}

#[test]
fn without_money_the_run_ends_instead_of_waiting() {
    use crate::failure::TurnFailure;
    let play = || {
        let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
        play.costs(Cost::Reported(usd("1")));
        play
    };
    assert!(play().stumbles("main").ends_with("ended: OverBudget"));
    let quota = TurnFailure::Quota { until: None, why: "limit".into() };
    assert!(play().fails("main", quota).ends_with("ended: OverBudget"));
    assert!(play().is_capped("main").ends_with("ended: OverBudget"));
}

#[test]
fn capped_turn_continues_with_a_new_share() {
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.costs(Cost::Reported(usd("5")));
    assert_snapshot!(play.is_capped("main"), @"
    cap main.2.1 #1 $5.00
    queue main.2.1 again at 3: NewShare
    warn run: 50 % of the cap is spent
    ");
    assert_snapshot!(play.says("main_w1", "<result>x</result>"), @r#"
    settle main_w1.1.1 #1 $5.00: at main_w1.1.1
    main_w1 ends: "x"
    warn run: 95 % of the cap is spent
    ended: OverBudget
    "#);
    assert_eq!(play.agent("main").visit.retries, 0);
}

#[test]
fn strict_budget_charges_the_share_that_was_reserved() {
    let play = Play::new(prompts(&["A.md"]));
    let mut play = play.with(|s| s.strict_budget = true).started();
    play.costs(Cost::Unknown).stumbles("main");
    assert_eq!(play.scene(), "Ended(OverBudget): $10.00 spent\nmain at A.md: retries");
}

// proves: A8
#[test]
fn capped_turn_is_charged_its_whole_share() {
    let lies = [Cost::Reported(usd("0.000001")), Cost::Estimated(usd("0.99"))];
    let unknown = [Cost::Reported(usd("0")), Cost::Unknown, Cost::AtLeast(usd("0.99"))];
    for cost in lies.into_iter().chain(unknown) {
        let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
        play.costs(cost);
        let capped = play.is_capped("main");
        assert!(capped.starts_with("cap main.1.1 #1 about $1.00"), "{capped}");
        assert!(capped.ends_with("ended: OverBudget"), "{capped}");
    }
    // Without a share only the retries limit it.
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = None).started();
    play.costs(Cost::Reported(usd("0"))).is_capped("main");
    assert_eq!(play.agent("main").visit.retries, 1);
}

// proves: A9
#[test]
fn an_answer_at_the_share_has_spent_it() {
    let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = Some(usd("1"))).started();
    play.costs(Cost::Reported(usd("0")));
    let answer = |finished: &mut Finished| finished.capped = true;
    let answered = play.says_so("main", "<reset>A</reset>", answer);
    assert!(answered.starts_with("settle main.1.1 #1 about $1.00"), "{answered}");
    assert!(answered.ends_with("ended: OverBudget"), "{answered}");
}

/// An agent beside three scripts, so that each of its turns gets a quarter of what is left.
fn beside_scripts() -> Play {
    let mut play = Play::new(workflow(&[("A.md", "text"), ("W.sh", "true")])).started();
    play.says("main", &r#"<fork next="A">W</fork>"#.repeat(3));
    play
}

// proves: A10
#[test]
fn turn_capped_without_output_is_bounded() {
    let mut play = beside_scripts();
    for stalls in 1..=4 {
        let events = play.is_capped_after("main", false);
        assert!(events.contains(&format!("stalled {stalls}")), "{events}");
    }
    let events = play.is_capped_after("main", false);
    assert!(events.contains("main fails: the turn used up its budget share 5 times"), "{events}");
}

#[test]
fn output_and_other_endings_reset_the_count() {
    let mut play = beside_scripts();
    let stalls = |play: &Play| play.run.scheduler.turns[&"main".into()].stalls;
    play.is_capped_after("main", false);
    play.is_capped_after("main", false);
    assert_eq!(stalls(&play), 2);
    play.is_capped_after("main", true);
    assert_eq!(stalls(&play), 0);
    // A crash and a used-up share are the same lack of progress.
    play.is_capped_after("main", false);
    play.crashes(false);
    assert_eq!(stalls(&play), 2);
}

mod lower_cap {
    use super::*;

    /// Two workers and their parent, each with a share of $3.30, and $0.10 spent.
    fn three() -> Play {
        let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
        play.says("main", &r#"<fork next="A">W</fork>"#.repeat(2));
        play
    }

    // proves: A1
    #[test]
    fn adopted_turns_beyond_a_lower_cap_are_recalled() {
        let mut play = three();
        assert_snapshot!(play.scene(), @"
        Open: $0.10 spent, $9.90 reserved
        main at A.md: runs with $3.30
        main_w1 at W.md: runs with $3.30
        main_w2 at W.md: runs with $3.30
        ");
        // The owner died, all three clients still run, and the cap is lower now: one fits.
        play.settings.budget = Some(usd("4"));
        assert_snapshot!(play.resume(), @"
        resumed
        recall main_w1.1.1 #1
        recall main_w2.1.1 #1
        ");
        let cut = play.interruptions(Interruption::Stop, true).split_off(1);
        assert_snapshot!(play.feed(cut), @"
        interrupted main_w1.1.1 #1 $0.10 by Stop, 0 crashes
        queue main_w1.1.1 again at 4: NewShare
        interrupted main_w2.1.1 #1 $0.10 by Stop, 0 crashes
        queue main_w2.1.1 again at 5: NewShare
        start main_w1.1.1 #2 with $0.20: continue main_w1.1.1 or fresh main_w1.1.1
        start main_w2.1.1 #2 with $0.20: continue main_w2.1.1 or fresh main_w2.1.1
        ");
    }

    #[test]
    fn recalled_turn_ends_after_its_record() {
        let mut play = three();
        play.settings.budget = Some(usd("4"));
        play.resume();
        let effects = effects(&play.run, &play.definition, &play.last);
        let cancel = |turn: &str| Effect::Cancel { turn: play::turn(turn), attempt: 1 };
        assert_eq!(effects, [cancel("main_w1.1.1"), cancel("main_w2.1.1")]);
    }

    #[test]
    fn a_recalled_turn_that_finished_first_counts() {
        let mut play = three();
        play.settings.budget = Some(usd("4"));
        play.resume();
        let events = play.says("main_w1", "<result>x</result>");
        assert!(events.contains("main_w1 ends"), "{events}");
    }

    #[test]
    fn new_cap_recalls_clients_without_a_share() {
        let mut play = Play::new(prompts(&["A.md"])).with(|s| s.budget = None).started();
        play.settings.budget = Some(usd("4"));
        assert_eq!(play.resume(), "resumed\nrecall main.1.1 #1");
    }

    #[test]
    fn shares_that_fit_are_left_alone() {
        for budget in [Some(usd("10")), Some(usd("25")), None] {
            let mut play = three();
            play.settings.budget = budget;
            assert_eq!(play.resume(), "resumed");
        }
        let script = workflow(&[("RUN.sh", "true")]);
        let mut play = Play::new(script).started();
        play.settings.budget = Some(Micros::ZERO);
        assert_eq!(play.resume(), "resumed");
    }

    #[test]
    fn spent_lower_cap_ends_the_run() {
        let mut play = Play::new(prompts(&["A.md"])).started();
        play.settings.budget = Some(usd("0.10"));
        play.resume();
        let cut = play.interruptions(Interruption::Stop, true);
        assert!(play.feed(cut).ends_with("ended: OverBudget"));
    }
}

#[test]
fn environment_failure_waits_for_a_resume() {
    use crate::failure::TurnFailure;
    let full = || TurnFailure::Environment { why: "no room for the transcript".into() };
    let mut play = Play::new(prompts(&["A.md", "W.md"])).started();
    play.says("main", r#"<fork next="A">W</fork>"#);
    play.costs(Cost::Unknown);
    assert_snapshot!(play.fails("main", full()), @"
    fail main.2.1 #1 about $0.10: no room for the transcript
    hold claude: no room for the transcript
    queue main.2.1 again at 3: Retried
    ");
    // The other turn finishes; nothing that it leads to starts.
    assert_snapshot!(play.says("main_w1", "<goto>W</goto>"), @"
    settle main_w1.1.1 #1 about $0.10: at main_w1.1.1
    main_w1 goto: at main_w1.1.1
    main_w1 enters W.md (2) as visit 2
    queue main_w1.2.1 at 4 for claude: resume main_w1.1.1
    ended: Environment
    ");
    assert_eq!(play.agent("main").visit.retries, 0);
    assert_snapshot!(play.resume(), @"
    resumed
    release claude
    start main.2.1 #2 with $4.85: resume main.1.1
    start main_w1.2.1 #1 with $4.85: resume main_w1.1.1
    ");
}
