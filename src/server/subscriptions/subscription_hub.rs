//! All questions and banks that are followed.
//!
//! In: questions and banks, each with who follows it, and the memory's news. Out: followers. One thread, which the
//! first follower starts, takes the news; it asks again every question that a change may concern, and scans every bank
//! that has changed. A question or bank without followers stays for a while, for followers that come back, and is not
//! read in that time.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::{Arc, Mutex, atomic::AtomicU64},
    thread::JoinHandle,
    time::Duration,
};

use futures_util::future::{join, select};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    time::Instant,
};

use super::{
    bank_feed::BankFeed,
    bank_follower::BankFollower,
    dead_letter_reader::{BankDeadLetter, DeadLetterReader},
    follower_guard::FollowerGuard,
    live_question::{FollowerSlotLimits, LiveAskContext, LiveQuestion},
    question_subscriber::QuestionSubscriber,
};
use crate::{
    access::Caller,
    api::{ApiProblem, ProblemCode},
    quota::{Quota, QuotaLimits, QuotaRefusals, QuotaShare},
};
use logs::partition_of;
use memory::recall::RecallError;
use pipeline::PipelineError;
use replica::BankChangeBatch;
use ripplemem::Memory;
use types::{
    model::{Bank, MAX_QUESTION_BYTES, Question},
    sync,
};

/// The messages when there are too many followers.
const REFUSALS: QuotaRefusals = QuotaRefusals {
    all: "subscriptions are already open; end one, or raise http.subscriptions and the system's limit on open files",
    of_one: "subscriptions of this token are already open; end one, or raise http.subscriptions_of_token and the \
             system's limit on open files",
};

/// How many questions are asked at the same time: this leaves places in the query queue to others.
const ASKINGS: usize = 8;
/// How long a question stays without a follower.
const LINGER: Duration = Duration::from_secs(120);
/// How often the dead letters are read while a bank has a follower.
const LETTERS: Duration = Duration::from_secs(1);
/// How soon followers of an unchanged question learn how far its partition was read.
const ADVANCE: Duration = Duration::from_secs(1);
/// The limits for a slow follower.
const SLOT: FollowerSlotLimits = FollowerSlotLimits { bytes: 256 << 10, behind: Duration::from_secs(60) };

/// All questions and banks that are followed.
pub struct SubscriptionHub {
    shared: Arc<HubState>,
    followers: Arc<Quota>,
    closing: watch::Sender<bool>,
    running: Mutex<Option<SubscriptionThread>>,
}

struct SubscriptionThread {
    handle: Handle,
    thread: JoinHandle<()>,
}

/// By bank, then by the question.
type LiveQuestions = BTreeMap<Bank, BTreeMap<String, Arc<LiveQuestion>>>;

type BankFeeds = BTreeMap<Bank, Arc<BankFeed>>;

struct HubState {
    asking: LiveAskContext,
    questions: Mutex<LiveQuestions>,
    feeds: Mutex<BankFeeds>,
    dead_letters: Arc<DeadLetterReader>,
}

impl SubscriptionHub {
    /// The questions of a memory, which has only one hub; `deadline` is the deadline each time a question is asked.
    #[must_use]
    pub fn new(memory: Arc<Memory>, deadline: Duration, limits: QuotaLimits) -> Self {
        let asking = LiveAskContext { memory, places: Semaphore::new(ASKINGS), deadline, begun: AtomicU64::new(0) };
        let (questions, feeds) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(HubState { asking, questions, feeds, dead_letters: Arc::default() });
        let (followers, closing) = (Quota::new(limits, REFUSALS), watch::Sender::new(false));
        Self { shared, followers, closing, running: Mutex::default() }
    }

