use insta::assert_snapshot;

use super::*;
use crate::protocol::{Need, Untagged};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Allows these tags with any state. The list is fixed, so that a new tag changes no snapshot.
fn anything() -> Allowance {
    use TagName::{Call, Fork, Function, Goto, Reset, Result};
    let tags = [Goto, Reset, Call, Function, Fork, Result];
    let choices = tags.map(|tag| Choice { tag, routes: Routes::Any }).to_vec();
    Allowance { choices, states: strings(&["START.md", "REVIEW.md", "publish.sh"]) }
}

fn only(tag: TagName, routes: &[(Option<&str>, Option<&str>)]) -> Choice {
    let route = |(target, then): &(Option<&str>, Option<&str>)| Route {
        target: target.map(str::to_owned),
        then: then.map(str::to_owned),
        wait: None,
    };
    Choice { tag, routes: Routes::Only(routes.iter().map(route).collect()) }
}

fn strict() -> Allowance {
    Allowance {
        choices: vec![
            only(TagName::Goto, &[(Some("REVIEW.md"), None)]),
            only(TagName::Call, &[(Some("RESEARCH"), Some("SUMMARY")), (Some("ASK"), None)]),
            Choice { tag: TagName::Result, routes: Routes::Any },
        ],
        states: strings(&["REVIEW.md", "RESEARCH.md", "SUMMARY.md", "ASK.md"]),
    }
}

fn single() -> Allowance {
    Allowance {
        choices: vec![only(TagName::Goto, &[(Some("REVIEW.md"), None)])],
        states: strings(&["REVIEW.md"]),
    }
}

fn malformed(tag: TagName, why: &str) -> Malformed {
    let why = why.to_owned();
    Malformed { tag, why }
}

fn no_tag() -> Fault {
    Fault::NoTag(Untagged { last_line: "Done.".to_owned(), ..Untagged::default() })
}

