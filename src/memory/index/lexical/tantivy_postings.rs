//! The committed bulk of the lexical channel: one tantivy index in memory for the shards of a thread.
//!
//! In: insertions and deletions with growing tickets. Out: candidates by BM25 among the committed units. A commit takes
//! milliseconds to a tenth of a second, so a separate thread commits and reloads; [`TantivyPostings::committed`] says
//! up to which ticket searches are complete. If the index fails, it only stops committing: the exact tail of
//! `lexical_index` then finds everything.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term,
    collector::TopDocs,
    query::{Bm25StatisticsProvider, BooleanQuery, Occur, Query, TermQuery},
    schema::{BytesOptions, FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{PreTokenizedString, Token},
};

use super::term_analyzer::{TermBag, TermKey};
use types::model::{BankKey, UnitId};

/// tantivy's smallest budget for one writing thread.
const WRITER_BYTES: usize = 15_000_000;

/// Feeds tantivy and searches it. The index is created only when it is first needed.
#[derive(Default)]
pub(in crate::index) struct TantivyPostings {
    last_ticket: u64,
    requested: u64,
    /// Changes that have not been sent to the index yet, by ticket.
    queue: BTreeMap<u64, IndexOrder>,
    /// The tickets of the insertions in the queue.
    queued: HashMap<[u8; 24], u64>,
    bulk: Option<TantivyBulk>,
}

struct TantivyBulk {
    orders: Sender<IndexOrder>,
    committed: Arc<AtomicU64>,
    reader: IndexReader,
    fields: TantivyFields,
}

enum IndexOrder {
    Insert { key: [u8; 24], bank: BankKey, id: UnitId, bag: Arc<TermBag> },
    Delete { key: [u8; 24] },
    Forget { bank: BankKey },
    Commit { ticket: u64 },
}

#[derive(Debug, Clone, Copy)]
struct TantivyFields {
    key: Field,
    bank: Field,
    id: Field,
    words: Field,
}

impl TantivyPostings {
    /// Queues a unit; returns the ticket of the insertion.
    pub(in crate::index) fn insert(&mut self, bank: BankKey, id: UnitId, bag: &Arc<TermBag>) -> u64 {
        self.last_ticket += 1;
        let key = key(bank, id);
        self.queue.insert(self.last_ticket, IndexOrder::Insert { key, bank, id, bag: Arc::clone(bag) });
        self.queued.insert(key, self.last_ticket);
        self.last_ticket
    }

    /// Queues a deletion.
    pub(in crate::index) fn delete(&mut self, bank: BankKey, id: UnitId) {
        let key = key(bank, id);
        // Only a unit that was sent to the index must be deleted there.
        match self.queued.remove(&key) {
            Some(ticket) => drop(self.queue.remove(&ticket)),
            None => self.enqueue(IndexOrder::Delete { key }),
        }
    }

    /// Deletes the units of these banks.
    pub(in crate::index) fn forget(&mut self, banks: impl Iterator<Item = BankKey>) {
        let banks: HashSet<BankKey> = banks.collect();
        if banks.is_empty() {
            return;
        }
        let gone = |order: &IndexOrder| matches!(order, IndexOrder::Insert { bank, .. } if banks.contains(bank));
        self.queue.retain(|_, order| !gone(order));
        let queue = &self.queue;
        self.queued.retain(|_, ticket| queue.contains_key(ticket));
        if self.bulk.is_some() {
            banks.into_iter().for_each(|bank| self.enqueue(IndexOrder::Forget { bank }));
            self.commit();
        }
    }

    fn enqueue(&mut self, order: IndexOrder) {
        self.last_ticket += 1;
        self.queue.insert(self.last_ticket, order);
    }

    /// Sends the queue to be committed. Call this at the end of an epoch, once a bank has more uncommitted units than a
    /// search should score one by one.
    pub(in crate::index) fn commit(&mut self) {
        if self.committed() < self.requested {
            // One commit at a time: the next includes everything that was queued during this one.
            return;
        }
        if self.bulk.is_none() {
            self.bulk = TantivyBulk::open().ok();
        }
        let Some(bulk) = &self.bulk else { return };
        self.requested = self.last_ticket;
        self.queued.clear();
        let queue = std::mem::take(&mut self.queue);
        let orders = queue.into_values().chain([IndexOrder::Commit { ticket: self.requested }]);
        // A closed channel means that the thread has stopped: the tail finds everything from then on.
        orders.for_each(|order| drop(bulk.orders.send(order)));
    }

    /// Searches are complete for insertions up to this ticket.
    #[must_use]
    pub(in crate::index) fn committed(&self) -> u64 {
        self.bulk.as_ref().map_or(0, |b| b.committed.load(Ordering::Acquire))
    }

    /// At most `limit` committed units of the bank, best first. May include deleted units.
    #[must_use]
    pub(in crate::index) fn search(
        &self,
        bank: BankKey,
        statistics: &BankStatistics<'_>,
        limit: usize,
    ) -> Vec<(f32, UnitId)> {
        self.bulk.as_ref().and_then(|bulk| bulk.search(bank, statistics, limit).ok()).unwrap_or_default()
    }
}

