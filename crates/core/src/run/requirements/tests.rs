use super::*;
use crate::capability::Capability;
use crate::extension::Platform;
use crate::workflow::{Definition, EntryPoint, SourceFile};

const FEW: &[Capability] = &[Capability::Fresh, Capability::Resume];

fn catalog() -> BackendCatalog {
    let all: [(BackendName, &'static [Capability]); 3] = [
        ("claude".into(), &Capability::ALL),
        ("codex".into(), &Capability::ALL),
        ("linear".into(), FEW),
    ];
    all.into_iter().collect()
}

/// Returns the findings of a start with these states, from the first of them.
fn findings(files: &[(&str, &str)], change: impl FnOnce(&mut Settings)) -> Vec<String> {
    let mut settings = Settings { budget: None, ..Settings::default() };
    change(&mut settings);
    let catalog = catalog();
    let demand = Requirements { settings: &settings, catalog: &catalog };
    let source = |&(name, front): &(&str, &str)| {
        let fence = if front.is_empty() { "" } else { "---\n" };
        let text = format!("{fence}{front}{fence}text");
        SourceFile { name: name.to_owned(), bytes: text.as_bytes().into(), executable: false }
    };
    let files: Vec<SourceFile> = files.iter().map(source).collect();
    let start = EntryPoint::State(files[0].name.clone());
    let found = Definition::parse_with(files, &start, Platform::Unix, &|reachability| {
        demand.of_start(reachability)
    });
    let found = match found {
        Ok(parsed) => parsed.warnings,
        Err(mistakes) => mistakes,
    };
    let line = |found: Diagnostic| {
        let remedy = found.remedy.map(|remedy| format!("; {remedy:?}")).unwrap_or_default();
        let hint = found.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{found} [{}]{remedy}{hint}", found.code)
    };
    found.into_iter().map(line).collect()
}

const CODEX: &str = "backend: codex\n";

#[track_caller]
fn check_policy(policy: &str, expected: &[&str]) {
    let files = [("A.md", policy), ("B.md", ""), ("X.md", CODEX), ("S.sh", "")];
    assert_eq!(findings(&files, |_| {}), expected, "{policy}");
}

#[test]
fn policy_moving_a_conversation_is_an_error() {
    let goto = "A.md:2:26: error: `goto` to X.md would continue a conversation of claude, but codex \
                answers X.md [other-backend]; reach X.md by `reset`, `function` or `fork`: they begin \
                a conversation";
    check_policy("allowed_targets: {goto: [X]}\n", &[goto]);
    check_policy("allowed_targets: {goto: [B, X]}\n", &[&goto.replace("2:26", "2:29")]);
    check_policy("allowed_targets: {goto: [B, S.sh]}\n", &[]);
    check_policy("allowed_targets: {reset: [X], goto: [B]}\n", &[]);
    check_policy(
        "allowed_targets: {call: [{child: X, return: B}]}\n",
        &["A.md:2:34: error: `call` to X.md would continue a conversation of claude, but codex \
           answers X.md [other-backend]; reach X.md by `reset`, `function` or `fork`: they begin a \
           conversation"],
    );
    check_policy(
        "allowed_transitions: [{tag: function, target: X, return: X.md}]\n",
        &["A.md:2:58: error: the `return` of `function`, X.md, would continue a conversation of \
           claude, but codex answers X.md [other-backend]; return to a state that claude answers"],
    );
    check_policy("allowed_transitions: [{tag: function, target: X, return: B}]\n", &[]);
    check_policy(
        "allowed_targets: {fork: [{child: B, next: X}]}\n",
        &[
            "A.md:2:43: error: the `next` of `fork`, X.md, would continue a conversation of claude, \
           but codex answers X.md [other-backend]; continue at a state that claude answers",
        ],
    );
    check_policy("allowed_targets: {fork: [{child: X, next: B}]}\n", &[]);
}

#[test]
fn then_to_another_backend_warns() {
    check_policy("max_visits: 2\nthen: B\n", &[]);
    check_policy(
        "max_visits: 2\nthen: X\n",
        &[
            "A.md:3:1: warning: `then` leads from claude to codex, which answers X.md: only a fresh \
           conversation can go there [other-backend]; name a state that claude answers, or reach A.md \
           by `reset`, `function` or `fork` alone",
        ],
    );
}

#[test]
fn unknown_backends_cause_no_policy_findings() {
    let check = |own: &str, other: &str| {
        let from = format!("{own}allowed_targets: {{goto: [X]}}\nmax_visits: 2\nthen: X\n");
        let found = findings(&[("A.md", &from), ("X.md", other)], |_| {});
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("[unknown-backend]"), "{found:?}");
    };
    check("", "backend: codx\n");
    check("backend: codx\n", "");
}

