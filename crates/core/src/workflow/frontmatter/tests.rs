use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::protocol::TagName;

use super::*;
use crate::protocol::Route;

fn front(yaml: &str) -> Frontmatter {
    let text = format!("---\n{yaml}\n---\nbody\n");
    let prompt = parse(&text);
    assert_eq!((prompt.diagnostics, prompt.body), (vec![], "body\n"), "{yaml}");
    prompt.front
}

fn mistakes(yaml: &str) -> String {
    let text = format!("---\n{yaml}\n---\nbody\n");
    let mut diagnostics = parse(&text).diagnostics;
    diagnostics.sort_by_key(|d| d.place.as_ref().map(|place| place.span.start));
    let lines = diagnostics.iter().map(|d| {
        let place = d.place.as_ref().expect("every mistake has a place");
        let span = &text[place.span.clone()];
        let hint = d.hint.as_ref().map(|hint| format!("\n    hint: {hint}"));
        let (line, column) = (place.line, place.column);
        let d = d.clone().in_file("X");
        format!("{d}\n    {line}:{column} {span:?} [{}]{}", d.code, hint.unwrap_or_default())
    });
    // A new tag must not change a snapshot about something else.
    let all = TagName::ALL.map(TagName::as_str).join(", ");
    lines.collect::<Vec<_>>().join("\n").replace(&all, "[ALL]")
}

fn allowed(target: &str, then: &str) -> Route {
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Route { target: name(target), then: name(then), wait: None }
}

#[test]
fn every_key_is_read() {
    let yaml = "
model: opus
effort: high
backend: scripted
permission_mode: plan
allow: ['Bash(cargo test:*)', Read]
deny:
  - Write
on_denied: remind
add_dirs: [../shared]
mcp_config: mcp.json
append_system_prompt: |
  Be brief.
  Be kind.
timeout: 90s
idle_timeout: 10m
max_visits: 3
then: GIVE_UP
budget: 2.50
description: Reviews the change
allowed_tags: [goto, result, goto]
allowed_targets:
  goto: [A, B.md, A]
allowed_transitions:
  - tag: goto
    target: A
  - {tag: result}";
    let expected = Frontmatter {
        policy: Policy {
            tags: Some(vec![TagName::Goto, TagName::Result]),
            targets: BTreeMap::from([(TagName::Goto, vec![allowed("A", ""), allowed("B.md", "")])]),
            transitions: Some(vec![
                (TagName::Goto, allowed("A", "")),
                (TagName::Result, allowed("", "")),
            ]),
        },
        model: Some("opus".into()),
        effort: Some("high".into()),
        backend: Some("scripted".into()),
        permission_mode: Some("plan".into()),
        allow: vec!["Bash(cargo test:*)".into(), "Read".into()],
        deny: vec!["Write".into()],
        on_denied: OnDenied::Remind,
        add_dirs: vec!["../shared".into()],
        mcp_config: Some("mcp.json".into()),
        append_system_prompt: Some("Be brief.\nBe kind.\n".into()),
        timeout: Some(Span::seconds(90)),
        idle_timeout: Some(Span::minutes(10)),
        max_visits: Some(3),
        then: Some("GIVE_UP".into()),
        budget: Some(Micros(2_500_000)),
        description: Some("Reviews the change".into()),
    };
    assert_eq!(front(yaml), expected);
}

#[test]
fn absent_keys_decide_nothing() {
    for yaml in ["", "# note", "~", "\n\n", "{}"] {
        assert_eq!(front(yaml), Frontmatter::default(), "{yaml:?}");
    }
}

#[test]
fn values_follow_yaml_1_2() {
    assert_eq!(front("model: NO").model.as_deref(), Some("NO"));
    assert_eq!(front("model: yes").model.as_deref(), Some("yes"));
    assert_eq!(front("model: '4'").model.as_deref(), Some("4"));
    assert_eq!(front("then: NO\nmax_visits: 1").then.as_deref(), Some("NO"));
    assert_eq!(front("max_visits: 10 # ten").max_visits, Some(10));
    assert_eq!(front("model: &m opus\neffort: *m").effort.as_deref(), Some("opus"));
    assert_eq!(front("on_denied: warn").on_denied, OnDenied::Warn);
    assert_eq!(front("on_denied: fail").on_denied, OnDenied::Fail);
    assert_eq!(front("budget: $1").budget, Some(Micros(1_000_000)));
    assert_eq!(front("budget: '0.10'").budget, Some(Micros(100_000)));
    assert_eq!(front("description: |\n  One line.\n").description.as_deref(), Some("One line."));
    let windows =
        parse("\u{feff}---\r\nmodel: opus\r\nthen: A\r\nmax_visits: 2\r\n---\r\nbody\r\n");
    assert_eq!(windows.diagnostics, []);
    assert_eq!(windows.front.model.as_deref(), Some("opus"));
    assert_eq!(windows.front.then.as_deref(), Some("A"));
    assert_eq!(windows.body, "body\r\n");
}