    /// Follows a question, once its first answer is there.
    ///
    /// # Errors
    /// [`ApiProblem`]: too many follow already, or the question cannot be asked.
    pub async fn subscribe(
        &self,
        who: &Arc<Caller>,
        question: Question,
        last_event_id: Option<&str>,
    ) -> Result<QuestionSubscriber, ApiProblem> {
        // A bank that holds nothing yet can be followed, so problems with the question must be found here.
        check(&question)?;
        let share = self.followers.take(who.name())?;
        let handle = self.run()?;
        let (live, mut subscriber) = {
            let mut questions = sync::lock(&self.shared.questions);
            let key = serde_json::to_string(&question).unwrap_or_default();
            let known = questions.get(&question.bank).and_then(|of_bank| of_bank.get(&key)).cloned();
            let live = known.unwrap_or_else(|| {
                let others: usize = questions.values().map(BTreeMap::len).sum();
                forget_idle(&mut questions, if others < self.followers.limits().all { LINGER } else { Duration::ZERO });
                let live = Arc::new(self.shared.live(question));
                questions.entry(live.question.bank.clone()).or_default().insert(key, Arc::clone(&live));
                live
            });
            let standing =
                FollowerGuard::new(Arc::clone(who), live.question.bank.clone(), self.closing.subscribe(), share);
            // Within the lock, so that the removal of idle questions sees this follower.
            let follower = QuestionSubscriber::new(Arc::clone(&live), standing, last_event_id);
            (live, follower)
        };
        if live.begin() {
            self.shared.ask(&handle, live);
        }
        let late =
            |_| ApiProblem::new(ProblemCode::Deadline, "the deadline passed before the first answer; subscribe again");
        tokio::time::timeout(self.shared.asking.deadline, subscriber.begun()).await.map_err(late)??;
        Ok(subscriber)
    }

    /// Follows a bank, once it was scanned; `last_event_id` is the id that the follower received last.
    ///
    /// # Errors
    /// [`ApiProblem`]: too many follow already, or the bank cannot be scanned.
    pub async fn follow_bank(
        &self,
        who: &Arc<Caller>,
        bank: &Bank,
        last_event_id: Option<&str>,
    ) -> Result<BankFollower, ApiProblem> {
        let share = self.followers.take(who.name())?;
        let handle = self.run()?;
        let (feed, mut follower) = {
            let mut feeds = sync::lock(&self.shared.feeds);
            let known = feeds.get(bank).cloned();
            let feed = known.unwrap_or_else(|| {
                let is_roomy = feeds.len() < self.followers.limits().all;
                forget_idle_feeds(&mut feeds, if is_roomy { LINGER } else { Duration::ZERO });
                let feed = Arc::new(self.shared.feed(bank));
                feeds.insert(bank.clone(), Arc::clone(&feed));
                feed
            });
            let standing = FollowerGuard::new(Arc::clone(who), bank.clone(), self.closing.subscribe(), share);
            // Within the lock, so that the removal of idle feeds sees this follower.
            let follower = BankFollower::new(Arc::clone(&feed), standing, last_event_id);
            (feed, follower)
        };
        if feed.begin() {
            self.shared.look(&handle, feed);
        }
        let late = |_| {
            ApiProblem::new(ProblemCode::Deadline, "the deadline passed before the first look at the bank; ask again")
        };
        tokio::time::timeout(self.shared.asking.deadline, follower.begun()).await.map_err(late)??;
        Ok(follower)
    }

    /// How many questions are followed, or were followed a moment ago.
    #[cfg(test)]
    pub(super) fn questions(&self) -> usize {
        sync::lock(&self.shared.questions).values().map(BTreeMap::len).sum()
    }

