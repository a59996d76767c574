//! Small runs for the tests of this crate: a run of states or of steps, its backend, its disk.
//!
//! A run is stored in memory unless a test needs real files. Its agents work in a temporary
//! directory, and its nonce is the name of that directory: tests that run at the same time must not
//! find each other's processes.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raymond_backends::contract::{
    Answer, AnswerFuture, AttachResult, Backend, PromptRequest, StartedTurn, TurnObserver,
};
use raymond_core::budget::Cost;
use raymond_core::capability::Capability;
use raymond_core::ids::{BackendName, Nonce, RunId, TurnId};
use raymond_core::run::outcome::{Finished, Outcome, Reply};
use raymond_core::run::stop::Interruption;
use raymond_core::run::{Input, Settings};
use raymond_core::workflow::{Definition, EntryPoint, SourceFile};
use raymond_store::Root;
use raymond_store::disk::{Disk, Handle, Memory, Metadata, OpenMode, RealDisk};
use raymond_store::lock::Takeover;
use tempfile::TempDir;

use crate::backends::Backends;
use crate::clock;
use crate::driver::{Driver, RecordOnly};
use crate::feed::{FeedItem, RunWatcher};
use crate::launch::Launch;
use crate::owned::{LeftoverClients, OpenOptions, OwnedRun};
use crate::pin::PLATFORM;
use crate::prepare::Prepared;
use crate::project::Project;
use crate::scope::{LoadedScope, ScopeOrigin};

/// The backend that answers the prompts of these runs.
const BACKEND: &str = "said";

/// The project and directories of one run.
pub(crate) struct TestRun {
    pub(crate) project: Project,
    pub(crate) memory: Memory,
    /// The working directory of its agents.
    pub(crate) cwd: TempDir,
}

impl TestRun {
    /// Prepares a run that is stored in memory.
    pub(crate) fn in_memory() -> Self {
        let memory = Memory::new(0);
        let disk = Arc::new(memory.clone());
        let project = Project { disk, root: Root::in_directory(Path::new("/")) };
        Self { project, memory, cwd: tempfile::tempdir().unwrap() }
    }

    /// Prepares a run that is stored in files, below the working directory of its agents.
    pub(crate) fn in_files() -> Self {
        let cwd = tempfile::tempdir().unwrap();
        let root = Root::in_directory(cwd.path());
        Self { project: Project { disk: Arc::new(RealDisk), root }, memory: Memory::new(0), cwd }
    }

    /// Prepares a run in files on a disk that observes its lock.
    pub(crate) fn witnessed() -> (Self, Arc<LockWitness>) {
        let mut setup = Self::in_files();
        let lock = setup.project.paths(&Self::run()).lock;
        let witness = Arc::new(LockWitness { lock, renamed: Mutex::default() });
        setup.project.disk = Arc::<LockWitness>::clone(&witness);
        (setup, witness)
    }

    pub(crate) fn run() -> RunId {
        "r".into()
    }

    pub(crate) fn nonce(&self) -> Nonce {
        let name = self.cwd.path().file_name().unwrap().to_string_lossy();
        Nonce::new(name.replace('.', "test"))
    }

    pub(crate) fn settings() -> Settings {
        Settings { backend: BackendName::new(BACKEND), ..Settings::default() }
    }

    /// Creates the run. Its journal contains only the header.
    pub(crate) fn created(&self, files: &[(&str, &str)], settings: Settings) -> (OwnedRun, Input) {
        let source = |(name, text): &(&str, &str)| SourceFile {
            name: (*name).to_owned(),
            bytes: text.as_bytes().into(),
            executable: false,
        };
        let files: Vec<SourceFile> = files.iter().map(source).collect();
        let definition =
            Definition::parse(files.clone(), &EntryPoint::Entry, PLATFORM).unwrap().definition;
        let loaded = LoadedScope {
            scope: "/wf".into(),
            start: EntryPoint::Entry,
            files,
            origin: ScopeOrigin::Directory,
            warnings: Vec::new(),
        };
        let launch = Launch {
            run: Self::run(),
            nonce: self.nonce(),
            workflow: "/wf".to_owned(),
            cwd: self.cwd.path().to_str().unwrap().to_owned(),
            input: None,
            program: raymond_core::run::Program::States,
            settings,
        };
        let prepared = Prepared { loaded, definition, warnings: Vec::new() };
        OwnedRun::create(&self.project, prepared, launch).unwrap()
    }

    /// Creates a run whose first turn is in flight.
    pub(crate) fn begun(&self, files: &[(&str, &str)]) -> OwnedRun {
        self.begun_with(files, Self::settings())
    }

