//! Tests with clients written in bash. They write the lines of the real client, and through these
//! lines the test knows when to act.

use std::fs::{self, Permissions as Mode};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use raymond_core::agent::SessionPlan;
use raymond_core::budget::Micros;
use raymond_core::failure::{Clock, TurnFailure};
use raymond_core::ids::{Nonce, SessionId, StateName, TurnId};
use raymond_core::run::Permissions;
use raymond_core::run::outcome::{Finished, Reply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::turn_spec::Extras;
use raymond_core::time::Span;
use rustix::fs::{CWD, FileType, Mode as FileMode, mknodat};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

mod conversations;
mod disk_space;
mod ending;
mod recovery;
mod starting;

use super::sample::{self, SESSION, bash, init, success, text};
use super::*;
use crate::conformance::{self, Situation, planned};
use crate::contract::{AttachResult, ClientProgress, TurnObserver};
use crate::headless::{ClientTimeouts, not_started};
use crate::process::{Grace, OutputFiles, leftovers, release_reserved_space};

const LONG: Duration = Duration::from_mins(10);
const SHORT: Duration = Duration::from_millis(50);

/// So long that a test that waits for it by mistake is ended as too slow.
const PATIENT: ClientTimeouts = ClientTimeouts {
    first_output: LONG,
    idle: LONG,
    silent: LONG,
    after_result: LONG,
    start: LONG,
};

/// For clients that end by themselves after a signal.
const GRACE: Grace = Grace { after_exit: LONG, interrupt: LONG, terminate: LONG, kill: LONG };

/// For clients that ignore signals.
const IMPATIENT: Grace = Grace { interrupt: SHORT, terminate: SHORT, ..GRACE };

struct Harness {
    directory: TempDir,
    claude: Headless<ClaudeProtocol>,
}

impl Harness {
    /// Creates a client that is this script. `say LINE…` writes lines; `$prompt` is the prompt.
    fn new(script: &str, timeouts: ClientTimeouts) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let command = directory.path().join("claude");
        let prelude = "#!/bin/bash\nsay() { printf '%s\\n' \"$@\"; }\nprompt=$(cat)\n";
        fs::write(&command, format!("{prelude}{script}\n")).unwrap();
        fs::set_permissions(&command, Mode::from_mode(0o755)).unwrap();
        let fifo = directory.path().join("go");
        mknodat(CWD, &fifo, FileType::Fifo, FileMode::RWXU, 0).unwrap();
        let settings = ClientSettings { timeouts, grace: GRACE, ..ClientSettings::of(command) };
        Self { directory, claude: Headless::new(settings) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn nonce(&self) -> Nonce {
        let name = self.directory.path().file_name().unwrap().to_string_lossy();
        Nonce::new(name.replace('.', "test"))
    }

    fn request(&self, prompt: &str) -> PromptRequest {
        PromptRequest {
            started: StartedTurn {
                nonce: self.nonce(),
                turn: "main.1.1".parse::<TurnId>().unwrap(),
                attempt: 1,
                plan: SessionPlan::Fresh(SessionId::new(SESSION)),
                transcript: self.path(&format!("{prompt}.jsonl")),
                timeout: None,
                idle_timeout: None,
                cap: None,
                config_home: None,
            },
            location: StateName::new("START.md").into(),
            count: 1,
            prompt: prompt.to_owned(),
            notice: None,
            cwd: self.directory.path().to_owned(),
            model: None,
            effort: None,
            permissions: Permissions::default(),
            extras: Extras::default(),
            schema: None,
            environment: None,
        }
    }

    async fn ask(&self, request: PromptRequest) -> Answer {
        let answer =
            self.claude.answer(request, TurnObserver::silent(CancellationToken::new())).await;
        assert_eq!(leftovers::find(&self.nonce()), []);
        answer
    }

    /// Releases a client that reads the FIFO.
    fn go(&self) {
        let fifo = self.path("go");
        tokio::task::spawn_blocking(move || fs::write(fifo, "go\n").unwrap());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

async fn answered(script: &str, timeouts: ClientTimeouts) -> Answer {
    let harness = Harness::new(script, timeouts);
    harness.ask(harness.request("hello")).await
}

/// Returns a script that writes these lines.
fn say(lines: &[String]) -> String {
    let quoted: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
    format!("say {}", quoted.join(" "))
}

/// Cancels the turn when the client makes this progress.
fn cancelling(cue: fn(&ClientProgress) -> bool) -> TurnObserver {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let listener = move |sign: ClientProgress| {
        if cue(&sign) {
            token.cancel();
        }
    };
    TurnObserver { cancel, listener: Arc::new(listener) }
}

/// Returns a failure that cost nothing.
fn unpaid(failure: TurnFailure) -> Answer {
    let cost = Cost::Reported(Micros::ZERO);
    Answer::Failed { failure, cost, denied: Vec::new(), session: None }
}

fn replied(text: &str, cost: u64) -> Answer {
    let model = Some("claude-opus-5-5".to_owned());
    Answer::Finished(Box::new(Finished {
        model,
        ..Finished::new(Reply::new(text), Cost::Reported(Micros(cost)))
    }))
}

/// Returns the answer with a session that is not the planned one.
fn opened(answer: Answer, id: &SessionId) -> Answer {
    match answer {
        Answer::Finished(reply) => {
            Answer::Finished(Box::new(Finished { session: Some(id.clone()), ..*reply }))
        }
        other => panic!("it has no text: {other:?}"),
    }
}

struct Stage(Harness);

impl conformance::Harness for Stage {
    fn backend(&self) -> &dyn Backend {
        &self.0.claude
    }

    fn request(&self, situation: Situation) -> PromptRequest {
        let request = self.0.request(match situation {
            Situation::Replies | Situation::KnowsNoSession => "replies",
            Situation::RepliesDifferently => "differs",
            Situation::Complies => "complies",
            Situation::NeverComplies => "never",
            Situation::SpendsTooMuch => "spends",
            Situation::Hangs => "hangs",
            Situation::Fails => "400",
            Situation::FailsTransiently => "529",
            Situation::IsOverQuota => "429",
            Situation::IsLoggedOut => "401",
        });
        // Parallel turns have their own transcripts.
        let transcript = request.started.transcript.with_file_name(format!("{situation:?}.jsonl"));
        PromptRequest { started: StartedTurn { transcript, ..request.started }, ..request }
    }

    fn shown(&self) -> Option<Vec<String>> {
        Some(self.0.read("shown").lines().map(str::to_owned).collect())
    }
}

/// Keeps a file for each session, as the real client does, and records what the model saw.
const SESSIONS: &str = r#"
while (($#)); do case $1 in --session-id=*) id=${1#*=};; --resume=*) from=${1#*=};; esac; shift; done
if [[ $from && ! -e $from.said ]]; then LOST; exit 1; fi
id=${id-$from}
if [[ ! $from ]]; then : > $id.said; elif [[ $from != $id ]]; then cp $from.said $id.said; fi
echo "$prompt" >> $id.said
cp $id.said shown
say() { printf '%s\n' "${@//FIRST/$id}"; }"#;

#[tokio::test]
async fn the_backend_conforms() {
    let reply = say(&[init(), text("m", "done"), success("done")]);
    let script = format!(
        r#"{sessions}
case $prompt in
    replies) echo done >> $id.said; {reply};;
    differs) echo other >> $id.said; {differs};;
    complies) {complies};;
    never) {reply};;
    spends) {spends}; exit 1;;
    hangs) exec sleep 600;;
    *) {error} | sed "s/STATUS/$prompt/"; exit 1;;
esac"#,
        sessions = SESSIONS.replace("LOST", &say(&[sample::lost("s")])).replace("FIRST", SESSION),
        complies = reply.replace(r#""result":"#, r#""structured_output":{"a":1},"result":"#),
        spends = say(&[init(), bash("m", "ls"), sample::capped()]),
        differs = reply.replace("done", "other"),
        error = say(&[init(), sample::api_error("STATUS")]),
    );
    let mut stage = Stage(Harness::new(&script, PATIENT));
    // A shell that is about to become another program may miss a signal.
    stage.0.claude.grace.interrupt = Duration::from_secs(2);
    assert_eq!(conformance::violations(&stage).await, []);
    assert_eq!(leftovers::find(&stage.0.nonce()), []);
}