#[test]
fn policies_have_three_forms() {
    let check = |yaml: &str, expected: Policy| assert_eq!(front(yaml).policy, expected, "{yaml}");
    let targets = |tag, list: &[Route]| Policy {
        targets: BTreeMap::from([(tag, list.to_vec())]),
        ..Policy::default()
    };
    let transitions = |list: &[(TagName, Route)]| Policy {
        transitions: Some(list.to_vec()),
        ..Policy::default()
    };
    check(
        "allowed_targets:\n  call: [A, {child: B, return: R}, {child: C}, {return: R}]",
        targets(
            TagName::Call,
            &[allowed("A", ""), allowed("B", "R"), allowed("C", ""), allowed("", "R")],
        ),
    );
    check(
        "allowed_targets:\n  fork:\n    - child: W\n      next: N\n    - X",
        targets(TagName::Fork, &[allowed("W", "N"), allowed("X", "")]),
    );
    check(
        "allowed_targets: {reset: [], goto: [{child: A}]}",
        Policy {
            targets: BTreeMap::from([
                (TagName::Goto, vec![allowed("A", "")]),
                (TagName::Reset, vec![]),
            ]),
            ..Policy::default()
        },
    );
    check(
        "allowed_transitions:\n  - {tag: function, target: F, return: R}\n  - {tag: fork, target: W, next: N}\n  - {tag: reset}",
        transitions(&[
            (TagName::Function, allowed("F", "R")),
            (TagName::Fork, allowed("W", "N")),
            (TagName::Reset, allowed("", "")),
        ]),
    );
}

#[test]
fn names_are_collected_with_their_place() {
    let text =
        "---\nallowed_targets:\n  call: [{child: A, return: B}]\nmax_visits: 1\nthen: C\n---\nx";
    let prompt = parse(text);
    let mentions: Vec<_> =
        prompt.mentions.iter().map(|m| (m.name.as_str(), &text[m.span.clone()], m.role)).collect();
    assert_eq!(
        mentions,
        [
            ("A", "A", Role::Policy(TagName::Call)),
            ("B", "B", Role::Following(TagName::Call)),
            ("C", "C", Role::Then)
        ]
    );
}

