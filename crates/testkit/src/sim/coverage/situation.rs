//! Situations that no single event shows: who races with whom, what waits meanwhile, what is found
//! afterwards.

use std::fmt;

/// Names the variants once, for the enum, the list of all and the table.
macro_rules! situations {
    ($($(#[doc = $doc:literal])* $name:ident = $title:literal,)*) => {
        /// A situation that a simulation must meet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Situation {
            $($(#[doc = $doc])* $name,)*
        }

        impl Situation {
            /// All of them, in the order of the table.
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
    /// A turn starts with less than the least share: it is all that is left.
    LastCents = "the last cents",
    /// A turn waits for money although a slot is free.
    WaitsForMoney = "a turn waits for money",
    /// Two turns in flight hold all the money, and a third one wants some.
    Race = "two race, a third waits",
    /// A turn used up its share while others are in flight.
    CappedInRace = "capped in a race",
    /// A turn used up its share, and that was all.
    CappedForGood = "capped, nothing left",
    /// More was spent than the cap.
    Overshoot = "overshoot",
    /// The money is gone inside a call.
    OverBudgetInCall = "over budget in a call",
    /// More money, and what was kept starts at once.
    MoreMoney = "resumed with money",
    /// More money that is spent already.
    TooLittle = "resumed with too little",
    /// An agent ends although nothing is left.
    EndsWithoutMoney = "ends without money",
    /// A script runs although nothing is left.
    ScriptWithoutMoney = "script without money",
    /// The budget of a visit is spent.
    VisitSpent = "visit budget spent",
    /// A turn is charged like the most expensive one.
    Guessed = "charged like the most expensive",
    /// Nothing is known of the price of a turn.
    Unpriced = "unpriced",
    /// The whole share is charged.
    Strict = "charged its whole share",

    /// The share of an adopted client does not fit the new cap.
    Recalled = "recalled by a lower cap",
    /// Such a client finished before it could be ended.
    RecalledTooLate = "recalled, but finished",

    /// A usage limit while three or more turns of the backend wait.
    LimitInQueue = "limit in a storm",
    /// The backend says when its limit is lifted.
    LimitUntil = "limit with a time",
    /// It does not.
    LimitProbed = "limit without a time",
    /// A turn that was in flight meets the limit, too.
    LimitAgain = "limit met again",
    /// A missing login while other turns of the backend wait.
    LoginInQueue = "login in a storm",
    /// One backend has a limit, another one no login.
    LimitAndLogin = "limit and login",
    /// A turn of another backend starts meanwhile.
    OtherBackend = "other backend goes on",
    /// A script starts meanwhile.
    ScriptInHold = "script during a hold",
    /// Another owner waits on.
    RestartInHold = "restart during a hold",
    /// Time is up.
    LiftedInTime = "hold lifted by time",
    /// Somebody resumed.
    LiftedByResume = "hold lifted by resume",
    /// The run ends instead of waiting.
    NoWait = "ended: no quota",
    /// The run ends until somebody logs in.
    NeedsLogin = "ended: login",
    /// The run ends until the machine has room again.
    NeedsRoom = "ended: environment",

    /// A client whose owner died as it started it is found running.
    AdoptedUnseen = "spawned unseen, adopted",
    /// A client whose owner died as it started it is found, and is over.
    FinishedUnseen = "spawned unseen, over",
    /// The owner died before it started the client.
    NeverSpawned = "never spawned",
    /// A client is found running.
    Adopted = "adopted",
    /// And found again by the next owner.
    AdoptedAgain = "adopted again",
    /// It ends with a text.
    AdoptedSays = "adopted, says",
    /// It fails.
    AdoptedFails = "adopted, fails",
    /// It uses up its share.
    AdoptedCapped = "adopted, capped",
    /// It meets a usage limit.
    AdoptedLimited = "adopted, limited",
    /// It hangs until somebody stops the run.
    AdoptedStopped = "adopted, stopped",
    /// It hangs until its owner has had enough.
    AdoptedTimesOut = "adopted, times out",
    /// A client had ended with a text.
    Finished = "found finished",
    /// A client had failed.
    FoundFailed = "found failed",
    /// A client had used up its share.
    FoundCapped = "found capped",
    /// A client is gone, and had said something.
    GoneWithProgress = "gone with progress",
    /// A client is gone, and had said nothing.
    GoneWithout = "gone without",
    /// A client is gone, and its cost is an estimate.
    GoneEstimated = "gone, cost estimated",
    /// Too many crashes without progress.
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
    /// A request to end for good.
    AskedCancel = "asked: cancel",
    /// A request that was recorded already.
    AskedAgain = "asked again, same key",
    /// A request that asks for more than the one before.
    AskedHarder = "asked harder",
    /// A request while an adopted client runs.
    AskedAdopted = "asked while adopted",
    /// A request while a backend is held.
    AskedInHold = "asked during a hold",
    /// A request to a run that nobody drives.
    AskedWithoutOwner = "asked without an owner",
    /// A run that had ended is cancelled.
    CancelledAfterwards = "cancelled afterwards",
}
