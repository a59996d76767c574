//! The table of all settings. To add a setting, add a row here and a field to [`Settings`].
//!
//! Everything else follows from the row. For example, the row
//!
//! ```text
//! max_parallel: Slot<u32> = field!(COUNT_FROM_ONE, max_parallel)
//!     .flag("N", "Run at most this many turns at the same time");
//! ```
//!
//! expands to:
//!
//! | part | result |
//! |---|---|
//! | field of [`Layer`] | `max_parallel: Slot<u32>`: value and origin; the latest layer wins |
//! | key in files | `max_parallel = 8`; `COUNT_FROM_ONE` refuses 0 and texts |
//! | variable | `RAYMOND_MAX_PARALLEL=8` |
//! | flag | `--max-parallel N`, with the help of `.flag` and the default of [`Settings`] |
//! | row of `raymond config` | `max_parallel  8  raymond.toml:2`, or the default of [`Settings`] |
//! | effect | `field!` copies the value to `Settings::max_parallel` of a run |
//! | next command | a command that starts the run again repeats `--max-parallel 8` |

use std::path::PathBuf;

use clap::{Arg, ArgMatches};
use raymond_backends::headless::ClientTimeouts;
use raymond_backends::{registry, scripted};
use raymond_core::budget::Micros;
use raymond_core::ids::BackendName;
use raymond_core::prices::Price;
use raymond_core::run::Settings;
use raymond_core::run::permissions::{Checks, joined};
use raymond_core::run::settings::{ConfigHome, InterruptedScripts, OnLostSession};
use raymond_core::time::Span;

use super::kind::{
    AGENT, CAP, COMMAND, COUNT, COUNT_FROM_ONE, DURATION, ENTRY, PATH, PRICE, SWITCH, TEXT,
    VARIABLES, choice,
};
use super::layer::{Field as _, Named, SettingOrigin, Slot, Sourced, SourcedList};
use super::row::SettingRow;
use super::setting::{FlagDefault, RunFlag, Setting, SettingSources, field};
use super::value::{ConfigValue, ValueError};

// The headings of the flags in the help, in the order of the table.
const MONEY: &str = "Money";
const CLIENT: &str = "Models and clients";
const LIMITS: &str = "Limits";
const FAILURES: &str = "Failures";
const PERMISSIONS: &str = "Permissions";

/// A setting and its field in [`Layer`], independent of the type of its values.
pub(super) struct SettingKey {
    pub(super) name: &'static str,
    pub(super) sources: SettingSources,
    pub(super) argument: fn(FlagDefault) -> Option<Arg>,
    pub(super) read:
        fn(&mut Layer, ConfigValue<'_>, &str, &SettingOrigin) -> Result<(), ValueError>,
    pub(super) read_flag: fn(&mut Layer, &ArgMatches),
    pub(super) rows: fn(&Layer) -> Vec<SettingRow>,
    pub(super) apply: fn(&Layer, &mut Settings),
    /// Returns the flags that a command needs to start a run with the same settings.
    pub(super) repeated_flags: fn(&Settings) -> Vec<RunFlag>,
}

/// Declares the type [`Layer`] and the table [`KEYS`] from rows `name: field type = setting`.
macro_rules! keys {
    ($($name:ident: $field:ident<$type:ty> = $setting:expr;)*) => {
        /// The settings of one layer (a file, the environment or the flags), or of several
        /// combined layers.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub(crate) struct Layer {
            $(pub(crate) $name: $field<$type>,)*
        }

        impl Layer {
            fn merged(self, lower: Self) -> Self {
                Self { $($name: self.$name.over(lower.$name),)* }
            }
        }

        /// Every key, in the order of the documentation.
        pub(super) const KEYS: &[SettingKey] = &[$({
            // The name comes from the field, so that key, variable and flag cannot differ from it.
            const SETTING: Setting<$type> = $setting.name(stringify!($name));
            SettingKey {
                name: SETTING.name,
                sources: SETTING.sources,
                argument: |default| SETTING.argument(default),
                read: |layer, given, name, origin| {
                    SETTING.read(&mut layer.$name, given, name, origin)
                },
                read_flag: |layer, matches| SETTING.read_flag(&mut layer.$name, matches),
                rows: |layer| SETTING.rows(&layer.$name),
                apply: |layer, settings| SETTING.apply(&layer.$name, settings),
                repeated_flags: |settings| SETTING.repeated_flags(settings),
            }
        },)*];
    };
}