impl TantivyBulk {
    fn open() -> tantivy::Result<Self> {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default().set_index_option(IndexRecordOption::WithFreqs).set_fieldnorms(true);
        let fields = TantivyFields {
            key: schema.add_bytes_field("key", BytesOptions::default() | INDEXED),
            bank: schema.add_bytes_field("bank", BytesOptions::default() | INDEXED),
            id: schema.add_u64_field("id", FAST),
            words: schema.add_text_field("words", TextOptions::default().set_indexing_options(words)),
        };
        let index = Index::create_in_ram(schema.build());
        let writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let committed = Arc::new(AtomicU64::new(0));
        let (orders, incoming) = unbounded();
        let (seen, fresh) = (committed.clone(), reader.clone());
        std::thread::Builder::new()
            .name("lexical".to_owned())
            .spawn(move || drop(write(writer, &incoming, &fresh, &seen, fields)))?;
        Ok(Self { orders, committed, reader, fields })
    }

    fn search(
        &self,
        bank: BankKey,
        statistics: &BankStatistics<'_>,
        limit: usize,
    ) -> tantivy::Result<Vec<(f32, UnitId)>> {
        let clauses: Vec<(Occur, Box<dyn Query>)> = statistics
            .stems
            .iter()
            .map(|(stem, _)| {
                let term = Term::from_field_text(self.fields.words, &term_text(bank, *stem));
                let query: Box<dyn Query> = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
                (Occur::Should, query)
            })
            .collect();
        let figures = BankStatisticsProvider { statistics, bank, words: self.fields.words };
        let searcher = self.reader.searcher();
        let top = searcher.search_with_statistics_provider(
            &BooleanQuery::new(clauses),
            &TopDocs::with_limit(limit).order_by_score(),
            &figures,
        )?;
        top.into_iter()
            .map(|(score, doc)| {
                let ids = searcher.segment_reader(doc.segment_ord).fast_fields().u64("id")?;
                Ok((score, UnitId(ids.first(doc.doc_id).unwrap_or_default())))
            })
            .collect()
    }
}

fn write(
    mut writer: IndexWriter,
    orders: &Receiver<IndexOrder>,
    reader: &IndexReader,
    committed: &AtomicU64,
    fields: TantivyFields,
) -> tantivy::Result<()> {
    for order in orders {
        match order {
            IndexOrder::Insert { key, bank, id, bag } => {
                let mut document = TantivyDocument::default();
                document.add_bytes(fields.key, &key);
                document.add_bytes(fields.bank, &bank.0.to_le_bytes());
                document.add_u64(fields.id, id.0);
                document.add_pre_tokenized_text(fields.words, tokens(bank, &bag));
                writer.add_document(document)?;
            }
            IndexOrder::Delete { key } => {
                writer.delete_term(Term::from_field_bytes(fields.key, &key));
            }
            IndexOrder::Forget { bank } => {
                writer.delete_term(Term::from_field_bytes(fields.bank, &bank.0.to_le_bytes()));
            }
            IndexOrder::Commit { ticket } => {
                writer.commit()?;
                reader.reload()?;
                committed.store(ticket, Ordering::Release);
            }
        }
    }
    Ok(())
}

/// The figures that tantivy scores by: the bank's, not the index's.
#[derive(Debug)]
pub(in crate::index) struct BankStatistics<'a> {
    /// Units of the bank.
    pub units: u64,
    /// Words of the bank.
    pub words: u64,
    /// The question's stems and how many units hold each.
    pub stems: &'a [(TermKey, u64)],
}

/// A bank's figures instead of the index's, which count deleted units of all banks.
struct BankStatisticsProvider<'a> {
    statistics: &'a BankStatistics<'a>,
    bank: BankKey,
    words: Field,
}

impl Bm25StatisticsProvider for BankStatisticsProvider<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.statistics.words)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.statistics.units)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let found = self
            .statistics
            .stems
            .iter()
            .find(|(stem, _)| *term == Term::from_field_text(self.words, &term_text(self.bank, *stem)));
        Ok(found.map_or(0, |(_, units)| *units))
    }
}

fn tokens(bank: BankKey, bag: &TermBag) -> PreTokenizedString {
    let tokens = bag
        .terms()
        .flat_map(|(term, count)| std::iter::repeat_n(term_text(bank, term), usize::from(count)))
        .enumerate()
        .map(|(position, text)| Token { position, text, ..Token::default() })
        .collect();
    PreTokenizedString { text: String::new(), tokens }
}

/// A stem of one bank: a search in a bank finds no other bank's words.
fn term_text(bank: BankKey, term: TermKey) -> String {
    format!("{:032x}{term:016x}", bank.0)
}

fn key(bank: BankKey, id: UnitId) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&bank.0.to_le_bytes());
    key[16..].copy_from_slice(&id.0.to_le_bytes());
    key
}
