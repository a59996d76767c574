//! A client that runs, followed to the end of its turn.

use raymond_core::time::Span;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::clocks::{Due, Timer};
use super::outcome::How;
use super::turn::Turn;
use crate::contract::{Sign, Watch};
use crate::process::{Client, Grace, Heard};

/// Follows a client until it has ended, or has to be ended. The permit is given back as soon as its
/// start is over.
pub(super) async fn follow(
    client: &mut Client,
    (turn, timer): (&mut Turn, &mut Timer),
    (watch, grace): (&Watch, &Grace),
    mut permit: Option<OwnedSemaphorePermit>,
) -> How {
    loop {
        let due = timer.next(turn.stage());
        let heard = tokio::select! {
            biased;
            () = watch.cancel.cancelled() => {
                end(client, turn, grace).await;
                return How::Cancelled;
            }
            heard = client.next(due.map(|(at, _)| at)) => heard,
        };
        match &heard {
            Heard::Line(_) | Heard::Cut { .. } | Heard::Stderr => {
                timer.spoke(Instant::now());
                drop(permit.take());
            }
            Heard::Flooded { limit } => {
                end(client, turn, grace).await;
                return How::Flooded(*limit);
            }
            Heard::Woke { gap } => timer.woke(*gap),
            Heard::Exited(status) => {
                return How::Exited { status: *status, stderr: client.stderr() };
            }
            Heard::Deadline => match due.map(|(_, due)| due) {
                Some(Due::Clock(clock, after)) => {
                    end(client, turn, grace).await;
                    return How::TimedOut(clock, after);
                }
                Some(Due::Grace) => {
                    end(client, turn, grace).await;
                    return How::Settled;
                }
                Some(Due::Silence(after)) => {
                    timer.told();
                    let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                    (watch.listener)(Sign::Silent(Span(millis)));
                }
                Some(Due::Started) | None => {
                    timer.started();
                    drop(permit.take());
                }
            },
        }
        turn.hear(&heard).into_iter().for_each(|sign| (watch.listener)(sign));
        if turn.login().is_some() {
            end(client, turn, grace).await;
            return How::LoggedOut;
        }
    }
}

/// Ends the client and all below it, and hears its last words.
async fn end(client: &mut Client, turn: &mut Turn, grace: &Grace) {
    client.end(grace).await;
    loop {
        // One that could not be ended is heard no further than this.
        let heard = client.next(Some(Instant::now())).await;
        if matches!(heard, Heard::Exited(_) | Heard::Deadline) {
            return;
        }
        turn.hear(&heard);
    }
}
