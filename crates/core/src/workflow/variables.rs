//! The names of variables in a workflow: those that no state uses, and those that nothing sets.
//!
//! A variable that no state uses is probably a mistyped `--var`. It is an error, because the prompt
//! that should use it would be sent with an unfilled `{{name}}`. A name in a prompt that nothing
//! sets is only a warning, because a fork may set any attribute. The values of names in one visit
//! are in [`super::template::bindings`].

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostic;
use crate::extension::StateKind;
use crate::text::nearest;

use super::definition::{Reachability, State};
use super::environment::variable_of;
use super::template::bindings::BUILT_IN;
use super::template::{Placeholder, placeholders};

/// The start of the names of variables in the environment of a script.
const PREFIX: &[u8] = b"RAYMOND_VAR_";

/// Returns an error for each variable that no state uses.
pub fn unused(vars: &BTreeMap<String, String>, checked: &Reachability<'_>) -> Vec<Diagnostic> {
    let mut uses = Uses::default();
    for state in checked.definition.states.values() {
        uses.add(state);
    }
    // A state that could not be read completely may use any variable.
    if uses.any || !checked.is_complete() {
        return Vec::new();
    }
    let is_used = |name: &String| {
        uses.names.contains(name.as_str()) || uses.variables.contains(&*variable_of(name))
    };
    vars.keys().filter(|name| !is_used(name)).map(|name| uses.mistake(name)).collect()
}

/// The variables that the states of a workflow use.
#[derive(Default)]
struct Uses<'d> {
    /// Names in prompts.
    names: BTreeSet<&'d str>,
    /// Environment variables in scripts.
    variables: BTreeSet<String>,
    /// Whether a script reads variables whose names it computes.
    any: bool,
}

impl<'d> Uses<'d> {
    fn add(&mut self, state: &'d State) {
        match state.kind {
            StateKind::Prompt => {
                let names = placeholders(&state.body).map(|place| place.name);
                self.names.extend(names.filter(|name| !BUILT_IN.contains(name)));
            }
            StateKind::Script => self.add_script(&state.source.bytes),
        }
    }

    fn add_script(&mut self, script: &[u8]) {
        for start in memchr::memmem::find_iter(script, PREFIX) {
            let rest = &script[start + PREFIX.len()..];
            let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let name: Vec<u8> = rest.iter().take_while(is_part).copied().collect();
            // `${!RAYMOND_VAR_*}` and `env | grep ^RAYMOND_VAR_` read every variable.
            self.any |= name.is_empty();
            let variable = [PREFIX, &name].concat();
            self.variables.insert(String::from_utf8_lossy(&variable).into_owned());
        }
    }

    fn mistake(&self, name: &str) -> Diagnostic {
        let of_scripts = self.variables.iter().map(|name| name[PREFIX.len()..].to_lowercase());
        let known: BTreeSet<String> =
            self.names.iter().map(|name| (*name).to_owned()).chain(of_scripts).collect();
        let hint = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("a prompt uses it as {{{{{name}}}}}, a script as ${}", variable_of(name))
            }
        };
        let message = format!("no state uses the variable `{name}`");
        Diagnostic::error("unused-variable", message).hint(hint)
    }
}

/// Returns a warning for each name in a reachable prompt that nothing in the workflow sets.
pub fn undefined(vars: &BTreeMap<String, String>, checked: &Reachability<'_>) -> Vec<Diagnostic> {
    let states = &checked.definition.states;
    let prompts: Vec<&State> =
        checked.prompts().filter(|state| checked.is_reached(&state.name)).collect();
    let is_open = |name: &str| !BUILT_IN.contains(&name) && !vars.contains_key(name);
    let open: BTreeSet<&str> = prompts
        .iter()
        .flat_map(|state| placeholders(&state.body))
        .map(|place| place.name)
        .filter(|name| is_open(name))
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    let mut mentioned = BTreeSet::new();
    for state in states.values() {
        mention(&String::from_utf8_lossy(&state.source.bytes), &open, &mut mentioned);
    }
    let mut found = Vec::new();
    for state in prompts {
        // `main` enters the first state without attributes.
        let is_entry = state.name == checked.definition.entry;
        let mut seen = BTreeSet::new();
        let unset = placeholders(&state.body).filter(|place| {
            let is_unset = is_entry || !mentioned.contains(place.name);
            is_open(place.name) && is_unset && seen.insert(place.name)
        });
        let names = vars.keys().map(String::as_str).chain(BUILT_IN);
        found.extend(unset.map(|place| warning(checked, state, &place, names.clone())));
    }
    found
}

