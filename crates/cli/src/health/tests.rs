use super::*;

fn describe(finding: &Finding) -> String {
    let Finding { check, mark, text, remedy } = finding;
    let remedy = remedy.as_deref().map(|remedy| format!(" → {remedy}")).unwrap_or_default();
    format!("{mark} {check}: {text}{remedy}")
}

#[test]
fn every_mark_has_one_word() {
    assert_eq!(
        [HealthMark::Ok, HealthMark::Warn, HealthMark::Fail].map(HealthMark::as_str),
        ["ok", "warn", "fail"]
    );
}

#[test]
fn needed_client_without_answer_is_a_failure() {
    let check = |found: &ClientProbe, need, expected: &str| {
        assert_eq!(describe(&client("claude", found, need)), expected);
    };
    let path = || "/bin/claude".to_owned();
    let answers = ClientProbe::Answers { path: path(), version: "2.1".into() };
    let silent = ClientProbe::Silent { path: path(), why: "exit status 1".into() };
    check(&answers, ClientNeed::Default, "ok client: claude 2.1 (/bin/claude)");
    check(&answers, ClientNeed::Optional, "ok client: claude 2.1 (/bin/claude)");
    let bad = "FAIL client: claude (/bin/claude) does not answer: exit status 1 → see what \
               `/bin/claude --version` says";
    check(&silent, ClientNeed::Default, bad);
    check(&silent, ClientNeed::Optional, &bad.replace("FAIL", "warn"));
    check(&ClientProbe::Missing, ClientNeed::Default, "FAIL client: claude has gone → look again");
}

#[test]
fn unused_client_may_be_missing() {
    let check = |need, expected: &str| {
        let (text, remedy) = ("cannot find it".to_owned(), "install it".to_owned());
        assert_eq!(describe(&missing("claude", text, remedy, need)), expected);
    };
    check(ClientNeed::Default, "FAIL client: cannot find it → install it");
    check(ClientNeed::Named, "warn client: cannot find it → install it");
    let information = "ok client: claude: not installed (only needed for `backend: claude`)";
    check(ClientNeed::Optional, information);
}

#[test]
fn unknown_backend_is_named_with_its_origin() {
    let names = ["claude", "codex"];
    let offers: BackendCatalog =
        names.into_iter().map(|name| (BackendName::new(name), &[] as &[_])).collect();
    let check = |name: &str, expected: Option<&str>| {
        let finding = backend(&BackendName::new(name), "RAYMOND_BACKEND", &offers);
        assert_eq!(finding.as_ref().map(describe).as_deref(), expected);
    };
    check("codex", None);
    let codx =
        "FAIL config: there is no backend \"codx\" (RAYMOND_BACKEND) → did you mean `codex`?";
    check("codx", Some(codx));
    let other =
        "FAIL config: there is no backend \"x\" (RAYMOND_BACKEND) → there are claude and codex";
    check("x", Some(other));
}

#[test]
fn disk_space_is_compared_with_possible_need() {
    let needed = (5 << 20) + (64 << 10);
    let check = |free, mark| assert_eq!(room(free, needed).mark, mark, "{free}");
    check(u64::MAX, HealthMark::Ok);
    check(1 << 30, HealthMark::Ok);
    check((1 << 30) - 1, HealthMark::Warn);
    check(100 << 20, HealthMark::Warn);
    check((100 << 20) - 1, HealthMark::Fail);
    check(0, HealthMark::Fail);
    let said = |free| room(free, needed).text;
    assert_eq!(said(1 << 30), "1 GiB free");
    assert_eq!(said(300 << 20), "300 MiB free, less than 1 GiB");
    let little = "5 MiB free, less than 100 MiB; a turn needs about 5.1 MiB";
    assert_eq!(said(5 << 20), little);
    assert_eq!(transcripts(1 << 30).mark, HealthMark::Warn);
    assert_eq!(describe(&transcripts(2048)), "ok disk: transcripts take 2 KiB");
}

#[test]
fn directory_must_be_owned_writable_and_private() {
    let check = |writable, foreign, mode, expected: &str| {
        let facts = Folder { name: ".raymond/".into(), is_link: false, writable, foreign, mode };
        assert!(describe(&folder("storage", &facts)).starts_with(expected), "{facts:?}");
        let facts = Folder { is_link: true, ..facts };
        let link = "FAIL storage: .raymond/ is a link";
        assert!(describe(&folder("storage", &facts)).starts_with(link), "{facts:?}");
    };
    check(true, None, Some(0o700), "ok storage: .raymond/ can be written");
    check(true, None, None, "ok storage: .raymond/ can be written");
    check(true, None, Some(0o755), "warn storage: .raymond/ can be read by others (mode 755)");
    check(false, None, Some(0o700), "FAIL storage: .raymond/ cannot be written");
    check(true, Some(7), Some(0o700), "FAIL storage: .raymond/ belongs to user 7");
}

#[test]
fn missing_git_is_a_warning() {
    let check = |found, expected: &str| {
        assert!(describe(&repository(found)).starts_with(expected), "{found:?}");
    };
    let some = |changed, runs_are_committed| Repository::Some { changed, runs_are_committed };
    check(some(0, false), "ok git: clean");
    check(some(2, false), "warn git: 2 files not committed");
    check(some(0, true), "warn git: .raymond/ is not ignored");
    check(Repository::None, "warn git: not a git repository");
    check(Repository::Unknown, "warn git: git does not answer");
}

#[test]
fn leftover_processes_are_listed_up_to_a_limit() {
    let check = |commands: &[&str], expected: &str| {
        let commands: Vec<String> = commands.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(left_running("r", &commands).text, expected);
    };
    check(&["a"], "1 process of r, which has no owner: a");
    check(&["a", "b", "c"], "3 processes of r, which has no owner: a; b; c");
    let many = "4 processes of r, which has no owner: a; b; c; …";
    check(&["a", "b", "c", "d"], many);
}

#[test]
fn remains_of_killed_calls_are_named() {
    let check = |commands: &[&str], files: &[&str], expected: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<_>>();
        let found = left_by_calls(&owned(commands), &owned(files));
        let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts, expected);
    };
    check(&[], &[], &[]);
    check(&["a"], &[], &["1 process of killed `raymond crayfish` calls: a"]);
    let files = "2 files of killed `raymond crayfish` calls: f; g";
    check(&[], &["f", "g"], &[files]);
    check(&["a"], &["f", "g"], &["1 process of killed `raymond crayfish` calls: a", files]);
}

#[test]
fn the_worst_finding_counts() {
    let (ok, warn) = (Finding::ok("a", "x"), Finding::warn("b", "x", None));
    let fail = Finding::fail("c", "x", None);
    assert_eq!(worst(&[]), HealthMark::Ok);
    assert_eq!(worst(&[warn.clone(), ok.clone()]), HealthMark::Warn);
    assert_eq!(worst(&[ok, fail, warn]), HealthMark::Fail);
}
