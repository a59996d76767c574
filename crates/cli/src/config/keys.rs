//! The table of all settings. To add a setting, add a row here and a field to [`Settings`].
//!
//! Everything else follows from the row: the key in files, the environment variable, the flag and
//! its help, the row of `raymond config`, and the effect on the settings of a run. A key `max_agents`
//! has the variable `RAYMOND_MAX_AGENTS` and the flag `--max-agents`.

mod key;

use std::path::PathBuf;

use raymond_backends::claude::DEFAULT_MODE;
use raymond_backends::headless::ClientTimeouts;
use raymond_backends::{claude, codex, scripted};
use raymond_core::budget::Micros;
use raymond_core::ids::BackendName;
use raymond_core::prices::Price;
use raymond_core::run::Settings;
use raymond_core::run::permissions::{Checks, joined};
use raymond_core::run::settings::{ConfigHome, InterruptedScripts, OnLostSession};
use raymond_core::time::Span;

use crate::failure::Failure;
use crate::paths::absolute;

use super::kind::{
    AGENT, CAP, COMMAND, COUNT, COUNT_FROM_ONE, DURATION, ENTRY, PATH, PRICE, SWITCH, TEXT,
    VARIABLES, choice,
};
use super::layer::{Field as _, List, Named, Slot, Sourced};
use super::setting::{Flag, Setting, Sources, field};

pub(super) use key::Key;
use key::KeyOf;

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
        pub(super) const KEYS: &[&dyn Key] = &[
            $(&KeyOf::<$type, $field<$type>> {
                name: stringify!($name),
                setting: $setting,
                field: |layer| &layer.$name,
                field_mut: |layer| &mut layer.$name,
            },)*
        ];
    };
}