keys! {
    budget: Slot<Option<Micros>> = field!(CAP, budget)
        .heading(MONEY).flag("USD|none", "Stop at this total cost in US dollars, or `none`\n\n\
            With `resume` it is the new total. Clients check the cap after they have spent, so \
            the overshoot is at most one model request for each running turn. With Codex, \
            further requests may start before Raymond interrupts it (docs/codex.md).");
    strict_budget: Slot<bool> = field!(SWITCH, strict_budget)
        .heading(MONEY).flag("", "Charge a turn's full budget share unless its client reported the cost\n\n\
            The budget share is the part of the cap that Raymond reserves for one turn. Codex \
            never reports costs, so each of its turns is charged its full share.");
    model: Slot<String> = field!(TEXT, model).heading(CLIENT).flag("MODEL", "Set the default model").unset("chosen by client");
    effort: Slot<String> = field!(TEXT, effort).heading(CLIENT).flag("EFFORT", "Set the default effort").unset("chosen by client");
    backend: Slot<String> = Setting::new(TEXT)
        .heading(CLIENT).flag("BACKEND", "Set the default backend (prompts and agent steps)")
        .alias("agent")
        // The layer keeps the text as given, because `settings::check_backend` reports an unknown
        // name with its origin.
        .default(|settings| Some(settings.backend.to_string()))
        .put(|settings, name| settings.backend = BackendName::new(name.as_str()))
        // Only a given flag: `--replies` implies a backend, which must not appear as a flag.
        .repeated(|settings| {
            settings.start_flags.backend.iter().map(ToString::to_string).collect()
        });
    // `settings` puts the path, because the file must exist.
    replies: Slot<PathBuf> = Setting::new(PATH)
        .heading(CLIENT).flag("FILE", "Play replies from this file (implies `--backend scripted`)")
        .repeated(|settings| settings.replies.iter().map(PathBuf::from).collect());
    max_parallel: Slot<u32> = field!(COUNT_FROM_ONE, max_parallel)
        .heading(LIMITS).flag("N", "Run at most this many turns at the same time");
    max_agents: Slot<u32> = field!(COUNT_FROM_ONE, max_agents)
        .heading(LIMITS).flag("N", "Allow at most this many live workers");
    reminders: Slot<u32> = field!(COUNT, reminders)
        .heading(LIMITS).flag("N", "Send at most this many reminders per visit");
    retries: Slot<u32> = field!(COUNT, retries)
        .heading(LIMITS).flag("N", "Retry at most this many times per visit");
    timeout: Slot<Span> = field!(DURATION, timeout)
        .heading(LIMITS).flag("DURATION", "End a turn that takes longer, such as 10m")
        .unset("none");
    idle_timeout: Slot<Span> = field!(DURATION, idle_timeout)
        .heading(LIMITS).flag("DURATION", "End a turn after this time without output\n\n\
            Scripts have no limit unless you set one.")
        .default(|_| {
            // The setting is `None` without a value, and then the client uses its own default,
            // which is shown here.
            let idle = ClientTimeouts::default().idle.as_millis();
            Some(Span(idle.try_into().unwrap_or(u64::MAX)))
        });
    no_wait: Slot<bool> = field!(SWITCH, no_wait)
        .heading(FAILURES).flag("", "Exit with code 4 instead of waiting (for a timed question: code 3)");
    on_lost_session: Slot<OnLostSession> = field!(choice(), on_lost_session)
        .heading(FAILURES).flag("WHAT", "Choose what to do if a client lost its session");
    interrupted_scripts: Slot<InterruptedScripts> = field!(choice(), interrupted_scripts)
        .heading(FAILURES).flag("WHAT", "Choose what to do with an interrupted script");
    permission_mode: Slot<String> = field!(TEXT, permissions.mode)
        .heading(PERMISSIONS).flag("MODE", "Set the default permission mode of clients")
        .default(|_| Some(registry::DEFAULT_PERMISSION_MODE.to_owned()));
    // Lists add up across layers and resumes: an earlier `--allow` stays until the end of the run.
    allow: SourcedList<String> = Setting::new(ENTRY)
        .heading(PERMISSIONS).flag("TOOL", "Allow clients this tool, such as 'Bash(cargo test:*)' (repeatable)")
        .put(|settings, tool| add(&mut settings.permissions.allow, tool))
        .repeated(|settings| settings.permissions.allow.clone());
    deny: SourcedList<String> = Setting::new(ENTRY)
        .heading(PERMISSIONS).flag("TOOL", "Deny clients this tool, even if --allow names it (repeatable)")
        .put(|settings, tool| add(&mut settings.permissions.deny, tool))
        .repeated(|settings| settings.permissions.deny.clone());
    // Only a flag: neither a file of a cloned project nor a command that Raymond suggests may
    // disable permission checks.
    dangerously_skip_permissions: Slot<bool> = Setting::new(SWITCH)
        .heading(PERMISSIONS).flag("", "Let clients use every tool without asking for permission")
        .sources(SettingSources::FlagOnly)
        .put(|settings, _| settings.permissions.checks = Checks::Skipped);
    environment: Slot<Option<Vec<String>>> = field!(VARIABLES, environment);
    config_home: Slot<ConfigHome> = field!(choice(), config_home);
    // No setting of a run: `known_projects` reads it when a run starts.
    registry: Slot<bool> = Setting::new(SWITCH).default(|_| Some(true));
    // The commands of clients, by the name of their backend.
    clients: Named<String> = Setting::new(COMMAND).sources(SettingSources::Clients);
    // `backends` puts the prices into the settings, because a run keeps those of its start.
    prices: Named<Price> = Setting::new(PRICE)
        .sources(SettingSources::Tables { example: "write [prices.\"model\"] with input and output" });
    // The workspaces of agents that call the tool, by agent id.
    agents: Named<PathBuf> = Setting::new(AGENT)
        .sources(SettingSources::Tables { example: "write [agents.\"id\"] with workspace" });
}

