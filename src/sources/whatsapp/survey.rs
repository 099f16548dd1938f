//! The first pass over a chat finds what holds for all of its messages.
//!
//! In: the lines of a file. Out: the form in which its messages begin, the order of its dates, and which names are not
//! people. A line that begins in another form was pasted by somebody, and is part of a message. A line in the file's
//! own form with an unknown word for the half of the day begins a message, too, whose time is not known. Memory does
//! not grow with the file, except with its senders, of which up to 20,000 are kept.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
};

use jiff::civil::Date;

use super::{
    body::{WhatsappBody, body, clean_name, is_notice_start, words},
    date_order::{WhatsappDateFacts, WhatsappDateOrder, WhatsappOrderEvidence},
    header::{WhatsappHeader, WhatsappHeaderEnd, WhatsappHeaderShape, WhatsappYearPosition, header, is_space},
    phrases::PHRASES,
};
use crate::lines::StreamLines;
use types::config::DateOrder;

/// How many senders are kept.
const MAX_SENDERS: usize = 20_000;
/// How many forms of a message's beginning are distinguished.
const MAX_SHAPES: usize = 32;
/// How many unknown words for the halves of a day a file may have. More are the beginnings of names.
const MAX_HALVES: usize = 8;

/// What holds for a whole chat.
#[derive(Debug, Clone, Default)]
pub(super) struct WhatsappSurvey {
    orders: Vec<(WhatsappHeaderShape, WhatsappDateOrder, WhatsappOrderEvidence)>,
    /// The words between a time and a dash that name an unknown half of the day.
    halves: BTreeSet<String>,
    /// The first line with such a word and the word, if most lines have one, in brackets or in front of a dash.
    unknown_half: Option<(u64, String)>,
    names: WhatsappSenderNames,
    /// Whether the dates contradict each other.
    mixed: bool,
}

/// Any leap year.
const LEAP_YEAR: u32 = 2012;

/// The year of the first message of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhatsappFirstYear {
    /// Its line has it.
    Named,
    /// It follows from later lines.
    Is(u32),
    /// No line of the file has a year.
    Unknown,
}

/// Whether a line's date states its year.
pub(super) fn has_year(header: &WhatsappHeader<'_>) -> bool {
    !matches!(header.shape.year, WhatsappYearPosition::Named | WhatsappYearPosition::Missing)
        || header.date.last().is_some_and(|year| *year > 0)
}

/// Whether a date without a year belongs to the year after that of the previous date. A small step back is allowed,
/// because messages may arrive late.
pub(super) fn is_next_year(before: Date, day: Date) -> bool {
    const LATE_DAYS: i32 = 31;
    before.day_of_year() as i32 - day.day_of_year() as i32 > LATE_DAYS
}

/// The senders of a chat.
#[derive(Debug, Clone, Default)]
struct WhatsappSenderNames {
    known: HashSet<String>,
    /// Names that contain a colon, by the text before it.
    with_colon: HashMap<String, String>,
    /// The group itself, to which newer versions attribute notices.
    groups: HashSet<String>,
}

/// The sender of a message.
#[derive(Debug, PartialEq)]
pub(super) enum WhatsappSender<'a> {
    /// A person, and the text after the name.
    Person(String, &'a str),
    /// Nobody, or the group: it is a notice from the app.
    Nobody,
}

#[derive(Default)]
struct WhatsappShapeFacts {
    messages: u64,
    dates: WhatsappDateFacts,
    senders: HashMap<String, WhatsappSenderFacts>,
    /// How many lines have words in the place of an AM/PM marker, these words, and the first such line.
    unknown_halves: u64,
    halves: BTreeSet<String>,
    first_unknown: Option<(u64, String)>,
}

#[derive(Default)]
struct WhatsappSenderFacts {
    messages: u64,
    /// The text before a second colon, and how often it occurred.
    second: Option<(String, u64)>,
    /// Whether the notice about encryption is attributed to it.
    has_encryption_notice: bool,
}