keys! {
    budget: Slot<Option<Micros>> = Setting {
        flag: Some(Flag {
            more: Some(
                "With `resume` it is the new total. Clients check the cap after they have spent, \
                 so the overshoot is at most one model request for each running turn. With Codex a \
                 second request may have started, which Raymond interrupts (docs/codex.md).",
            ),
            ..Flag::new(
                "USD|none",
                "Stop at this total cost in US dollars, or `none` [default: 10.00]",
            )
        }),
        ..field!(CAP, budget)
    };
    strict_budget: Slot<bool> = Setting {
        flag: Some(Flag {
            more: Some("With Codex this is always the case."),
            ..Flag::new("", "Charge a turn's full budget share when its cost is unknown")
        }),
        ..field!(SWITCH, strict_budget)
    };
    model: Slot<String> = Setting {
        flag: Some(Flag::new("MODEL", "Set the default model")),
        ..field!(TEXT, model)
    };
    effort: Slot<String> = Setting {
        flag: Some(Flag::new("EFFORT", "Set the default effort")),
        ..field!(TEXT, effort)
    };
    backend: Slot<String> = Setting {
        flag: Some(Flag {
            alias: Some("agent"),
            ..Flag::new(
                "BACKEND",
                "Set the default backend of prompts and agent steps [default: claude]",
            )
        }),
        default: |settings| Some(settings.backend.to_string()),
        put: |settings, name| {
            settings.backend = BackendName::new(name.as_str());
            Ok(())
        },
        ..Setting::new(TEXT)
    };
    replies: Slot<PathBuf> = Setting {
        flag: Some(Flag::new(
            "FILE",
            "Play replies from this file (implies `--backend scripted`)",
        )),
        put: |settings, file| {
            settings.replies = Some(absolute(file)?);
            Ok(())
        },
        ..Setting::new(PATH)
    };
    max_parallel: Slot<u32> = Setting {
        flag: Some(Flag::new("N", "Run at most this many turns at the same time [default: 4]")),
        ..field!(COUNT_FROM_ONE, max_parallel)
    };
    max_agents: Slot<u32> = Setting {
        flag: Some(Flag::new("N", "Allow at most this many unfinished agents [default: 1000]")),
        ..field!(COUNT_FROM_ONE, max_agents)
    };
    reminders: Slot<u32> = Setting {
        flag: Some(Flag::new("N", "Send at most this many reminders per visit [default: 3]")),
        ..field!(COUNT, reminders)
    };
    retries: Slot<u32> = Setting {
        flag: Some(Flag::new("N", "Retry at most this many times per visit [default: 5]")),
        ..field!(COUNT, retries)
    };
    timeout: Slot<Span> = Setting {
        flag: Some(Flag::new(
            "DURATION",
            "End a turn that takes longer, such as 10m [default: none]",
        )),
        ..field!(DURATION, timeout)
    };
    idle_timeout: Slot<Span> = Setting {
        flag: Some(Flag::new(
            "DURATION",
            "End a turn that prints nothing for this long [default: 30m]",
        )),
        default: |_| {
            let idle = ClientTimeouts::default().idle.as_millis();
            Some(Span(idle.try_into().unwrap_or(u64::MAX)))
        },
        ..field!(DURATION, idle_timeout)
    };
    no_wait: Slot<bool> = Setting {
        flag: Some(Flag::new("", "Exit with code 4 instead of waiting for a usage limit")),
        ..field!(SWITCH, no_wait)
    };
    on_lost_session: Slot<OnLostSession> = Setting {
        flag: Some(Flag::new(
            "WHAT",
            "Choose what to do if the client has lost a session [default: fail]",
        )),
        ..field!(choice(), on_lost_session)
    };
    interrupted_scripts: Slot<InterruptedScripts> = Setting {
        flag: Some(Flag::new(
            "WHAT",
            "Choose what to do with an interrupted script [default: rerun]",
        )),
        ..field!(choice(), interrupted_scripts)
    };
    permission_mode: Slot<String> = Setting {
        flag: Some(Flag::new(
            "MODE",
            "Set the default permission mode of clients [default: acceptEdits]",
        )),
        default: |_| Some(DEFAULT_MODE.to_owned()),
        ..field!(TEXT, permissions.mode)
    };
    // Lists add up across layers and resumes: an earlier `--allow` stays until the end of the run.
    allow: List<String> = Setting {
        flag: Some(Flag::new(
            "TOOL",
            "Allow clients this tool, such as 'Bash(cargo test:*)' (repeatable)",
        )),
        put: |settings, tool| {
            add(&mut settings.permissions.allow, tool);
            Ok(())
        },
        ..Setting::new(ENTRY)
    };
    deny: List<String> = Setting {
        flag: Some(Flag::new(
            "TOOL",
            "Deny clients this tool, even if --allow names it (repeatable)",
        )),
        put: |settings, tool| {
            add(&mut settings.permissions.deny, tool);
            Ok(())
        },
        ..Setting::new(ENTRY)
    };
    dangerously_skip_permissions: Slot<bool> = Setting {
        flag: Some(Flag::new("", "Let clients use every tool without asking for permission")),
        sources: Sources::FlagOnly,
        put: |settings, _| {
            settings.permissions.checks = Checks::Skipped;
            Ok(())
        },
        ..Setting::new(SWITCH)
    };
    environment: Slot<Option<Vec<String>>> = field!(VARIABLES, environment);
    config_home: Slot<ConfigHome> = field!(choice(), config_home);
    claude: Slot<String> = Setting {
        sources: Sources::NotProject,
        default: |_| Some(claude::NAME.to_owned()),
        ..Setting::new(COMMAND)
    };
    codex: Slot<String> = Setting {
        sources: Sources::NotProject,
        default: |_| Some(codex::NAME.to_owned()),
        ..Setting::new(COMMAND)
    };
    prices: Named<Price> = Setting {
        sources: Sources::Tables { example: "write [prices.\"model\"] with input and output" },
        ..Setting::new(PRICE)
    };
    // The workspaces of agents that call the tool, by agent id.
    agents: Named<PathBuf> = Setting {
        sources: Sources::Tables { example: "write [agents.\"id\"] with workspace" },
        ..Setting::new(AGENT)
    };
}

impl Layer {
    /// Puts this layer over `lower`: its values win, lists add up.
    #[must_use]
    pub(crate) fn over(mut self, lower: Self) -> Self {
        // `replies` implies the scripted backend, unless the same layer names another backend.
        if let (None, Some(Sourced { origin, .. })) = (&self.backend, &self.replies) {
            let (value, origin) = (scripted::NAME.to_owned(), origin.clone());
            self.backend = Some(Sourced { value, origin });
        }
        self.merged(lower)
    }

    /// Puts the values of this layer into the settings of a run.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        KEYS.iter().try_for_each(|key| key.apply(self, settings))
    }
}

/// Adds a tool to a list that names each tool once.
fn add(tools: &mut Vec<String>, tool: &String) {
    *tools = joined(tools, std::slice::from_ref(tool));
}
