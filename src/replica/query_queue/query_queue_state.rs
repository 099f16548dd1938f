//! All questions that wait, under one lock.
//!
//! In: questions, each with the function that takes its answer. Out: the next question for an answering thread, and the
//! questions that are over. Nothing here answers, and no function of a transport is called under the lock.

use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

use super::{
    PipelineError, QueryRequest,
    answer_order::AnswerOrder,
    fair_queue::{FairQueue, FairQueueLimits, QueueKey, QueueLimitScope, QueueTenant},
};
use memory::recall::RecallExplanation;
use types::model::{Bank, Evidence, ExplanationQuery};

/// Takes the answer to one question.
pub(super) type AnswerCallback<T> = Box<dyn FnOnce(Result<T, PipelineError>) + Send>;

/// Delivers one answer to its transport.
pub(super) type AnswerDelivery = Box<dyn FnOnce() + Send>;

/// What a caller wants for a question, with the function that takes it.
pub(super) enum RequestedAnswer {
    /// Evidence.
    Evidence(AnswerCallback<Evidence>),
    /// What its answer does with a turn.
    Explanation(ExplanationQuery, AnswerCallback<RecallExplanation>),
}

impl RequestedAnswer {
    /// The delivery of an error.
    pub(super) fn refused(self, error: PipelineError) -> AnswerDelivery {
        match self {
            Self::Evidence(reply) => Box::new(move || reply(Err(error))),
            Self::Explanation(_, reply) => Box::new(move || reply(Err(error))),
        }
    }
}

/// Questions that wait for a thread: of one bank a thousand, or 8 MiB of the longest texts.
const READY: FairQueueLimits =
    FairQueueLimits { of_bank: 1_024, of_bank_bytes: 8 << 20, all: 8_192, all_bytes: 64 << 20 };
/// Questions that wait for a turn. They may wait for an hour, so one bank gets little space.
const PARKED: FairQueueLimits =
    FairQueueLimits { of_bank: 256, of_bank_bytes: 1 << 20, all: 4_096, all_bytes: 32 << 20 };
/// Questions that wait apart, because each may take a hundred times as long as others.
const APART: FairQueueLimits = FairQueueLimits { of_bank: 64, of_bank_bytes: 1 << 20, all: 512, all_bytes: 16 << 20 };
/// Bytes of a question that is answered among the others; a longer one waits apart.
const USUAL_BYTES: usize = 1_024;
/// What a question takes besides its text, in bytes.
const QUESTION_BYTES: usize = 256;

/// A question that waits.
pub(super) struct QueuedQuery {
    pub(super) asked: Box<QueryRequest>,
    pub(super) wanted: RequestedAnswer,
}

/// Where a question waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueSection {
    Ready,
    Apart,
    Parked,
}

/// Everything that waits or is in progress.
pub(super) struct QueryQueueState {
    /// Ready to be answered.
    pub(super) ready: FairQueue<QueuedQuery>,
    /// Waiting for a turn that the memory does not reflect.
    pub(super) parked: FairQueue<QueuedQuery>,
    /// About the past, long, or for the rank among every part of a bank.
    pub(super) apart: FairQueue<QueuedQuery>,
    /// The order of the answers to usual questions.
    pub(super) order: AnswerOrder<AnswerDelivery>,
    /// Usual questions of each sender that are in progress.
    pub(super) in_progress: HashMap<QueueTenant, usize>,
    /// Banks with a long question or one about the past in progress, and their senders.
    pub(super) apart_in_progress: HashSet<QueueTenant>,
    /// Whether a thread has skipped a bank whose shard is loading, since the keeper last checked.
    pub(super) passed_over: bool,
    /// Whether the keeper waits because nothing else does.
    pub(super) keeper_idles: bool,
    pub(super) stopping: bool,
}

impl QueryQueueState {
    pub(super) fn new() -> Self {
        Self {
            ready: FairQueue::new(READY),
            parked: FairQueue::new(PARKED),
            apart: FairQueue::new(APART),
            order: AnswerOrder::default(),
            in_progress: HashMap::new(),
            apart_in_progress: HashSet::new(),
            passed_over: false,
            keeper_idles: false,
            stopping: false,
        }
    }

    /// Adds a question that waits; `reached` returns the first offset of a bank's turns in a partition that the memory
    /// does not reflect.
    pub(super) fn add(
        &mut self,
        waiting: QueuedQuery,
        reached: impl FnOnce(u32, &Bank) -> Option<u64>,
    ) -> Result<QueueSection, (QueuedQuery, QueueLimitScope)> {
        let bank = &waiting.asked.question.bank;
        let is_ready = waiting.asked.after.is_none_or(|(partition, next)| reached(partition, bank) >= Some(next));
        if is_ready {
            return self.add_ready(waiting);
        }
        let (lane, bytes) = (waiting.asked.lane(), bytes(&waiting));
        self.parked.push(&lane, waiting, bytes).map(|()| QueueSection::Parked)
    }

    fn add_ready(&mut self, waiting: QueuedQuery) -> Result<QueueSection, (QueuedQuery, QueueLimitScope)> {
        let (lane, bytes) = (waiting.asked.lane(), bytes(&waiting));
        let QueryRequest { question, as_of, .. } = &*waiting.asked;
        let scores_all = matches!(&waiting.wanted, RequestedAnswer::Explanation(subject, _) if subject.every_part);
        let apart = as_of.is_some() || scores_all || question.text.len() > USUAL_BYTES;
        let (queue, place) =
            if apart { (&mut self.apart, QueueSection::Apart) } else { (&mut self.ready, QueueSection::Ready) };
        queue.push(&lane, waiting, bytes).map(|()| place)
    }