impl WhatsappSurvey {
    /// Reads a whole file. `chat` is the chat's name, if the file's name states it; no message can be from a later year
    /// than `this_year`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn of(
        lines: &mut StreamLines,
        chat: Option<&str>,
        setting: Option<DateOrder>,
        this_year: u32,
    ) -> io::Result<Self> {
        let mut shapes: Vec<(WhatsappHeaderShape, WhatsappShapeFacts)> = Vec::new();
        while let Some(line) = lines.next()? {
            let text = String::from_utf8_lossy(&line.bytes);
            let Some(header) = header(&text).filter(|header| !is_notice_or_words(header)) else { continue };
            let at = match shapes.iter().position(|(shape, _)| *shape == header.shape) {
                Some(at) => at,
                None if shapes.len() < MAX_SHAPES => {
                    shapes.push((header.shape, WhatsappShapeFacts::default()));
                    shapes.len() - 1
                }
                None => continue,
            };
            if let Some((_, facts)) = shapes.get_mut(at) {
                facts.add(&header, line.number);
            }
        }
        Ok(Self::new(shapes, chat, |shape, dates| dates.settle(shape, setting, this_year)))
    }

    fn new(
        mut shapes: Vec<(WhatsappHeaderShape, WhatsappShapeFacts)>,
        chat: Option<&str>,
        settle: impl Fn(WhatsappHeaderShape, &WhatsappDateFacts) -> (WhatsappDateOrder, WhatsappOrderEvidence),
    ) -> Self {
        // Lines with known and with unknown words for the half of the day are of one form.
        let mut forms: HashMap<WhatsappHeaderShape, u64> = HashMap::new();
        for (shape, facts) in &shapes {
            *forms.entry(facts.form(*shape)).or_default() += facts.messages;
        }
        let total: u64 = forms.values().sum();
        let most = forms.values().copied().max().unwrap_or(0);
        // One phone writes one form. If no form prevails, the file was put together from several phones.
        let prevails = most * 3 >= total * 2;
        shapes.retain(|(shape, facts)| {
            let count = forms.get(&facts.form(*shape)).copied().unwrap_or(0);
            !prevails || count == most || (count >= 3 && count * 5 >= total)
        });
        let own: u64 = shapes.iter().map(|(_, facts)| facts.messages).sum();
        let with_halves = shapes.iter().filter(|(shape, facts)| facts.names_halves(*shape));
        let unknown: u64 = with_halves.map(|(_, facts)| facts.unknown_halves).sum();
        let is_mostly_unknown = unknown * 2 > own;
        let mut survey = Self::default();
        let mut senders: HashMap<String, WhatsappSenderFacts> = HashMap::new();
        for (shape, facts) in shapes {
            if facts.names_halves(shape) {
                let earliest = [survey.unknown_half.take(), facts.first_unknown.filter(|_| is_mostly_unknown)];
                survey.unknown_half = earliest.into_iter().flatten().min();
                survey.halves.extend(facts.halves);
            }
            let (order, source) = settle(shape, &facts.dates);
            survey.mixed |= facts.dates.contradicts_itself(order);
            survey.orders.push((shape, order, source));
            for (name, facts) in facts.senders {
                senders.entry(name).or_default().merge(facts);
            }
        }
        survey.names = WhatsappSenderNames::new(senders, chat);
        survey
    }

    /// Whether the file has messages.
    pub(super) fn has_messages(&self) -> bool {
        !self.orders.is_empty()
    }

    /// The first line with an unknown word for the half of the day and that word, if most lines have one.
    pub(super) fn unknown_half(&self) -> Option<(u64, &str)> {
        self.unknown_half.as_ref().map(|(line, word)| (*line, word.as_str()))
    }

    /// Whether the calendar of some dates is not known.
    pub(super) fn has_two_calendars(&self) -> bool {
        self.orders.iter().any(|(.., source)| *source == WhatsappOrderEvidence::TwoCalendars)
    }

    /// The header of a line, if it is in one of the file's own forms, and the order of its date. The header has an
    /// unknown half of the day only if the file's lines have such words.
    pub(super) fn header<'a>(&self, line: &'a str) -> Option<(WhatsappHeader<'a>, WhatsappDateOrder)> {
        let mut header = header(line)?;
        let (_, order, _) = self.orders.iter().find(|(shape, ..)| *shape == header.shape)?;
        let is_known_as_half =
            |word: &str| header.shape.end == WhatsappHeaderEnd::Bracket || self.halves.contains(word);
        if !header.unknown_half.is_some_and(is_known_as_half) {
            if is_notice_or_words(&header) {
                return None;
            }
            header.unknown_half = None;
        }
        Some((header, *order))
    }

    /// The year of the first message of a file whose first lines state none: the year in the first line that has one,
    /// minus the number of year changes before it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn first_year(&self, lines: &mut StreamLines) -> io::Result<WhatsappFirstYear> {
        let (mut any, mut last, mut turns): (_, Option<Date>, u32) = (false, None, 0);
        while let Some(line) = lines.next()? {
            let text = String::from_utf8_lossy(&line.bytes);
            let Some((header, order)) = self.header(&text) else { continue };
            let is_dated = has_year(&header);
            // Compared within a leap year, so that every day exists.
            let numbers = if is_dated { header.date } else { WhatsappDateOrder::with_year(header.date, LEAP_YEAR) };
            let Some(date) = order.date(numbers) else { continue };
            let within = date.with().year(LEAP_YEAR as i16).build().unwrap_or(date);
            turns += u32::from(last.is_some_and(|last| is_next_year(last, within)));
            if is_dated {
                let year = u32::try_from(date.year()).unwrap_or_default();
                return Ok(if any {
                    WhatsappFirstYear::Is(year.saturating_sub(turns))
                } else {
                    WhatsappFirstYear::Named
                });
            }
            (any, last) = (true, Some(within));
        }
        Ok(WhatsappFirstYear::Unknown)
    }

    /// The notice that says how the dates are read, and why.
    pub(super) fn notice(&self) -> Option<String> {
        let (_, order, source) = self.orders.first()?;
        let agree = self.orders.iter().all(|(_, other, _)| other == order);
        if !agree || self.mixed {
            return Some("its dates are in several orders, and each is read as its numbers allow".to_owned());
        }
        let why = match source {
            WhatsappOrderEvidence::Numbers => "some of them allow no other order",
            WhatsappOrderEvidence::Words => "their months are words",
            WhatsappOrderEvidence::Attachments => "known from the names of attached files",
            WhatsappOrderEvidence::Sequence => "known from their sequence",
            WhatsappOrderEvidence::Setting => "as source.date_order says",
            WhatsappOrderEvidence::Assumed => {
                "assumed, since the file does not show it; set source.date_order if that is wrong"
            }
            WhatsappOrderEvidence::TwoCalendars => "though they fit the Persian and the Gregorian calendar",
        };
        Some(format!("its dates are read as {} ({why})", order.words()))
    }

    /// The sender, from the text after the date and time.
    pub(super) fn sender<'a>(&self, rest: &'a str) -> WhatsappSender<'a> {
        let Some((raw, said)) = split_sender(rest).or_else(|| self.names.split_known(rest)) else {
            return WhatsappSender::Nobody;
        };
        if is_notice_start(raw) {
            return WhatsappSender::Nobody;
        }
        let name = clean_name(raw);
        if name.is_empty() || self.names.groups.contains(&name) {
            return WhatsappSender::Nobody;
        }
        let Some(second) = self.names.with_colon.get(&name) else { return WhatsappSender::Person(name, said) };
        let full = format!("{name}: {second}");
        match said.strip_prefix(second.as_str()) {
            Some(behind) => match behind.strip_prefix(':') {
                Some(said) => WhatsappSender::Person(full, said.strip_prefix(is_space).unwrap_or(said)),
                // `Team: Support joined` is a notice about Team: Support.
                None if behind.starts_with(is_space) => WhatsappSender::Nobody,
                None => WhatsappSender::Person(name, said),
            },
            None => WhatsappSender::Person(name, said),
        }
    }
}