    pub(crate) fn begun_with(&self, files: &[(&str, &str)], settings: Settings) -> OwnedRun {
        let (owned, start) = self.created(files, settings);
        recorded(owned, vec![start])
    }

    /// Opens the run as a new owner.
    pub(crate) async fn opened(&self) -> OwnedRun {
        let (takeover, clients) = (Takeover::Never, LeftoverClients::Adopt);
        let how = OpenOptions { takeover, truncate_to: None, clients };
        OwnedRun::open(&self.project, &Self::run(), how, None).await.unwrap()
    }
}

/// Records these inputs without starting anything.
pub(crate) fn recorded(owned: OwnedRun, inputs: Vec<Input>) -> OwnedRun {
    let OwnedRun { head, definition, journal, .. } = owned;
    let mut driver = Driver::new(head, definition, journal, RecordOnly);
    for verdict in driver.handle(clock::now(), inputs).unwrap() {
        verdict.unwrap();
    }
    let (head, definition, journal) = driver.into_parts();
    OwnedRun { journal, head, definition, ..owned }
}

/// Returns the outcome of a turn that was stopped.
pub(crate) fn stopped(turn: &TurnId, attempt: u32) -> Input {
    let (by, cost) = (Interruption::Stop, Cost::Free);
    let outcome = Outcome::Interrupted { by, cost, progressed: false, session: None };
    Input::Settled { turn: turn.clone(), attempt, outcome }
}

/// A client that answers with one text, whether it is asked, followed or found. With an empty text
/// it works until it is cancelled.
pub(crate) struct Client {
    says: &'static str,
    attached: AttachedClient,
    /// The turns that it was asked to answer or to follow.
    pub(crate) followed: Mutex<Vec<StartedTurn>>,
}

/// The state of the client when a new owner looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachedClient {
    Running,
    Finished,
}

impl Client {
    pub(crate) fn new(attached: AttachedClient, says: &'static str) -> Arc<Self> {
        Arc::new(Self { says, attached, followed: Mutex::default() })
    }

    fn says(&self) -> Answer {
        Answer::Finished(Box::new(Finished::new(Reply::new(self.says), Cost::Free)))
    }

    fn follows(&self, started: StartedTurn, watch: TurnObserver) -> AnswerFuture<'_> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).push(started);
        Box::pin(async move {
            if self.says.is_empty() {
                watch.cancel.cancelled().await;
                return Answer::Interrupted {
                    by: Interruption::Stop,
                    cost: Cost::Free,
                    progressed: true,
                    session: None,
                };
            }
            self.says()
        })
    }

    /// Waits until the client works on a turn.
    pub(crate) async fn works(&self) {
        let works = async {
            while self.followed.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(10), works).await.expect("the client is followed");
    }
}

impl Backend for Client {
    fn name(&self) -> BackendName {
        BackendName::new(BACKEND)
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[]
    }

    fn answer(&self, request: PromptRequest, watch: TurnObserver) -> AnswerFuture<'_> {
        self.follows(request.started, watch)
    }

    fn attach(&self, _: &StartedTurn) -> AttachResult {
        match self.attached {
            AttachedClient::Running => AttachResult::Running,
            AttachedClient::Finished => AttachResult::Ended(self.says()),
        }
    }

    fn follow(&self, started: StartedTurn, watch: TurnObserver) -> AnswerFuture<'_> {
        self.follows(started, watch)
    }
}

/// Returns the backends of a run whose prompts this client answers.
pub(crate) fn answered_by(client: &Arc<Client>) -> Backends {
    let mut backends = Backends::default();
    backends.add(Arc::<Client>::clone(client));
    backends
}

/// A watcher that ignores everything.
pub(crate) struct SilentWatcher;

impl RunWatcher for SilentWatcher {
    fn take(&mut self, _: FeedItem<'_>) {}
}

/// Real files that note, at each rename, whether the lock of a run was held.
#[derive(Debug)]
pub(crate) struct LockWitness {
    lock: PathBuf,
    renamed: Mutex<Vec<(PathBuf, bool)>>,
}

impl LockWitness {
    /// Returns the files that were renamed since the last call, and whether the lock was held then.
    pub(crate) fn renamed(&self) -> Vec<(PathBuf, bool)> {
        std::mem::take(&mut *self.renamed.lock().unwrap())
    }

    fn is_held(&self) -> bool {
        RealDisk.open(&self.lock, OpenMode::Write).is_ok_and(|lock| lock.try_lock().is_err())
    }
}

impl Disk for LockWitness {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Box<dyn Handle>> {
        RealDisk.open(path, how)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealDisk.metadata(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        RealDisk.list(directory)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        RealDisk.sync_dir(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.renamed.lock().unwrap().push((from.to_owned(), self.is_held()));
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
}