#[test]
fn a_policy_that_allows_any_state_names_none() {
    check_policy("", &[]);
    check_policy("allowed_tags: [goto, call]\n", &[]);
    check_policy("allowed_transitions: [{tag: goto}, {tag: goto, target: X}]\n", &[]);
    // A route that no form allows cannot be taken.
    check_policy("allowed_tags: [reset]\nallowed_targets: {goto: [X]}\n", &[]);
}

#[test]
fn unreachable_states_only_warn() {
    let files = [
        ("A.md", "allowed_tags: [result]\n"),
        ("B.md", "allowed_targets: {goto: [X]}\n"),
        ("C.md", "backend: codx\n"),
        ("X.md", CODEX),
    ];
    let expected = [
        "B.md:2:26: warning: `goto` to X.md would continue a conversation of claude, but codex \
         answers X.md (nothing leads here) [other-backend]; reach X.md by `reset`, `function` or \
         `fork`: they begin a conversation",
        "C.md:2:1: warning: there is no backend \"codx\" (nothing leads here) [unknown-backend]; did \
         you mean `codex`?",
    ];
    assert_eq!(findings(&files, |_| {}), expected);
}

#[test]
fn a_backend_must_exist() {
    let check = |backend: &str, front: &str, expected: &[&str]| {
        let found = findings(&[("A.md", front)], |settings| settings.backend = backend.into());
        assert_eq!(found, expected, "{backend}, {front}");
    };
    let unknown = "A.md:2:1: error: there is no backend \"codx\" [unknown-backend]; did you mean \
                   `codex`?";
    check("claude", "backend: codx\n", &[unknown]);
    let gemini = "error: there is no backend \"gemini\" [unknown-backend]; there are claude, codex and \
                  linear";
    check("gemini", "", &[gemini]);
    check("gemini", "backend: codex\n", &[gemini]);
}

#[test]
fn unsupported_state_requirements_are_errors() {
    let check = |front: &str, expected: &[&str]| {
        let front = format!("backend: linear\n{front}\n");
        assert_eq!(findings(&[("A.md", &front)], |_| {}), expected, "{front}");
        let able = front.replace("linear", "codex");
        assert_eq!(findings(&[("A.md", &able)], |_| {}), Vec::<String>::new(), "{able}");
    };
    check("model: big", &[]);
    let call = |key: &str| {
        format!(
            "A.md:3:1: error: linear cannot branch a conversation: `{key}` asks for it \
             [backend-lacks]; use `function` for `call`, or let another backend answer this state"
        )
    };
    check("allowed_tags: [call, result]", &[&call("allowed_tags")]);
    check("allowed_tags: [call]", &[&call("allowed_tags")]);
    check("allowed_targets: {call: [A]}", &[&call("allowed_targets")]);
    check("allowed_transitions: [{tag: call}]", &[&call("allowed_transitions")]);
    check("allowed_targets: {goto: [A]}", &[]);
    check("allowed_targets: {call: []}", &[]);
    check(
        "budget: 1",
        &[
            "A.md:3:1: error: linear cannot stop at a cap: `budget` asks for it [backend-lacks]; leave \
           it out and bound the visits with `max_visits`, or let another backend answer this state",
        ],
    );
    check(
        "effort: high",
        &["A.md:3:1: error: linear has no effort setting: `effort` asks for it [backend-lacks]; \
           leave it out, or let another backend answer this state"],
    );
    let lists = |line: u32, key: &str| {
        format!(
            "A.md:{line}:1: error: linear has no lists of allowed and denied tools: `{key}` asks \
             for it [backend-lacks]; leave it out and set `permission_mode`, or let another backend \
             answer this state"
        )
    };
    check("allow: [Edit]\ndeny: [Bash]", &[&lists(3, "allow"), &lists(4, "deny")]);
}

