//! The changes of `migrate-batch` to its repository.

use serde_json::json;

use crate::stage::ExampleRun;

#[test]
fn only_passing_packages_are_committed() {
    let stage = ExampleRun::of("migrate-batch", "replies.yaml").go();
    let mut commits = stage.commits("main");
    commits.sort();
    assert_eq!(commits, ["migrate packages/billing", "migrate packages/mail", "start"]);
    let report = "2 of 3 migrated
packages/billing: migrated
packages/mail: migrated
packages/search: check failed
";
    assert_eq!(stage.read("try/.work/demo/report"), report);
    assert_eq!(stage.prints("git status --porcelain"), "");
    let changed = stage.prints("git diff --name-only main~2");
    assert_eq!(changed, "packages/billing/run.sh\npackages/mail/run.sh\n");
    let expected = json!({
        "main": "items: 3, report: .work/demo/report",
        "main_migrat1": "migrated",
        "main_migrat2": "migrated",
        "main_migrat3": "check failed",
    });
    assert_eq!(stage.results(), expected);
}

#[test]
fn each_commit_holds_its_own_package_only() {
    let stage = ExampleRun::of("migrate-batch", "replies.yaml").go();
    for package in ["billing", "mail"] {
        let log = format!("git log --format= --name-only --grep packages/{package}");
        assert_eq!(stage.prints(&log), format!("packages/{package}/run.sh\n"));
    }
}

#[test]
fn second_run_takes_the_remaining_packages() {
    let stage = ExampleRun::of("migrate-batch", "replies.yaml").go();
    stage.write("replies.yaml", "MIGRATE: { text: <goto>CHECK</goto>, expect: packages/search }\n");
    let run = "raymond run ../workflow --replies ../replies.yaml --run-id again --quiet";
    assert_eq!(stage.prints(run), "items: 1, report: .work/again/report\n");
    let report = "0 of 1 migrated\npackages/search: check failed\n";
    assert_eq!(stage.read("try/.work/again/report"), report);
    assert_eq!(stage.commits("main").len(), 3);
}

#[test]
fn resume_repeats_failed_worker_and_writes_report() {
    let run = ExampleRun::of("migrate-batch", "replies.yaml");
    let stage = crate::stage::Stage::of("migrate-batch");
    let replies = stage.read("replies.yaml");
    let broken =
        replies.replace("expect: Migrate the package packages/billing", "expect: nonsense");
    stage.write("replies.yaml", &broken);
    stage.start(run).wait().mentions(1, &["main_migrat1 failed at MIGRATE.md"]);
    assert!(!stage.has("try/.work/demo/report"));
    stage.write("replies.yaml", &replies);
    assert_eq!(stage.run("raymond resume demo --quiet").code(), 0);
    assert!(stage.read("try/.work/demo/report").starts_with("2 of 3 migrated\n"));
}