impl Layer {
    /// Puts this layer over `lower`: its values win, lists add up.
    #[must_use]
    pub(crate) fn over(mut self, lower: Self) -> Self {
        // `replies` implies the scripted backend, unless the same layer names another backend.
        // Decided layer by layer, before they are merged: a `--replies` flag must win over a
        // `backend` in a file.
        if let (None, Some(Sourced { origin, .. })) = (&self.backend, &self.replies) {
            let (value, origin) = (scripted::NAME.to_owned(), origin.clone());
            self.backend = Some(Sourced { value, origin });
        }
        self.merged(lower)
    }

    /// Puts the values of this layer into the settings of a run.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        for key in KEYS {
            (key.apply)(self, settings);
        }
    }
}

impl SettingKey {
    /// Whether a file may contain the key.
    pub(super) fn is_in_files(&self) -> bool {
        self.sources != SettingSources::FlagOnly
    }
}

/// A name that a user writes, and the key that it belongs to.
pub(super) struct NamedKey {
    pub(super) name: &'static str,
    pub(super) key: &'static SettingKey,
}

impl NamedKey {
    /// Returns all names. The name of a client is the key of its command.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        KEYS.iter().flat_map(|key| key.sources.names(key.name).map(|name| Self { name, key }))
    }

    /// Returns the environment variable, such as `RAYMOND_BUDGET`.
    pub(super) fn variable(&self) -> Option<String> {
        // Tables do not fit into one variable.
        let has_variable =
            matches!(self.key.sources, SettingSources::All | SettingSources::Clients);
        has_variable.then(|| format!("RAYMOND_{}", self.name.to_ascii_uppercase()))
    }
}

/// Adds a tool to a list that names each tool once.
fn add(tools: &mut Vec<String>, tool: &String) {
    *tools = joined(tools, std::slice::from_ref(tool));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_key() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (_, table) = page.split_once("\n## Keys\n").unwrap();
        let rows = table.split("\n## ").next().unwrap().lines();
        let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split("` |").next());
        let mut listed: Vec<&str> = cells.flat_map(|cell| cell.split("`, `")).collect();
        let in_files = NamedKey::all().filter(|named| named.key.is_in_files());
        let mut known: Vec<&str> = in_files.map(|named| named.name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known, "docs/configuration.md lists other keys");
    }
}