/// Whether a line without a dash and without a bracket has no sender: then it is not a message, or it is a notice after
/// an unknown half of the day.
fn is_notice_or_words(header: &WhatsappHeader<'_>) -> bool {
    header.shape.end == WhatsappHeaderEnd::Space && !header.rest.contains(": ")
}

impl WhatsappShapeFacts {
    /// Whether the words in the place of an AM/PM marker name halves of the day. Before a dash they do if most lines
    /// have such words, and few different ones; else they are the beginnings of names.
    fn names_halves(&self, shape: WhatsappHeaderShape) -> bool {
        match shape.end {
            WhatsappHeaderEnd::Bracket => self.unknown_halves > 0,
            _ => self.unknown_halves * 2 > self.messages && self.halves.len() <= MAX_HALVES,
        }
    }

    /// The form that the lines would have if their words were known.
    fn form(&self, shape: WhatsappHeaderShape) -> WhatsappHeaderShape {
        let is_dashed = shape.end == WhatsappHeaderEnd::Space && self.names_halves(shape);
        if is_dashed { WhatsappHeaderShape { end: WhatsappHeaderEnd::Dash, half: true, ..shape } } else { shape }
    }

    fn add(&mut self, header: &WhatsappHeader<'_>, line: u64) {
        self.messages += 1;
        self.dates.add(header);
        if let Some(half) = header.unknown_half {
            self.unknown_halves += 1;
            self.first_unknown.get_or_insert_with(|| (line, half.to_owned()));
            if self.halves.len() <= MAX_HALVES {
                self.halves.insert(half.to_owned());
            }
        }
        let Some((raw, said)) = split_sender(header.rest) else { return };
        if is_notice_start(raw) {
            return;
        }
        let name = clean_name(raw);
        if name.is_empty() || (self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(&name)) {
            return;
        }
        let facts = self.senders.entry(name).or_default();
        facts.messages += 1;
        if let Some((second, _)) = split_sender(said).filter(|(second, _)| second.chars().count() <= 40) {
            match &mut facts.second {
                Some((known, count)) if known == second => *count += 1,
                Some(_) => {}
                None => facts.second = Some((second.to_owned(), 1)),
            }
        }
        // Only the first messages are checked: the lists of notices are long, and this notice is at the start of a
        // chat.
        if self.messages <= 20 && body(said) == WhatsappBody::Notice {
            let start = words(said).to_lowercase();
            facts.has_encryption_notice |= PHRASES.notices.iter().any(|p| start.starts_with(p));
        }
    }
}

