use super::super::frontmatter::OnDenied;
use super::fixture::{file, files};
use super::*;

fn parse(files: Vec<SourceFile>) -> Result<Parsed, Vec<Diagnostic>> {
    Definition::parse(files, &EntryPoint::Entry, Platform::Unix)
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    let lines = diagnostics.iter().map(|d| match (&d.hint, d.remedy) {
        (Some(hint), _) => format!("{d} [{}]\n  hint: {hint}", d.code),
        (None, Some(remedy)) => format!("{d} [{}]\n  remedy: {remedy:?}", d.code),
        (None, None) => format!("{d} [{}]", d.code),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn errors(files: Vec<SourceFile>) -> String {
    shown(&parse(files).unwrap_err())
}

fn warnings(files: Vec<SourceFile>) -> String {
    shown(&parse(files).unwrap().warnings)
}

fn entry(names: &[&str], start: &EntryPoint, platform: Platform) -> Result<String, String> {
    Definition::parse(files(names), start, platform)
        .map(|parsed| parsed.definition.entry.to_string())
        .map_err(|diagnostics| shown(&diagnostics))
}

#[test]
fn entry_is_the_runnable_start() {
    let check = |names: &[&str], platform, expected: &str| {
        assert_eq!(entry(names, &EntryPoint::Entry, platform).as_deref(), Ok(expected));
    };
    check(&["START.md", "A.md"], Platform::Unix, "START.md");
    check(&["1_START.md", "A.md"], Platform::Unix, "1_START.md");
    check(&["START.sh", "A.md"], Platform::Unix, "START.sh");
    check(&["START.md", "1_START.bat"], Platform::Unix, "START.md");
    check(&["START.sh", "START.bat"], Platform::Unix, "START.sh");
    check(&["START.sh", "START.bat"], Platform::Windows, "START.bat");
}

#[test]
fn several_or_no_entries_are_named() {
    let unix = |names: &[&str]| entry(names, &EntryPoint::Entry, Platform::Unix).unwrap_err();
    insta::assert_snapshot!(unix(&["START.md", "1_START.md"]), @r"
    error: there are several entry states: 1_START.md, START.md [several-entries]
      hint: keep one of them, or name the state to start with (not in an archive)
    ");
    insta::assert_snapshot!(unix(&["START.md", "START.sh", "A.md"]), @r"
    error: there are several entry states: START.md, START.sh [several-entries]
      hint: keep one of them, or name the state to start with (not in an archive)
    ");
    insta::assert_snapshot!(unix(&["A.md", "B.sh", "README.md", "notes.txt"]), @r"
    error: there is no entry state 1_START or START: found A.md, B.sh [no-entry]
      hint: add START.md, or name the state to start with (not in an archive)
    ");
    insta::assert_snapshot!(unix(&["1_START.bat", "A.md"]), @r"
    error: there is no entry state 1_START or START: 1_START.bat cannot be run on this platform [no-entry]
      hint: add START.md, or name the state to start with (not in an archive)
    ");
    insta::assert_snapshot!(unix(&["A.md", "start.md"]), @r"
    error: there is no entry state 1_START or START: found A.md, start.md [no-entry]
      hint: rename start.md to START.md
    ");
    insta::assert_snapshot!(unix(&["notes.txt", "README.md"]), @r"
    error: there is no entry state 1_START or START: there are no states at all [no-entry]
      hint: add START.md, or name the state to start with (not in an archive)
    ");
    let many: Vec<String> = (0..30).map(|n| format!("S{n:02}.md")).collect();
    insta::assert_snapshot!(unix(&many.iter().map(String::as_str).collect::<Vec<_>>()), @r"
    error: there is no entry state 1_START or START: found S00.md, S01.md, S02.md, S03.md, S04.md, S05.md, S06.md, S07.md, S08.md, S09.md and 20 more [no-entry]
      hint: add START.md, or name the state to start with (not in an archive)
    ");
}

#[test]
fn a_named_state_is_where_the_run_starts() {
    let start = |name: &str| EntryPoint::State(name.to_owned());
    let scope = ["START.md", "REVIEW.md", "1_START.md", "WIN.bat"];
    let check = |name: &str, expected: Result<&str, &str>| {
        let found = entry(&scope, &start(name), Platform::Unix);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    };
    check("REVIEW.md", Ok("REVIEW.md"));
    check("WIN.bat", Err(r#"error: "WIN.bat" cannot be run on this platform [no-entry]"#));
    check(
        "REVIW.md",
        Err(r#"error: there is no state "REVIW.md"; did you mean "REVIEW.md"? [no-entry]"#),
    );
}

#[test]
fn states_are_files_with_supported_extensions() {
    let mut scope =
        files(&["START.md", "b.sh", "c.bat", "README.md", "readme.sh", "data.json", "Makefile"]);
    scope.push(SourceFile {
        name: "raw.sh".into(),
        bytes: [0xff, 0xfe].as_slice().into(),
        executable: true,
    });
    let definition = parse(scope).unwrap().definition;
    let names: Vec<_> = definition.states.keys().map(StateName::as_str).collect();
    assert_eq!(names, ["START.md", "b.sh", "c.bat", "raw.sh"]);
}

#[test]
fn state_keeps_its_file_and_body() {
    let text = "---\nmodel: opus\n---\nDo it.\n";
    let definition = parse(vec![file("START.md", text)]).unwrap().definition;
    let expected = State {
        name: "START.md".into(),
        kind: StateKind::Prompt,
        front: Frontmatter { model: Some("opus".into()), ..Frontmatter::default() }.into(),
        body: "Do it.\n".into(),
        source: file("START.md", text),
        hash: Hash::of(text.as_bytes()),
    };
    assert_eq!(definition.states.into_values().collect::<Vec<_>>(), [expected]);
}

#[test]
fn prompt_must_be_text_and_not_empty() {
    let mut scope = vec![
        file("START.md", "go"),
        file("BLANK.md", " \n\t\n"),
        file("FRONT.md", "---\nmodel: x\n---\n\n"),
        file("OPEN.md", "---\nmodel: x\n"),
        file("EMPTY.sh", ""),
    ];
    scope.push(SourceFile {
        name: "LATIN.md".into(),
        bytes: b"ok\nna\xefve".as_slice().into(),
        executable: false,
    });
    insta::assert_snapshot!(errors(scope), @r"
    BLANK.md: error: the prompt is empty: there is nothing to send [empty-prompt]
    FRONT.md: error: the prompt is empty: there is nothing to send [empty-prompt]
    LATIN.md:2:3: error: the prompt is not UTF-8: byte 5 cannot be read [not-utf8]
    OPEN.md:1:1: error: the frontmatter is never closed [frontmatter-unclosed]
      hint: end it with a line that holds only `---`
    ");
}

#[test]
fn names_in_policies_and_then_must_resolve() {
    let scope = vec![
        file(
            "START.md",
            "---\nallowed_targets:\n  goto: [REVEIW, BOTH, WIN.bat]\n  call:\n    - {child: A, return: GONE}\n\
             max_visits: 2\nthen: WIN\nallowed_transitions:\n  - {tag: goto, target: nowhere}\n---\ngo",
        ),
        file("REVIEW.md", "review"),
        file("BOTH.md", "b"),
        file("BOTH.sh", "b"),
        file("WIN.bat", "w"),
        file("A.md", "a"),
    ];
    insta::assert_snapshot!(errors(scope), @r#"
    START.md:3:10: error: there is no state "REVEIW"; did you mean "REVIEW.md"? [unknown-state]
    START.md:3:18: error: "BOTH" could be BOTH.md or BOTH.sh; write the extension [ambiguous-state]
    START.md:3:24: warning: "WIN.bat" cannot be run on this platform [wrong-platform]
    START.md:5:26: error: there is no state "GONE" [unknown-state]
    START.md:7:7: error: "WIN.bat" cannot be run on this platform [wrong-platform]
    START.md:8:1: error: the policy allows no transition at all: the state could never end [empty-policy]
    START.md:9:25: error: there is no state "nowhere" [unknown-state]
    "#);
}

#[test]
fn mistakes_of_all_files_are_reported_together() {
    let scope = vec![
        file("START.md", "go"),
        file("B.md", "---\nmax_visits: 0\nmodle: x\nbudget: -1\n---\nb"),
        file("A.md", "---\ntimeout: 90\n---\n"),
    ];
    insta::assert_snapshot!(errors(scope), @r#"
    A.md: error: the prompt is empty: there is nothing to send [empty-prompt]
    A.md:2:10: error: `timeout`: "90" is not a duration such as 250ms, 90s, 10m, 2h or 7d [bad-duration]
      hint: write the unit: 90s
    B.md:2:13: error: `max_visits` is a whole number from 1 to 4294967295, not 0 [bad-number]
    B.md:3:1: error: unknown key `modle` [unknown-key]
      hint: did you mean `model`?
    B.md:4:9: error: `budget`: "-1" is negative; an amount of dollars is zero or more [bad-amount]
    "#);
}

const BROKEN: &str = "---\nmax_visits: 0\n---\nx";

#[test]
fn mistakes_where_nothing_leads_are_warnings() {
    let lead = |front: &str| {
        vec![
            file("START.md", &format!("---\n{front}\n---\ngo")),
            file("NEXT.md", "---\nallowed_tags: [result]\n---\nn"),
            file("LOST.md", BROKEN),
        ]
    };
    insta::assert_snapshot!(warnings(lead("allowed_transitions: [{tag: goto, target: NEXT}]")), @"LOST.md:2:13: warning: `max_visits` is a whole number from 1 to 4294967295, not 0 (nothing leads here) [bad-number]");
    for closed in [
        "allowed_tags: [result]",
        "allowed_targets: {goto: [NEXT]}\nallowed_tags: [goto, result]",
        "allowed_transitions: [{tag: call, target: NEXT, return: START}]",
        "allowed_transitions: [{tag: fork, target: NEXT, next: START}]",
        "allowed_tags: [result]\nmax_visits: 1\nthen: NEXT",
    ] {
        assert!(parse(lead(closed)).is_ok(), "{closed}");
    }
    for open in [
        "model: x",
        "allowed_tags: [goto]",
        "allowed_targets: {goto: [NEXT]}",
        "allowed_transitions: [{tag: goto}]",
        "allowed_transitions: [{tag: call, target: NEXT}]",
        "allowed_transitions: [{tag: function, return: NEXT}]",
        "allowed_transitions: [{tag: fork, target: NEXT, next: LOST}]",
        "allowed_tags: [result]\nmax_visits: 1\nthen: LOST",
    ] {
        assert!(parse(lead(open)).is_err(), "{open}");
    }
}

#[test]
fn a_script_may_lead_anywhere() {
    let scope = vec![
        file("START.md", "---\nallowed_transitions: [{tag: goto, target: RUN}]\n---\ngo"),
        file("RUN.sh", "true"),
        file("LOST.md", BROKEN),
    ];
    assert!(parse(scope).is_err());
}

#[test]
fn start_decides_reachable_states() {
    let scope =
        vec![file("START.md", BROKEN), file("ONE.md", "---\nallowed_tags: [result]\n---\none")];
    let start = EntryPoint::State("ONE.md".into());
    assert!(Definition::parse(scope.clone(), &start, Platform::Unix).is_ok());
    assert!(parse(scope).is_err());
}

#[test]
fn resumed_run_reaches_from_its_states() {
    let leads =
        |to: &str| format!("---\nallowed_transitions: [{{tag: goto, target: {to}}}]\n---\ngo");
    let scope = vec![
        file("START.md", &leads("A")),
        file("A.md", &leads("B")),
        file("B.md", &leads("B")),
        file("C.md", &leads("B")),
        file("FREE.md", "go"),
    ];
    let definition = parse(scope).unwrap().definition;
    let check = |at: &[&str], expected: &[&str]| {
        let at: Vec<StateName> = at.iter().map(|name| (*name).into()).collect();
        let reachability = Reachability::from_states(&definition, &at);
        let reached = definition.states.keys().filter(|name| reachability.is_reached(name));
        assert_eq!(reached.map(StateName::as_str).collect::<Vec<_>>(), expected, "{at:?}");
    };
    check(&["START.md"], &["A.md", "B.md", "START.md"]);
    check(&["A.md"], &["A.md", "B.md"]);
    check(&["B.md", "C.md"], &["B.md", "C.md"]);
    check(&["B.md", "FREE.md"], &["A.md", "B.md", "C.md", "FREE.md", "START.md"]);
    check(&[], &[]);
}

#[test]
fn unnameable_files_are_left_out() {
    insta::assert_snapshot!(warnings(vec![file("START.md", "go"), file("a:b.md", "x"), file("a\nb.md", "x")]), @r#"
    a:b.md: warning: no target can name this file; it is ignored [bad-name]
      hint: a target is a file name, and "a:b.md" is not one: it holds a colon
    a\nb.md: warning: no target can name this file; it is ignored [bad-name]
      hint: a target is a file name, and "a\nb.md" is not one: it holds a control character
    "#);
}

#[test]
fn a_large_scope_is_parsed_quickly() {
    let mut scope: Vec<_> = (0..10_000)
        .map(|n| {
            let next = (n + 1) % 10_000;
            let text = format!(
                "---\nallowed_targets:\n  goto: [S{next}]\nallowed_tags: [goto]\n---\nbody {n}"
            );
            file(&format!("S{n}.md"), &text)
        })
        .collect();
    scope.push(file(
        "START.md",
        "---\nallowed_targets: {goto: [S0]}\nallowed_tags: [goto]\n---\ngo",
    ));
    assert_eq!(parse(scope).unwrap().warnings, []);
}

#[test]
fn repeated_prompt_ignores_transition_keys() {
    let text = "---
allowed_tags: [goto]
allowed_targets: {goto: [ELSEWHERE]}
allowed_transitions: [{tag: goto, target: ELSEWHERE}]
max_visits: 3
then: GONE
on_denied: remind
model: opus
budget: 0.50
---
text";
    let start = EntryPoint::Ralph("PROMPT.md".into());
    let parse = |text: &str| {
        let files = vec![file("PROMPT.md", text), file("UNTIL.sh", "true")];
        Definition::parse(files, &start, Platform::Unix)
    };
    let parsed = parse(text).unwrap();
    insta::assert_snapshot!(shown(&parsed.warnings), @"
    PROMPT.md:2:1: warning: `allowed_tags` has no effect in ralph: only <result> counts [not-for-ralph]
      remedy: RunAsWorkflow
    PROMPT.md:3:1: warning: `allowed_targets` has no effect in ralph: only <result> counts [not-for-ralph]
      remedy: RunAsWorkflow
    PROMPT.md:4:1: warning: `allowed_transitions` has no effect in ralph: only <result> counts [not-for-ralph]
      remedy: RunAsWorkflow
    PROMPT.md:5:1: warning: `max_visits` has no effect in ralph [not-for-ralph]
      remedy: LimitIterations
    PROMPT.md:6:1: warning: `then` has no effect in ralph: only <result> counts [not-for-ralph]
      remedy: RunAsWorkflow
    PROMPT.md:7:1: warning: `on_denied: remind` has no effect in ralph, which sends no reminders [not-for-ralph]
      hint: it is read as `warn`; `fail` ends the iteration
    ");
    let front = &parsed.definition.states[&"PROMPT.md".into()].front;
    let expected = Frontmatter {
        model: Some("opus".into()),
        budget: Some("0.50".parse().unwrap()),
        ..Frontmatter::default()
    };
    assert_eq!((parsed.definition.entry.as_str(), &**front), ("PROMPT.md", &expected));
    // Only `remind` has no effect for a repeated prompt.
    let strict = parse("---\non_denied: fail\n---\ntext").unwrap();
    assert_eq!(shown(&strict.warnings), "");
    assert_eq!(strict.definition.states[&"PROMPT.md".into()].front.on_denied, OnDenied::Fail);
    // Mistakes stay mistakes.
    insta::assert_snapshot!(shown(&parse("---\nbudget: much\n---\ntext").unwrap_err()), @r#"PROMPT.md:2:9: error: `budget`: "much" is not an amount of dollars such as 10 or 2.50 [bad-amount]"#);
}

#[test]
fn pinned_states_keep_their_unknown_keys() {
    let files = |front: &str| vec![file("START.md", &format!("---\n{front}\n---\ngo"))];
    let pinned = |front: &str| {
        Definition::parse_pinned(files(front), &EntryPoint::Entry, Platform::Unix).is_ok()
    };
    for unknown in ["buget: 1", "allowed_transitions: [{tag: result, payload: 'YES'}]"] {
        assert!(parse(files(unknown)).is_err(), "{unknown}");
        assert!(pinned(unknown), "{unknown}");
    }
    assert!(!pinned("budget: much"));
}