#[test]
fn wrong_types_of_texts_and_lists_are_named() {
    insta::assert_snapshot!(mistakes("
model: 4
effort: true
backend: [x]
permission_mode: {a: b}
allow: Read
deny: [1, x, [y], '']
on_denied: 1
add_dirs: ~
mcp_config: 1.5
append_system_prompt:
description: ' '"), @r#"
    X:3:8: error: `model` must be a text, found a number
        3:8 "4" [wrong-type]
        hint: put it in quotes: "4"
    X:4:9: error: `effort` must be a text, found true or false
        4:9 "true" [wrong-type]
        hint: put it in quotes: "true"
    X:5:10: error: `backend` must be a text, found a list
        5:10 "[x]" [wrong-type]
    X:6:18: error: `permission_mode` must be a text, found a map
        6:18 "{a: b}" [wrong-type]
    X:7:8: error: `allow` must be a list, found a text
        7:8 "Read" [wrong-type]
        hint: write [Read]
    X:8:8: error: an entry of `deny` must be a text, found a number
        8:8 "1" [wrong-type]
        hint: put it in quotes: "1"
    X:8:14: error: an entry of `deny` must be a text, found a list
        8:14 "[y]" [wrong-type]
    X:8:19: error: an entry of `deny` is empty
        8:19 "''" [empty-value]
    X:9:12: error: `on_denied` must be a text, found a number
        9:12 "1" [wrong-type]
        hint: put it in quotes: "1"
    X:10:11: error: `add_dirs` must be a list, found nothing
        10:11 "~" [wrong-type]
    X:11:13: error: `mcp_config` must be a text, found a number
        11:13 "1.5" [wrong-type]
        hint: put it in quotes: "1.5"
    X:12:21: error: `append_system_prompt` must be a text, found nothing
        12:21 "" [wrong-type]
    X:13:14: error: `description` is empty
        13:14 "' '" [empty-value]
    "#);
}

#[test]
fn wrong_types_of_limits_and_policies_are_named() {
    insta::assert_snapshot!(mistakes("
timeout: [90s]
idle_timeout: true
max_visits: three
then: 7
budget: []
allowed_tags: goto
allowed_targets: [goto]
allowed_transitions: {tag: goto}"), @r#"
    X:3:10: error: `timeout` must be a duration such as 250ms, 90s, 10m, 2h or 7d, found a list
        3:10 "[90s]" [wrong-type]
    X:4:15: error: `idle_timeout` must be a duration such as 250ms, 90s, 10m, 2h or 7d, found true or false
        4:15 "true" [wrong-type]
    X:5:13: error: `max_visits` must be a whole number, found a text
        5:13 "three" [wrong-type]
    X:6:7: error: `then` must be a text, found a number
        6:7 "7" [wrong-type]
        hint: put it in quotes: "7"
    X:7:9: error: `budget` must be an amount of dollars such as 2.50, found a list
        7:9 "[]" [wrong-type]
    X:8:15: error: `allowed_tags` must be a list, found a text
        8:15 "goto" [wrong-type]
        hint: write [goto]
    X:9:18: error: `allowed_targets` must be a map, found a list
        9:18 "[goto]" [wrong-type]
    X:10:22: error: `allowed_transitions` must be a list, found a map
        10:22 "{tag: goto}" [wrong-type]
    "#);
}

#[test]
fn values_out_of_range_are_refused() {
    insta::assert_snapshot!(mistakes("timeout: 90\nidle_timeout: 10 minutes\nbudget: -1"), @r#"
    X:2:10: error: `timeout`: "90" is not a duration such as 250ms, 90s, 10m, 2h or 7d
        2:10 "90" [bad-duration]
        hint: write the unit: 90s
    X:3:15: error: `idle_timeout`: "10 minutes" is not a duration such as 250ms, 90s, 10m, 2h or 7d
        3:15 "10 minutes" [bad-duration]
    X:4:9: error: `budget`: "-1" is negative; an amount of dollars is zero or more
        4:9 "-1" [bad-amount]
    "#);
    insta::assert_snapshot!(mistakes("timeout: 0"), @r#"
    X:2:10: error: `timeout`: "0" is not a duration such as 250ms, 90s, 10m, 2h or 7d
        2:10 "0" [bad-duration]
    "#);
    insta::assert_snapshot!(mistakes("timeout: 0s\nidle_timeout: -5m\nbudget: lots"), @r#"
    X:2:10: error: `timeout`: "0s" must be longer than nothing
        2:10 "0s" [bad-duration]
    X:3:15: error: `idle_timeout`: "-5m" is not a duration such as 250ms, 90s, 10m, 2h or 7d
        3:15 "-5m" [bad-duration]
    X:4:9: error: `budget`: "lots" is not an amount of dollars such as 10 or 2.50
        4:9 "lots" [bad-amount]
    "#);
    insta::assert_snapshot!(mistakes("max_visits: 0\nbudget: 0\non_denied: wran"), @r#"
    X:2:13: error: `max_visits` is a whole number from 1 to 4294967295, not 0
        2:13 "0" [bad-number]
    X:3:9: error: `budget` is zero: no turn of the state could ever start
        3:9 "0" [bad-amount]
    X:4:12: error: `on_denied` is warn, remind or fail, not "wran"
        4:12 "wran" [unknown-word]
        hint: did you mean `warn`?
    "#);
    insta::assert_snapshot!(mistakes("max_visits: 1.5\nbudget: 1e3\non_denied: never"), @r#"
    X:2:13: error: `max_visits` is a whole number from 1 to 4294967295, not 1.5
        2:13 "1.5" [bad-number]
    X:3:9: error: `budget`: "1e3" is not an amount of dollars such as 10 or 2.50
        3:9 "1e3" [bad-amount]
    X:4:12: error: `on_denied` is warn, remind or fail, not "never"
        4:12 "never" [unknown-word]
    "#);
    insta::assert_snapshot!(mistakes("max_visits: -1\ndescription: |\n  one\n  two"), @r#"
    X:2:13: error: `max_visits` is a whole number from 1 to 4294967295, not -1
        2:13 "-1" [bad-number]
    X:4:3: warning: `description` must be one line; only the first line is used
        4:3 "one\n  two\n" [long-description]
    "#);
    insta::assert_snapshot!(mistakes("max_visits: 4294967296\nthen: ../x"), @r#"
    X:2:13: error: `max_visits` is a whole number from 1 to 4294967295, not 4294967296
        2:13 "4294967296" [bad-number]
    X:3:7: error: `then` is a file name, and "../x" is not one: it holds a slash
        3:7 "../x" [bad-name]
    "#);
}

#[test]
fn unknown_and_repeated_keys_are_noticed() {
    insta::assert_snapshot!(mistakes("modle: opus\nMODEL: x\nfavourite_colour: red"), @r#"
    X:2:1: error: unknown key `modle`
        2:1 "modle" [unknown-key]
        hint: did you mean `model`?
    X:3:1: error: unknown key `MODEL`
        3:1 "MODEL" [unknown-key]
        hint: did you mean `model`?
    X:4:1: error: unknown key `favourite_colour`
        4:1 "favourite_colour" [unknown-key]
        hint: known keys: allowed_tags, allowed_targets, allowed_transitions, model, effort, backend, permission_mode, allow, deny, on_denied, add_dirs, mcp_config, append_system_prompt, timeout, idle_timeout, max_visits, then, budget, description
    "#);
    insta::assert_snapshot!(mistakes("allowed_transitions: [{tag: result, colour: red}]"), @r#"
    X:2:37: error: unknown key `colour` in `allowed_transitions`
        2:37 "colour" [unknown-key]
        hint: remove `colour`
    "#);
    insta::assert_snapshot!(mistakes("model: a\neffort: b\nmodel: c\nmodel: d"), @r#"
    X:4:1: error: `model` is given twice
        4:1 "model" [duplicate-key]
        hint: it is already in line 2
    X:5:1: error: `model` is given twice
        5:1 "model" [duplicate-key]
        hint: it is already in line 2
    "#);
    insta::assert_snapshot!(mistakes("1: a\n[x]: b\n~: c"), @r#"
    X:2:1: error: a key of the frontmatter must be a text, found a number
        2:1 "1" [wrong-type]
    X:3:1: error: a key of the frontmatter must be a text, found a list
        3:1 "[x]" [wrong-type]
    X:4:1: error: a key of the frontmatter must be a text, found nothing
        4:1 "~" [wrong-type]
    "#);
    insta::assert_snapshot!(mistakes("then: A"), @r#"
    X:2:1: warning: `then` has no effect without `max_visits`
        2:1 "then" [unused-then]
    "#);
}

#[test]
fn mistakes_in_allowed_tags_are_named() {
    insta::assert_snapshot!(mistakes("allowed_tags: [gote, jump, 1, Result]"), @r#"
    X:2:16: error: an entry of `allowed_tags` must be a tag, but "gote" is not a tag
        2:16 "gote" [unknown-tag]
        hint: did you mean `goto`?
    X:2:22: error: an entry of `allowed_tags` must be a tag, but "jump" is not a tag
        2:22 "jump" [unknown-tag]
        hint: the tags are [ALL]
    X:2:28: error: an entry of `allowed_tags` must be a text, found a number
        2:28 "1" [wrong-type]
        hint: put it in quotes: "1"
    X:2:31: error: an entry of `allowed_tags` must be a tag, but "Result" is not a tag
        2:31 "Result" [unknown-tag]
        hint: did you mean `result`?
    "#);
}

#[test]
fn mistakes_in_allowed_targets_are_named() {
    insta::assert_snapshot!(mistakes("
allowed_targets:
  gto: [A]
  result: [A]
  goto: A
  reset: [{child: A, return: B}, {child: a/b, nxt: C}]
  call: [{child: A, next: B}, {target: A}, 7]
  fork: [{child: W, return: R}]
  fork: [X]"), @r#"
    X:4:3: error: a key of `allowed_targets` must be a tag, but "gto" is not a tag
        4:3 "gto" [unknown-tag]
        hint: did you mean `goto`?
    X:5:3: error: a result has no target that could be allowed
        5:3 "result" [misplaced-key]
        hint: name `result` in `allowed_tags`
    X:6:9: error: `allowed_targets.goto` must be a list, found a text
        6:9 "A" [wrong-type]
        hint: write [A]
    X:7:22: error: `return` has no effect for reset in `allowed_targets.reset`
        7:22 "return" [misplaced-key]
        hint: known keys: child
    X:7:42: error: `child` in `allowed_targets.reset` is a file name, and "a/b" is not one: it holds a slash
        7:42 "a/b" [bad-name]
    X:7:47: error: unknown key `nxt` in `allowed_targets.reset`
        7:47 "nxt" [unknown-key]
        hint: known keys: child
    X:8:21: error: `next` has no effect for call in `allowed_targets.call`
        8:21 "next" [misplaced-key]
        hint: known keys: child, return
    X:8:32: error: `target` has no effect for call in `allowed_targets.call`
        8:32 "target" [misplaced-key]
        hint: known keys: child, return
    X:8:44: error: a target in `allowed_targets.call` must be a text, found a number
        8:44 "7" [wrong-type]
        hint: put it in quotes: "7"
    X:9:21: error: `return` has no effect for fork in `allowed_targets.fork`
        9:21 "return" [misplaced-key]
        hint: known keys: child, next
    X:10:3: error: `fork` is given twice
        10:3 "fork" [duplicate-key]
        hint: it is already in line 9
    "#);
}

#[test]
fn mistakes_in_allowed_transitions_are_named() {
    insta::assert_snapshot!(mistakes("
allowed_transitions:
  - goto
  - {target: A}
  - {tag: jump}
  - {tag: goto, target: A, return: B}
  - {tag: call, target: A, next: B}
  - {tag: result, target: A}
  - {tag: fork, target: .., next: 'a:b', cd: x}
  - {tag: goto, traget: B}"), @r#"
    X:4:5: error: an entry of `allowed_transitions` must be a map, found a text
        4:5 "goto" [wrong-type]
    X:5:5: error: an entry of `allowed_transitions` names no `tag`; write { tag: goto, target: STATE }
        5:5 "{target: A}" [missing-key]
    X:6:11: error: `tag` must be a tag, but "jump" is not a tag
        6:11 "jump" [unknown-tag]
        hint: the tags are [ALL]
    X:7:28: error: `return` has no effect for goto in `allowed_transitions`
        7:28 "return" [misplaced-key]
        hint: known keys: target, wait
    X:8:28: error: `next` has no effect for call in `allowed_transitions`
        8:28 "next" [misplaced-key]
        hint: known keys: target, return
    X:9:19: error: `target` has no effect for result in `allowed_transitions`
        9:19 "target" [misplaced-key]
    X:10:25: error: `target` in `allowed_transitions` is a file name, and ".." is not one: it is a directory
        10:25 ".." [bad-name]
    X:10:35: error: `next` in `allowed_transitions` is a file name, and "a:b" is not one: it holds a colon
        10:35 "'a:b'" [bad-name]
    X:10:42: error: unknown key `cd` in `allowed_transitions`
        10:42 "cd" [unknown-key]
        hint: known keys: target, next
    X:11:17: error: unknown key `traget` in `allowed_transitions`
        11:17 "traget" [unknown-key]
        hint: did you mean `target`?
    "#);
}

#[test]
fn policy_must_allow_a_transition() {
    insta::assert_snapshot!(mistakes("allowed_tags: []"), @r#"
    X:2:1: error: the policy allows no transition at all: the state could never end
        2:1 "allowed_tags" [empty-policy]
    "#);
    insta::assert_snapshot!(mistakes("allowed_transitions: []"), @r#"
    X:2:1: error: the policy allows no transition at all: the state could never end
        2:1 "allowed_transitions" [empty-policy]
    "#);
    insta::assert_snapshot!(mistakes("allowed_tags: [result]\nallowed_transitions: [{tag: goto}]"), @r#"
    X:3:1: error: the policy allows no transition at all: the state could never end
        3:1 "allowed_transitions" [empty-policy]
    "#);
    insta::assert_snapshot!(mistakes("allowed_targets: {goto: [A]}\nallowed_transitions: [{tag: goto, target: B}]"), @r#"
    X:3:1: error: the policy allows no transition at all: the state could never end
        3:1 "allowed_transitions" [empty-policy]
    "#);
}

#[test]
fn invalid_yaml_is_refused_with_its_place() {
    insta::assert_snapshot!(mistakes("model: [a\neffort: b"), @r#"
    X:3:7: error: the frontmatter is not YAML: illegal placement of ':' indicator
        3:7 ":" [invalid-yaml]
    "#);
    insta::assert_snapshot!(mistakes("model: 'a\neffort: b"), @r#"
    X:3:1: error: the frontmatter is not YAML: invalid indentation in multiline quoted scalar
        3:1 "e" [invalid-yaml]
    "#);
    insta::assert_snapshot!(mistakes("model: a: b"), @r#"
    X:2:9: error: the frontmatter is not YAML: mapping values are not allowed in this context
        2:9 ":" [invalid-yaml]
        hint: a text that holds `: ` needs quotes
    "#);
    insta::assert_snapshot!(mistakes("max_visits 3\nmodel: b"), @r#"
    X:3:6: error: the frontmatter is not YAML: mapping values are not allowed in this context
        3:6 ":" [invalid-yaml]
        hint: the line above has no colon: write `KEY: VALUE`
    "#);
    insta::assert_snapshot!(mistakes("- a\n- b"), @r#"
    X:2:1: error: the frontmatter must be a map, found a list
        2:1 "- a\n- b" [wrong-type]
    "#);
    insta::assert_snapshot!(mistakes("just text"), @r#"
    X:2:1: error: the frontmatter must be a map, found a text
        2:1 "just text" [wrong-type]
    "#);
    insta::assert_snapshot!(mistakes("model: ü\neffort: *ü"), @r#"
    X:3:9: error: the frontmatter is not YAML: while parsing node, found unknown anchor
        3:9 "*" [invalid-yaml]
    "#);
    insta::assert_snapshot!(mistakes(&format!("model: {}", "x".repeat(keys::LARGEST))), @r#"
    X:2:1: error: the frontmatter is larger than 64 KiB
        2:1 "" [frontmatter-too-large]
    "#);
    // One line break before the end of the block belongs to it.
    let largest = "x".repeat(keys::LARGEST - "model: \n".len());
    assert_eq!(front(&format!("model: {largest}")).model, Some(largest));
    let many = vec!["{tag: goto}"; 1_001].join(", ");
    let shown = mistakes(&format!("allowed_transitions: [{many}]"));
    insta::assert_snapshot!(shown.lines().next().unwrap(), @"X:2:22: error: `allowed_transitions` has 1001 entries; at most 1000 are read");
}

#[test]
fn wrong_yaml_tags_of_collections_are_refused() {
    assert_eq!(front("allow: !!seq [Read]").allow, ["Read"]);
    assert_eq!(front("allow: ! [Read]").allow, ["Read"]);
    assert_eq!(front("!!map {model: opus}").model.as_deref(), Some("opus"));
    for yaml in ["allow: !!map [Read]", "allow: !list [Read]", "!!set {model: opus}"] {
        let reported = mistakes(yaml);
        assert!(
            reported.contains("means nothing here") && reported.contains("[invalid-yaml]"),
            "{reported}"
        );
    }
}

#[test]
fn the_largest_frontmatter_is_read() {
    let note = "x".repeat(keys::LARGEST - "model: opus # \n".len());
    assert_eq!(front(&format!("model: opus # {note}")).model.as_deref(), Some("opus"));
}

#[test]
fn an_open_frontmatter_is_refused() {
    let prompt = parse("---\nmodel: x\nbody");
    assert_eq!((prompt.front, prompt.body), (Frontmatter::default(), "---\nmodel: x\nbody"));
    insta::assert_snapshot!(prompt.diagnostics[0].clone().in_file("X"), @"X:1:1: error: the frontmatter is never closed");
}

proptest! {
    #[test]
    fn parsing_frontmatter_never_panics(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("---\n".to_owned()),
                Just("allowed_transitions:".to_owned()),
                Just("allowed_targets:".to_owned()),
                Just("\n  - {tag: goto, target: A}".to_owned()),
                Just("\n  goto: [A, {child: B, return: C}]".to_owned()),
                Just("&a [*a, ".to_owned()),
                Just("*a".to_owned()),
                Just("!!binary ".to_owned()),
                Just("? [a]\n: b\n".to_owned()),
                Just("%TAG ! x\n".to_owned()),
                Just("\r\n".to_owned()),
                Just("\u{feff}".to_owned()),
                Just("model: |2-\n".to_owned()),
                Just("\"\\x".to_owned()),
                "(model|then|budget|max_visits|timeout|description): \\PC{0,10}\n",
                "[\\[\\]{}:,&*!|>'\"%@`#\\-? \t\n~äa1.]{0,12}",
            ],
            0..24,
        ),
        fenced: bool,
    ) {
        let inner = pieces.concat();
        let text = if fenced { format!("---\n{inner}\n---\nbody") } else { inner };
        let prompt = parse(&text);
        for diagnostic in prompt.diagnostics {
            let span = diagnostic.place.expect("every mistake has a place").span;
            prop_assert!(text.get(span).is_some());
        }
        for mention in prompt.mentions {
            prop_assert!(text.get(mention.span).is_some());
        }
    }
}