    /// The next usual question, with its ticket in its bank's order. Its bank and its sender have fewer than `most` in
    /// progress, and its shard is not loading.
    pub(super) fn next_ready(
        &mut self,
        most: usize,
        loading: impl Fn(&Bank) -> bool,
    ) -> Option<(QueueKey, QueuedQuery, u64)> {
        let (order, in_progress, passed_over) = (&self.order, &self.in_progress, &mut self.passed_over);
        let (lane, waiting) = self.ready.pop(|lane| {
            let is_loading = loading(&lane.bank);
            *passed_over |= is_loading;
            let of_sender = in_progress.get(&lane.sender()).copied().unwrap_or_default();
            !is_loading && order.in_progress(&lane.bank) < most && of_sender < most
        })?;
        let ticket = self.order.begin(&lane.bank);
        *self.in_progress.entry(lane.sender()).or_default() += 1;
        Some((lane, waiting, ticket))
    }

    /// Notes that a usual question is answered.
    pub(super) fn done(&mut self, lane: &QueueKey, ticket: u64, delivery: AnswerDelivery) {
        self.order.note_answer(&lane.bank, ticket, delivery);
        let sender = lane.sender();
        if let Some(of_sender) = self.in_progress.get_mut(&sender) {
            *of_sender -= 1;
            if *of_sender == 0 {
                self.in_progress.remove(&sender);
            }
        }
    }

    /// The next question that waits apart. A bank and a token each have at most one in progress, and a bank has none
    /// while its shard is loading.
    pub(super) fn next_apart(&mut self, loading: impl Fn(&Bank) -> bool) -> Option<(QueueKey, QueuedQuery)> {
        let (in_progress, passed_over) = (&self.apart_in_progress, &mut self.passed_over);
        let (lane, waiting) = self.apart.pop(|lane| {
            let is_loading = loading(&lane.bank);
            *passed_over |= is_loading;
            let is_busy =
                [QueueTenant::Bank(lane.bank.clone()), lane.sender()].iter().any(|of| in_progress.contains(of));
            !is_loading && !is_busy
        })?;
        self.apart_in_progress.extend([QueueTenant::Bank(lane.bank.clone()), lane.sender()]);
        Some((lane, waiting))
    }

    /// Notes that a question that waited apart is answered.
    pub(super) fn done_apart(&mut self, lane: &QueueKey) {
        for of in [QueueTenant::Bank(lane.bank.clone()), lane.sender()] {
            self.apart_in_progress.remove(&of);
        }
    }

    /// Questions that waited apart and are being answered.
    pub(super) fn apart_in_progress(&self) -> usize {
        self.apart_in_progress.iter().filter(|of| matches!(of, QueueTenant::Bank(_))).count()
    }

    /// Whether a bank that was skipped because its shard was loading may have its turn now.
    pub(super) fn may_go_on(&mut self, loading: impl Fn(&Bank) -> bool) -> bool {
        let go_on = self.passed_over && [&self.ready, &self.apart].iter().any(|queue| queue.any(|bank| !loading(bank)));
        // The flag is set again when a bank is skipped again.
        self.passed_over &= !go_on;
        go_on
    }

    /// Moves the parked questions whose turn the memory reflects by now; returns those for which there is no space.
    pub(super) fn unpark(
        &mut self,
        reached: impl Fn(u32, &Bank) -> Option<u64>,
    ) -> Vec<(QueuedQuery, QueueLimitScope)> {
        let ready = self.parked.take(|waiting| {
            let bank = &waiting.asked.question.bank;
            waiting.asked.after.is_none_or(|(partition, next)| reached(partition, bank) >= Some(next))
        });
        ready.into_iter().filter_map(|waiting| self.add_ready(waiting).err()).collect()
    }

    /// Takes out the questions that are over, and returns the next deadline of the rest.
    pub(super) fn over(&mut self, now: Instant) -> (Vec<QueuedQuery>, Option<Instant>) {
        let (mut over, mut next) = (Vec::new(), None::<Instant>);
        for queue in [&mut self.ready, &mut self.parked, &mut self.apart] {
            let ended = queue.take(|waiting| {
                let cancellation = &waiting.asked.cancellation;
                let is_over = cancellation.check_at(now).is_err();
                if let Some(deadline) = cancellation.deadline().filter(|_| !is_over) {
                    next = Some(next.map_or(deadline, |next| next.min(deadline)));
                }
                is_over
            });
            over.extend(ended);
        }
        (over, next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.len() + self.parked.len() + self.apart.len() == 0
    }
}

fn bytes(waiting: &QueuedQuery) -> usize {
    waiting.asked.question.text.len() + QUESTION_BYTES
}

/// The refusal if there is no space.
pub(super) fn busy(full: QueueLimitScope) -> PipelineError {
    PipelineError::Busy {
        whose: match full {
            QueueLimitScope::Bank => "of this bank",
            QueueLimitScope::Token => "of this token",
            QueueLimitScope::All => "of all banks",
        },
    }
}