    /// How many times a question was asked.
    #[cfg(test)]
    pub(super) fn asked(&self) -> u64 {
        self.shared.asking.begun.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// A place for a client that waits for news about what it follows.
    ///
    /// # Errors
    /// [`ApiProblem`]: too many follow already.
    pub fn share(&self, who: &Caller) -> Result<QuotaShare, ApiProblem> {
        self.followers.take(who.name())
    }

    /// Waits until every subscription ends.
    pub async fn closed(&self) {
        // The sender lives as long as this value.
        drop(self.closing.subscribe().wait_for(|closing| *closing).await);
    }

    /// Whether all subscriptions are ending.
    pub fn is_closed(&self) -> bool {
        *self.closing.borrow()
    }

    /// Ends every subscription, now and later.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// The runtime of the thread, which is started if it does not run yet.
    fn run(&self) -> Result<Handle, ApiProblem> {
        let mut running = sync::lock(&self.running);
        if *self.closing.borrow() {
            return Err(ApiProblem::stopping());
        }
        if let Some(running) = &*running {
            return Ok(running.handle.clone());
        }
        let failed = |e: std::io::Error| {
            ApiProblem::new(
                ProblemCode::Failed,
                format!("cannot start the thread of subscriptions: {e}; raise the limit on threads"),
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (shared, mut closing) = (Arc::clone(&self.shared), self.closing.subscribe());
        let work = move || {
            runtime.block_on(async {
                let closed = pin!(async { drop(closing.wait_for(|closing| *closing).await) });
                let following = pin!(join(follow_news(&shared), follow_dead_letters(&shared)));
                select(following, closed).await;
            });
        };
        let thread = std::thread::Builder::new().name("subscriptions".to_owned()).spawn(work).map_err(failed)?;
        *running = Some(SubscriptionThread { handle: handle.clone(), thread });
        Ok(handle)
    }
}

impl Drop for SubscriptionHub {
    /// Waits until the thread, which keeps the memory open, has ended.
    fn drop(&mut self) {
        self.close();
        if let Some(running) = sync::lock(&self.running).take() {
            drop(running.thread.join());
        }
    }
}

fn check(question: &Question) -> Result<(), ApiProblem> {
    let bytes = question.text.len();
    if bytes > MAX_QUESTION_BYTES {
        return Err(PipelineError::from(RecallError::LongQuestion { bytes }).into());
    }
    if let Some(select) = question.narrowing() {
        let wrong = |problem| PipelineError::from(RecallError::WrongSelector { problem });
        select.check().map_err(|problem| ApiProblem::from(wrong(problem)))?;
    }
    if question.text.trim().is_empty() { Err(PipelineError::from(RecallError::EmptyQuestion).into()) } else { Ok(()) }
}

/// Forever asks again every question that the news concern.
async fn follow_news(shared: &Arc<HubState>) {
    let handle = Handle::current();
    let changes = Arc::clone(shared.asking.memory.replica().changes());
    // Partitions whose progress was not yet reported to unchanged questions, and when it has to be.
    let (mut untold, mut due) = (BTreeSet::new(), None::<Instant>);
    loop {
        let news = match due {
            Some(due) => tokio::time::timeout_at(due, changes.next_batch()).await.unwrap_or_default(),
            None => changes.next_batch().await,
        };
        let BankChangeBatch { banks, read, lost } = news;
        for live in shared.of_banks(&banks) {
            if live.note_change() {
                shared.ask(&handle, live);
            }
        }
        for feed in shared.feeds_where(|feed| banks.contains(&feed.bank)) {
            if feed.note_change() {
                shared.look(&handle, feed);
            }
        }
        for live in shared.of_partitions(&lost) {
            if live.reset() {
                shared.ask(&handle, live);
            }
        }
        for feed in shared.feeds_where(|feed| lost.contains(&feed.partition)) {
            if feed.reset() {
                shared.look(&handle, feed);
            }
        }
        untold.extend(read);
        if untold.is_empty() {
            continue;
        }
        if *due.get_or_insert_with(|| Instant::now() + ADVANCE) <= Instant::now() {
            shared.of_partitions(&untold).iter().for_each(|live| live.advance(&shared.asking.memory));
            forget_idle(&mut sync::lock(&shared.questions), LINGER);
            forget_idle_feeds(&mut sync::lock(&shared.feeds), LINGER);
            (untold, due) = (BTreeSet::new(), None);
        }
    }
}

/// Reports rejected records to the followers of their banks, without end. Reads nothing once no bank has been followed
/// for some time.
async fn follow_dead_letters(shared: &Arc<HubState>) {
    let handle = Handle::current();
    loop {
        tokio::time::sleep(LETTERS).await;
        if shared.feeds_where(|feed| feed.idle().is_none_or(|idle| idle < LINGER)).is_empty() {
            shared.dead_letters.skip_to_end();
            continue;
        }
        loop {
            let (log, reader) = (Arc::clone(shared.asking.memory.log()), Arc::clone(&shared.dead_letters));
            // A log that fails is reported by those who write it; its letters are read once it answers again.
            let Ok(Ok(Some(letters))) = tokio::task::spawn_blocking(move || reader.read(&*log)).await else { break };
            for BankDeadLetter { bank, rejected } in letters {
                let feed = sync::lock(&shared.feeds).get(&bank).cloned();
                if let Some(feed) = feed
                    && feed.note_rejected(rejected)
                {
                    shared.look(&handle, feed);
                }
            }
        }
    }
}

impl HubState {
    fn live(&self, question: Question) -> LiveQuestion {
        let memory = &self.asking.memory;
        let partition = partition_of(&question.bank, memory.partitions());
        let watched = memory.replica().changes().watch(&question.bank);
        LiveQuestion::new(question, partition, watched, SLOT)
    }

    /// Asks until the newest version is what the bank holds.
    fn ask(self: &Arc<Self>, handle: &Handle, live: Arc<LiveQuestion>) {
        let shared = Arc::clone(self);
        handle.spawn(async move {
            if !live.ask(&shared.asking).await {
                // The next follower gets the reason, or finds that the problem is solved.
                let mut questions = sync::lock(&shared.questions);
                if let Some(of_bank) = questions.get_mut(&live.question.bank) {
                    of_bank.retain(|_, other| !Arc::ptr_eq(other, &live));
                }
            }
        });
    }

    fn feed(&self, bank: &Bank) -> BankFeed {
        let memory = &self.asking.memory;
        let watched = memory.replica().changes().watch_records(bank);
        let (partition, dead_letters) = (partition_of(bank, memory.partitions()), Arc::clone(&self.dead_letters));
        BankFeed::new(bank.clone(), partition, watched, dead_letters)
    }

    /// Scans a bank until the newest scan shows what it holds.
    fn look(self: &Arc<Self>, handle: &Handle, feed: Arc<BankFeed>) {
        let shared = Arc::clone(self);
        handle.spawn(async move {
            if !feed.scan(&shared.asking.memory).await {
                // As for a question that is no longer asked.
                sync::lock(&shared.feeds).retain(|_, other| !Arc::ptr_eq(other, &feed));
            }
        });
    }

    fn feeds_where(&self, passes: impl Fn(&BankFeed) -> bool) -> Vec<Arc<BankFeed>> {
        sync::lock(&self.feeds).values().filter(|feed| passes(feed)).cloned().collect()
    }

    fn of_banks(&self, banks: &BTreeSet<Bank>) -> Vec<Arc<LiveQuestion>> {
        let questions = sync::lock(&self.questions);
        banks.iter().filter_map(|bank| questions.get(bank)).flat_map(BTreeMap::values).cloned().collect()
    }

    fn of_partitions(&self, partitions: &BTreeSet<u32>) -> Vec<Arc<LiveQuestion>> {
        if partitions.is_empty() {
            return Vec::new();
        }
        let questions = sync::lock(&self.questions);
        let all = questions.values().flat_map(BTreeMap::values);
        all.filter(|live| partitions.contains(&live.partition)).cloned().collect()
    }
}

/// Drops questions that no one has followed for some time.
fn forget_idle(questions: &mut LiveQuestions, linger: Duration) {
    for of_bank in questions.values_mut() {
        of_bank.retain(|_, live| live.idle().is_none_or(|idle| idle < linger));
    }
    questions.retain(|_, of_bank| !of_bank.is_empty());
}

/// Drops banks that no one has followed for some time.
fn forget_idle_feeds(feeds: &mut BankFeeds, linger: Duration) {
    feeds.retain(|_, feed| feed.idle().is_none_or(|idle| idle < linger));
}
