//! Questions that are followed: the evidence now, and every change to it; and banks that are followed: what happens in
//! them.
//!
//! In: questions, each with who follows it, and the news of which banks changed. Out: for each follower a snapshot,
//! then deltas, each with the progress that it leads to. At every progress, what a follower has put together is equal
//! to the result of asking the question again as of the progress's offsets: the same units in the same order with the
//! same excerpts. Versions in between may be left out. A question is asked again only when its bank has changed, once
//! for all who follow it. The same holds for a bank, of which events are told. Nothing that changes the memory ever
//! waits for a follower. Once a deletion was read, no one is sent the words of its turn any more, neither in an event
//! nor in a snapshot or a delta.
//!
//! - `forms`: what goes in and what comes out, each with one JSON form.
//! - `version`: the evidence of a question at one time, and the delta between two.
//! - `live_question`: asks again, and keeps the last versions.
//! - `subscriber`: what one follower is sent next; a slow follower gets the newest version, or its stream is ended.
//! - `event_forms`: what those who follow a bank are sent; `bank_look`: what a bank holds, and what changed in it;
//!   `dead_letters`: which of its records were rejected.
//! - `bank_feed`: looks at a bank, and keeps the last events; `bank_follower`: what one follower of it is sent next.
//! - `standing`: whether a follower may go on; `work`: when those who follow something need it looked at again.
//! - `hub`: all questions and banks that are followed.

mod bank_feed;
mod bank_follower;
mod bank_look;
mod dead_letters;
mod event_forms;
mod forms;
mod hub;
mod live_question;
mod standing;
mod subscriber;
#[cfg(test)]
mod tests;
mod version;
mod work;

pub use bank_follower::BankFollower;
pub use event_forms::{
    AddedUnit, ArrivedTurn, BankEvent, BankProgress, ChangedEdges, ClosedWindow, RejectedRecord, RemovedUnit, Skipped,
};
pub use forms::{Delta, Moved, Polled, Progress, Ranked, Snapshot, Subscribe, SubscribedUnit, Told, UnitRank};
pub use hub::Hub;
pub use subscriber::{Event, Subscriber};
