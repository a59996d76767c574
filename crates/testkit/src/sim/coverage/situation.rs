//! Situations that a single event does not show: races, waits, and the clients that a recovery
//! finds.

use std::fmt;

/// Defines the variants once, for the enum, the list of all and the table.
macro_rules! situations {
    ($($(#[doc = $doc:literal])* $name:ident = $title:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Situation {
            $($(#[doc = $doc])* $name,)*
        }

        impl Situation {
            /// All situations in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        impl fmt::Display for Situation {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $title,)*
                })
            }
        }
    };
}

situations! {
    /// A turn starts with less than the minimal share, because nothing more is left.
    LastCents = "the last cents",
    /// A turn waits for money although a slot is free.
    WaitsForMoney = "a turn waits for money",
    /// Two turns in flight have reserved all the money, and a third one needs some.
    Race = "two race, a third waits",
    /// A turn used up its share while others are in flight.
    CappedInRace = "capped in a race",
    /// A turn used up its share, and the budget is empty.
    CappedForGood = "capped, nothing left",
    Overshoot = "overshoot",
    /// The budget is used up inside a call.
    OverBudgetInCall = "over budget in a call",
    /// A resume adds money, and waiting turns start at once.
    MoreMoney = "resumed with money",
    /// A resume adds money, but not more than is already spent.
    TooLittle = "resumed with too little",
    /// An agent ends although no money is left.
    EndsWithoutMoney = "ends without money",
    /// A script runs although no money is left.
    ScriptWithoutMoney = "script without money",
    VisitSpent = "visit budget spent",
    Guessed = "charged like the most expensive",
    /// The price of a turn is unknown.
    Unpriced = "unpriced",
    Strict = "charged its whole share",

    /// The share of an adopted client exceeds the new cap.
    Recalled = "recalled by a lower cap",
    /// Such a client finished before it was ended.
    RecalledTooLate = "recalled, but finished",

    /// A usage limit while three or more turns of the backend wait.
    LimitInQueue = "limit, others waiting",
    /// The backend reports when its limit ends.
    LimitUntil = "limit with a time",
    /// The backend does not report when its limit ends.
    LimitProbed = "limit without a time",
    /// A turn that was already in flight reaches the limit, too.
    LimitAgain = "limit met again",
    /// A missing login while other turns of the backend wait.
    LoginInQueue = "login, others waiting",
    /// One backend has a limit, another one lacks a login.
    LimitAndLogin = "limit and login",
    /// A turn of another backend starts during a hold.
    OtherBackend = "other backend continues",
    ScriptInHold = "script during a hold",
    /// A new owner continues the wait.
    RestartInHold = "restart during a hold",
    LiftedInTime = "hold lifted by time",
    LiftedByResume = "hold lifted by resume",
    NoWait = "ended: no quota",
    /// The run ends until the user logs in.
    NeedsLogin = "ended: login",
    /// The run ends until the disk has space.
    NeedsRoom = "ended: environment",

    /// An owner died while it started a client; the client is found running.
    AdoptedUnseen = "spawned unseen, adopted",
    /// An owner died while it started a client; the client is found finished.
    FinishedUnseen = "spawned unseen, over",
    NeverSpawned = "never spawned",
    Adopted = "adopted",
    /// An adopted client is found running by another owner.
    AdoptedAgain = "adopted again",
    /// An adopted client ends with a text.
    AdoptedSays = "adopted, says",
    AdoptedFails = "adopted, fails",
    /// An adopted client uses up its share.
    AdoptedCapped = "adopted, capped",
    /// An adopted client reaches a usage limit.
    AdoptedLimited = "adopted, limited",
    /// An adopted client hangs until the run is stopped.
    AdoptedStopped = "adopted, stopped",
    /// An adopted client hangs until its idle time limit.
    AdoptedTimesOut = "adopted, times out",
    /// A client is found finished with a text.
    Finished = "found finished",
    FoundFailed = "found failed",
    /// A client is found finished, with its share used up.
    FoundCapped = "found capped",
    /// A client was interrupted after some output.
    GoneWithProgress = "gone with progress",
    /// A client was interrupted before any output.
    GoneWithout = "gone without",
    /// A client was interrupted, and its cost is an estimate.
    GoneEstimated = "gone, cost estimated",
    Crashes = "crashed too often",

    /// The machine slept while a retry waited.
    SleptInRetry = "slept in a retry",
    /// The machine slept while a backend was held.
    SleptInHold = "slept in a hold",
    /// The machine slept while a client ran.
    SleptInTurn = "slept in a turn",
    /// The clock was set back while a retry waited.
    BackInRetry = "set back in a retry",
    /// The clock was set back while a backend was held.
    BackInHold = "set back in a hold",

    /// A request to stop after the turns in flight.
    AskedAfterTurn = "asked: after turn",
    /// A request to stop.
    AskedNow = "asked: now",
    /// A request to cancel.
    AskedCancel = "asked: cancel",
    /// A request whose key is already recorded.
    AskedAgain = "asked again, same key",
    /// A request with a stronger mode than the one before.
    AskedHarder = "asked harder",
    /// A request while an adopted client runs.
    AskedAdopted = "asked while adopted",
    /// A request while a backend is held.
    AskedInHold = "asked during a hold",
    /// A request to a run without an owner.
    AskedWithoutOwner = "asked without an owner",
    CancelledAfterwards = "cancelled afterwards",
}
