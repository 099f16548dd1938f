//! Questions that are followed: the evidence now, and every change to it; and banks that are followed: what happens in
//! them.
//!
//! In: questions, each with who follows it, and the news of which banks changed. Out: for each follower a snapshot,
//! then deltas, each with the progress that it leads to. At every progress, what a follower has put together is equal
//! to the result of asking the question again as of the progress's offsets: the same units in the same order with the
//! same excerpts. Versions in between may be left out. A question is asked again only when its bank has changed, once
//! for all who follow it. The same holds for a bank, of which events are reported. Nothing that changes the memory ever
//! waits for a follower. Once a deletion was read, no one is sent the words of its turn any more, neither in an event
//! nor in a snapshot or a delta.
//!
//! - `question_event_forms`: what goes in and what comes out, each with one JSON form.
//! - `evidence_version`: the evidence of a question at one time, and the delta between two.
//! - `live_question`: asks again, and keeps the last versions.
//! - `question_subscriber`: what one follower is sent next; a slow follower gets the newest version, or its stream is
//!   ended.
//! - `bank_event_forms`: what the followers of a bank are sent; `bank_scan`: what a bank holds, and what changed in it;
//!   `dead_letter_reader`: which of its records were rejected.
//! - `bank_feed`: scans a bank, and keeps the last events; `bank_follower`: what one follower of it is sent next.
//! - `follower_guard`: whether a follower may go on; `refresh_schedule`: when a followed question or bank must be read
//!   again.
//! - `subscription_hub`: all questions and banks that are followed.

mod bank_event_forms;
mod bank_feed;
mod bank_follower;
mod bank_scan;
mod dead_letter_reader;
mod evidence_version;
mod follower_guard;
mod live_question;
mod question_event_forms;
mod question_subscriber;
mod refresh_schedule;
mod subscription_hub;
#[cfg(test)]
mod tests;

pub use bank_event_forms::{
    AddedUnit, ArrivedTurn, BankEvent, BankProgress, ClosedWindow, EdgeChangeCounts, RejectedRecord, RemovedUnit,
    SkippedEvents,
};
pub use bank_follower::BankFollower;
pub use question_event_forms::{
    EvidenceDelta, EvidenceProgress, EvidenceSnapshot, PollResponse, RankedUnit, StreamNotice, SubscribeRequest,
    SubscribedUnit, UnitMove, UnitRank,
};
pub use question_subscriber::{QuestionSubscriber, SubscriptionEvent};
pub use subscription_hub::SubscriptionHub;