impl WhatsappSenderFacts {
    fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.has_encryption_notice |= other.has_encryption_notice;
        match (&mut self.second, other.second) {
            (Some((known, count)), Some((second, more))) if *known == second => *count += more,
            (None, second) => self.second = second,
            _ => {}
        }
    }
}

impl WhatsappSenderNames {
    fn new(senders: HashMap<String, WhatsappSenderFacts>, chat: Option<&str>) -> Self {
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let chat_letters = chat.map(letters).filter(|c| !c.is_empty());
        let mut names = Self::default();
        let people = senders.len();
        for (name, facts) in senders {
            if let Some((second, count)) = facts.second {
                let full = format!("{name}: {second}");
                let is_chat = chat_letters.as_ref().is_some_and(|chat| *chat == letters(&full));
                if is_chat || (count >= 3 && count * 4 >= facts.messages * 3) {
                    names.with_colon.insert(name.clone(), second);
                }
            }
            // In a chat of two, the notice about encryption is attributed to the other person.
            let is_chat = chat.is_some_and(|chat| clean_name(chat) == name);
            if matches!(name.as_str(), "System" | "WhatsApp")
                || (people >= 3 && (is_chat || facts.has_encryption_notice))
            {
                names.groups.insert(name.clone());
            }
            names.known.insert(name);
        }
        names
    }

    /// A name known from other messages, followed by a colon without a space.
    fn split_known<'a>(&self, rest: &'a str) -> Option<(&'a str, &'a str)> {
        let (name, said) = rest.split_once(':')?;
        self.known.contains(&clean_name(name)).then_some((name, said))
    }
}

/// The text before and the text after the first colon of the first line that is followed by a space, a mark or the end.
fn split_sender(rest: &str) -> Option<(&str, &str)> {
    let first = rest.split('\n').next().unwrap_or_default();
    for (at, _) in first.match_indices(':') {
        let behind = rest.get(at + 1..).unwrap_or_default();
        if behind.is_empty() || behind.starts_with(is_space) || behind.starts_with('\u{200e}') {
            return Some((rest.get(..at)?, behind.strip_prefix(is_space).unwrap_or(behind)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{super::header::WhatsappHeaderEnd, *};

    #[test]
    fn the_end_of_a_header_is_part_of_its_shape() {
        let ends: Vec<_> =
            ["[1/2/24, 10:00:00] A: x", "1/2/24, 10:00 - A: x", "1.2.24 10.00.00: A: x", "1/2/24, 10:00 A: x"]
                .iter()
                .map(|line| header(line).unwrap().shape.end)
                .collect();
        assert_eq!(
            ends,
            [WhatsappHeaderEnd::Bracket, WhatsappHeaderEnd::Dash, WhatsappHeaderEnd::Colon, WhatsappHeaderEnd::Space]
        );
    }
}