#[test]
fn message_without_a_tag() {
    assert_snapshot!(reminder(&no_tag(), &anything()), @r#"
    Your message contains no transition tag, so the workflow cannot continue. (In code, a tag counts only if it is alone on its lines.)

    Do not repeat finished work. End your next message with exactly one of these tags, written as plain text, not in code:

    <goto>STATE</goto>
    <reset>STATE</reset>
    <call return="RETURN">STATE</call>
    <function return="RETURN">STATE</function>
    <fork next="NEXT">STATE</fork>
    <result>YOUR RESULT</result>

    Several <fork> tags are allowed together if all have the same next.

    STATE, RETURN, NEXT: one of START.md, REVIEW.md, publish.sh
    "#);
    assert_snapshot!(reminder(&no_tag(), &strict()), @r#"
    Your message contains no transition tag, so the workflow cannot continue. (In code, a tag counts only if it is alone on its lines.)

    Do not repeat finished work. End your next message with exactly one of these tags, written as plain text, not in code:

    <goto>REVIEW.md</goto>
    <call return="SUMMARY">RESEARCH</call>
    <call return="RETURN">ASK</call>
    <result>YOUR RESULT</result>

    RETURN: one of REVIEW.md, RESEARCH.md, SUMMARY.md, ASK.md
    "#);
    assert_snapshot!(reminder(&no_tag(), &single()), @r#"
    Your message contains no transition tag, so the workflow cannot continue. (In code, a tag counts only if it is alone on its lines.)

    Do not repeat finished work. End your next message with this tag, written as plain text, not in code:

    <goto>REVIEW.md</goto>
    "#);
}

#[test]
fn several_tags() {
    let fault =
        Fault::SeveralTags { tags: vec![TagName::Goto, TagName::Goto, TagName::Result], count: 3 };
    assert_snapshot!(reminder(&fault, &strict()), @r#"
    Your message contains 3 transition tags (goto, goto, result), and only one can be followed. Where you mean a tag itself, describe it, do not write it.

    Do not repeat finished work. End your next message with exactly one of these tags, written as plain text, not in code:

    <goto>REVIEW.md</goto>
    <call return="SUMMARY">RESEARCH</call>
    <call return="RETURN">ASK</call>
    <result>YOUR RESULT</result>

    RETURN: one of REVIEW.md, RESEARCH.md, SUMMARY.md, ASK.md
    "#);
}

#[test]
fn malformed_tags() {
    let one = Fault::Malformed(vec![malformed(TagName::Call, "attribute `return` is missing")]);
    assert_snapshot!(complaint(&one), @"The <call> tag of your message cannot be read: attribute `return` is missing.");
    let many = Fault::Malformed(vec![malformed(TagName::Goto, "it names no state"); 7]);
    assert_snapshot!(complaint(&many), @r#"
    The tags of your message cannot be read:
    - <goto>: it names no state
    - <goto>: it names no state
    - <goto>: it names no state
    - <goto>: it names no state
    - <goto>: it names no state
    - … and 2 more
    "#);
}

#[test]
fn a_result_that_was_mentioned() {
    let why = crate::protocol::tags::TagProblem::OpenedTwice(TagName::Result).to_string();
    let fault = Fault::Malformed(vec![malformed(TagName::Result, &why)]);
    assert_snapshot!(reminder(&fault, &strict()), @r#"
    The <result> tag of your message cannot be read: `<result` appears twice before `</result>`, so the payload is uncertain; where you mean the tag itself, describe it, do not write it.

    Do not repeat finished work. End your next message with exactly one of these tags, written as plain text, not in code:

    <goto>REVIEW.md</goto>
    <call return="SUMMARY">RESEARCH</call>
    <call return="RETURN">ASK</call>
    <result>YOUR RESULT</result>

    RETURN: one of REVIEW.md, RESEARCH.md, SUMMARY.md, ASK.md
    "#);
}

#[test]
fn a_target_that_does_not_resolve() {
    let fault = Fault::Unresolved {
        tag: TagName::Goto,
        attribute: None,
        target: "REVEIW".to_owned(),
        why: "there is no state \"REVEIW\"; did you mean \"REVIEW.md\"?".to_owned(),
    };
    assert_snapshot!(complaint(&fault), @r#"The <goto> tag of your message leads nowhere: there is no state "REVEIW"; did you mean "REVIEW.md"?"#);
    let fault = Fault::Unresolved {
        tag: TagName::Goto,
        attribute: None,
        target: "X".to_owned(),
        why: "\"X\" cannot be run on this platform".to_owned(),
    };
    assert_snapshot!(complaint(&fault), @r#"The <goto> tag of your message leads nowhere: "X" cannot be run on this platform."#);
}

#[test]
fn forks_with_different_next_states() {
    let states = strings(&["MERGE.md", "REVIEW.md"]);
    assert_snapshot!(complaint(&Fault::NextDiffers { states }), @"All fork tags of one message, and the goto tag beside them, must continue at the same state; yours name MERGE.md and REVIEW.md.");
}

#[test]
fn a_directory_that_does_not_exist() {
    let fault = Fault::NoDirectory { tag: TagName::Reset, cd: "../other".to_owned() };
    assert_snapshot!(complaint(&fault), @r#"The <reset> tag of your message names a directory in `cd` that does not exist: "../other"."#);
}

#[test]
fn forbidden_by_the_policy() {
    let forbidden = |target: Option<&str>| Fault::Forbidden {
        tag: TagName::Fork,
        target: target.map(str::to_owned),
        follower: None,
    };
    assert_snapshot!(complaint(&forbidden(None)), @"The <fork> tag of your message is not allowed here.");
    assert_snapshot!(complaint(&forbidden(Some("WORKER.md"))), @r#"The <fork> tag of your message, with the state "WORKER.md", is not allowed here."#);
    assert_snapshot!(complaint(&forbidden(Some(&"x".repeat(500)))), @r#"The <fork> tag of your message, with the state "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…", is not allowed here."#);
}

#[test]
fn denied_tools() {
    let tools = strings(&["Bash(cargo test)", "WebFetch"]);
    assert_snapshot!(reminder(&Fault::Denied { tools }, &single()), @r#"
    You were denied these tools: Bash(cargo test), WebFetch. Reach the goal without them, or say what is missing.

    Do not repeat finished work. End your next message with this tag, written as plain text, not in code:

    <goto>REVIEW.md</goto>
    "#);
}

#[test]
fn a_policy_that_allows_nothing() {
    let nothing = Allowance { choices: Vec::new(), states: strings(&["A.md"]) };
    assert_snapshot!(reminder(&no_tag(), &nothing), @r#"
    Your message contains no transition tag, so the workflow cannot continue. (In code, a tag counts only if it is alone on its lines.)

    The policy of this state allows no tag: say so, and stop.
    "#);
}

#[test]
fn long_lists_are_shortened() {
    let states: Vec<String> = (0..45).map(|n| format!("S{n}.md")).collect();
    let text = reminder(&no_tag(), &Allowance::everything(states.clone()));
    assert!(text.contains("S38.md, S39.md, … and 5 more\n"), "{text}");
    let routes: Vec<Route> = states
        .iter()
        .map(|state| Route { target: Some(state.clone()), then: None, wait: None })
        .collect();
    let allowed = Allowance {
        choices: vec![
            Choice { tag: TagName::Goto, routes: Routes::Only(routes) },
            Choice { tag: TagName::Result, routes: Routes::Any },
        ],
        states,
    };
    let text = reminder(&no_tag(), &allowed);
    let end = "<goto>S19.md</goto>\n… and 25 more <goto> tags\n<result>YOUR RESULT</result>\n";
    assert!(text.ends_with(end), "{text}");
    // As many as fit are all there is to say.
    let routes: Vec<Route> = (0..40)
        .map(|n| Route { target: Some(format!("S{n}.md")), then: None, wait: None })
        .collect();
    let allowed = Allowance {
        choices: vec![Choice { tag: TagName::Goto, routes: Routes::Only(routes) }],
        states: Vec::new(),
    };
    let text = reminder(&no_tag(), &allowed);
    assert!(text.ends_with("<goto>S38.md</goto>\n<goto>S39.md</goto>\n"), "{text}");
}

#[test]
fn shown_tags_can_be_written_back() {
    use crate::protocol::scan::scan;
    use crate::protocol::source::Source;
    for allowed in [anything(), strict(), single()] {
        for (tag, route) in allowed.choices.iter().flat_map(routes) {
            let text = written(tag, route);
            let found: Vec<_> = scan(&text, Source::Message).collect();
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].tag.is_ok(), "{text}");
        }
    }
}

#[test]
fn goto_with_wait_names_its_forks() {
    let wait = Route { target: Some("END".to_owned()), then: None, wait: Some(Need::All) };
    let goto = Choice { tag: TagName::Goto, routes: Routes::Only(vec![wait]) };
    let choices = vec![goto, only(TagName::Fork, &[(Some("W"), Some("END"))])];
    let text = reminder(&no_tag(), &Allowance { choices, states: Vec::new() });
    let expected =
        "A <goto> with wait needs <fork> tags in the same message: it waits for their workers.";
    assert!(text.contains(expected), "{text}");
}