#[test]
fn run_requirements_are_reported_once_per_backend() {
    let check = |change: &dyn Fn(&mut Settings), expected: &[&str]| {
        let names = ["A.md", "B.md", "C.md", "D.md", "E.md", "F.md"];
        let mut files = names.map(|name| (name, "backend: linear\n")).to_vec();
        files.push(("G.md", ""));
        assert_eq!(findings(&files, change), expected);
    };
    check(&|_| {}, &[]);
    let answers = "(linear answers A.md, B.md, C.md, D.md, E.md and 1 more) [backend-lacks]";
    let instead = |key: &str| {
        format!("write `{key}` into the frontmatter of G.md instead of asking it of all")
    };
    check(
        &|s| s.budget = Some(crate::budget::Micros(2_000_000)),
        &[&format!(
            "error: linear cannot stop at a cap, but the run has one of $2.00 {answers}; \
             RunWithoutCap; {}",
            instead("budget")
        )],
    );
    check(
        &|s| s.effort = Some("high".into()),
        &[&format!(
            "error: linear has no effort setting, but the run asks for \"high\" {answers}; leave \
             out `effort`, or let another backend answer; or {}",
            instead("effort")
        )],
    );
    check(
        &|s| {
            s.permissions.deny = vec!["Bash(rm:*)".into()];
            s.permissions.allow = vec!["Edit".into()];
        },
        &[
            &format!(
                "error: linear has no lists of allowed and denied tools, but the run denies \
                 Bash(rm:*) {answers}; leave out `deny` and set `permission_mode`, or let another \
                 backend answer; or {}",
                instead("deny")
            ),
            &format!(
                "warning: linear has no lists of allowed and denied tools: it ignores that the run \
                 allows Edit {answers}; {}",
                instead("allow")
            ),
        ],
    );
}

#[test]
fn own_effort_of_a_state_overrides_the_runs() {
    let files = [("A.md", "backend: linear\neffort: low\n"), ("B.md", "")];
    let found = findings(&files, |settings| settings.effort = Some("high".into()));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("A.md:3:1: error: linear has no effort setting"), "{found:?}");
}

#[test]
fn all_findings_are_reported_at_once() {
    let files = [
        ("A.md", "allowed_targets: {goto: [X, B]}\n"),
        ("B.md", "backend: codex\nbudget: much\n"),
        ("X.md", "backend: codex\nallowed_targets: {goto: [Q]}\n"),
    ];
    let found = findings(&files, |_| {});
    let codes: Vec<&str> = found.iter().map(|line| &line[line.find('[').unwrap()..]).collect();
    let starts: Vec<&str> = found.iter().map(|line| &line[..9]).collect();
    assert_eq!(starts, ["A.md:2:26", "B.md:3:9:", "X.md:3:26"], "{codes:?}");
}

#[test]
fn resume_does_not_check_policies_again() {
    let text = "---\nallowed_targets: {goto: [X]}\neffort: high\nbackend: linear\n---\ntext";
    let source = |(name, text): (&str, &str)| SourceFile {
        name: name.to_owned(),
        bytes: text.as_bytes().into(),
        executable: false,
    };
    let files = [("START.md", text), ("X.md", "text")].map(source).to_vec();
    let parsed = Definition::parse(files, &EntryPoint::Entry, Platform::Unix).unwrap();
    let settings = Settings { budget: None, ..Settings::default() };
    let catalog = catalog();
    let demand = Requirements { settings: &settings, catalog: &catalog };
    let reachability = Reachability::of(&parsed.definition);
    let codes = |found: Vec<Diagnostic>| found.iter().map(|found| found.code).collect::<Vec<_>>();
    assert_eq!(codes(demand.of_resume(&reachability)), ["backend-lacks"]);
    assert_eq!(codes(demand.of_start(&reachability)), ["backend-lacks", "other-backend"]);
}