/// Adds the words of a text that are open names, except those in placeholders: an attribute of a
/// fork is written somewhere, for example in an example of the tag.
fn mention<'n>(text: &str, open: &BTreeSet<&'n str>, mentioned: &mut BTreeSet<&'n str>) {
    let mut rest = 0;
    let spans = placeholders(text).map(|place| place.span);
    for span in spans.chain(std::iter::once(text.len()..text.len())) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let words = text[rest..span.start].split(|c| !is_part(c));
        mentioned.extend(words.filter_map(|word| open.get(word)));
        rest = span.end;
    }
}

fn warning<'n>(
    checked: &Reachability<'_>,
    state: &State,
    place: &Placeholder<'_>,
    names: impl Iterator<Item = &'n str>,
) -> Diagnostic {
    let name = place.name;
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean {{{{{near}}}}}?"),
        None => format!("set the variable `{name}`, or pass it as an attribute of a fork"),
    };
    let text = String::from_utf8_lossy(&state.source.bytes);
    // The body is the end of the file.
    let start = text.len() - state.body.len();
    let warning = Diagnostic::warning("undefined-name", format!("nothing sets {{{{{name}}}}}"));
    let span = start + place.span.start..start + place.span.end;
    checked.placed(warning.hint(hint).at(&text, span), &state.name)
}

#[cfg(test)]
mod tests {
    use super::super::definition::fixture::file;
    use super::super::{Definition, EntryPoint};
    use super::*;
    use crate::extension::Platform;

    type Check = fn(&BTreeMap<String, String>, &Reachability<'_>) -> Vec<Diagnostic>;

    fn check(check: Check, files: &[(&str, &str)], vars: &[&str], expected: &[&str]) {
        let vars = vars.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let scope = files.iter().map(|(name, text)| file(name, text)).collect();
        let parsed = Definition::parse(scope, &EntryPoint::Entry, Platform::Unix).unwrap();
        let found = check(&vars, &Reachability::of(&parsed.definition));
        let shown = |found: Diagnostic| format!("{found}; {}", found.hint.clone().unwrap());
        let shown: Vec<String> = found.into_iter().map(shown).collect();
        assert_eq!(shown, expected, "{files:?} {vars:?}");
    }

    #[test]
    fn every_variable_is_used_by_a_state() {
        let prompt = &[("START.md", "about {{ topic }} in {{state}}")];
        check(unused, prompt, &["topic"], &[]);
        let near = "error: no state uses the variable `tpoic`; did you mean `topic`?";
        check(unused, prompt, &["tpoic"], &[near]);
        let far = "error: no state uses the variable `x-y`; a prompt uses it as {{x-y}}, a script \
                   as $RAYMOND_VAR_X_Y";
        check(unused, prompt, &["topic", "x-y"], &[far]);
        let script = |text| [("START.sh", text)];
        check(unused, &script("echo ${RAYMOND_VAR_X_Y:-1}"), &["x-y"], &[]);
        let near = "error: no state uses the variable `dept`; did you mean `depth`?";
        check(unused, &script("echo $RAYMOND_VAR_DEPTH"), &["dept"], &[near]);
        check(unused, &script("env | grep ^RAYMOND_VAR_"), &["any"], &[]);
        check(unused, &script("true"), &[], &[]);
    }

    #[test]
    fn names_that_nothing_sets_have_a_place() {
        let start = |text| ("START.md", text);
        let unset = |place: &str, name: &str, hint: &str| {
            format!("{place}: warning: nothing sets {{{{{name}}}}}; {hint}")
        };
        let free = "set the variable `item`, or pass it as an attribute of a fork";
        let first = unset("START.md:4:3", "item", free);
        check(
            undefined,
            &[start("---\nmodel: x\n---\na {{item}} {{item}} {{input}}")],
            &[],
            &[&first],
        );
        check(undefined, &[start("{{item}}")], &["item"], &[]);
        let near = unset("START.md:1:1", "itme", "did you mean {{item}}?");
        check(undefined, &[start("{{itme}}{{item}}")], &["item"], &[&near]);
        // Only the first state is certainly entered without attributes.
        let worker = ("WORKER.md", "{{item}}");
        check(undefined, &[start("<fork next=\"N\" item=\"1\">WORKER</fork>"), worker], &[], &[]);
        let unset = unset("WORKER.md:1:1", "item", free);
        check(undefined, &[start("fork with items"), worker], &[], &[&unset]);
        let closed = start("---\nallowed_tags: [result]\n---\nx");
        check(undefined, &[closed, worker], &[], &[]);
    }
}
