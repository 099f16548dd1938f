//! Banks, questions and profiles as resources.
//!
//! In: the names of the banks, or an address. Out: a page of banks, each a resource; the counts of a bank, what
//! recall finds for a question, or what persons said that lasts. Questions and profiles can be followed. A bank that holds nothing is not a resource.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};

use serde_json::json;

use super::{
    resource_follower::FollowedResource,
    tool_calls::{ClientScope, ToolCalls},
    tools::QuestionInput,
};
use crate::{api::ProfileRequest, query_string, subscriptions::SubscribeRequest};
use types::model::{Bank, EventTime, Question};

/// The beginning of an address; the bank's name follows, which needs no escapes.
const PREFIX: &str = "ripplemem://banks/";
/// The same of a profile.
const PROFILES: &str = "ripplemem://profiles/";
/// Separates the bank's name, which never contains it, from the parameters of a question.
const QUESTION: char = '?';
/// The longest address, in bytes: enough for the longest question with each byte escaped, and the rest.
const MAX_BYTES: usize = 32 << 10;
/// Most banks on a page.
const PAGE: usize = 100;
const JSON: &str = "application/json";

/// A page of banks: the first without `cursor`, otherwise the banks after the bank that `cursor` names.
pub(super) fn list(banks: &[Bank], cursor: Option<&str>) -> ListResourcesResult {
    let start = cursor.map_or(0, |last| banks.partition_point(|bank| bank.as_str() <= last));
    let page: Vec<&Bank> = banks.iter().skip(start).take(PAGE).collect();
    let more = banks.len() > start + page.len();
    let next_cursor = page.last().filter(|_| more).map(|bank| bank.to_string());
    let resource = |bank: &Bank| {
        Resource::new(format!("{PREFIX}{bank}"), bank.as_str())
            .with_mime_type(JSON)
            .with_description("How much it holds.")
    };
    let mut result = ListResourcesResult::with_all_items(page.into_iter().map(resource).collect());
    result.next_cursor = next_cursor;
    result
}

/// What an address names.
#[derive(Debug, PartialEq)]
pub(super) enum ResourceAddress {
    /// How much a bank holds.
    Bank(Bank),
    /// What can be followed.
    Followed(Box<FollowedResource>),
}

impl ResourceAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with the address, for the client.
    pub(super) fn parse(address: &str) -> Result<Self, String> {
        if address.len() > MAX_BYTES {
            return Err(format!("an address of {} bytes; the longest has {MAX_BYTES}", address.len()));
        }
        let forms = || format!("{address}: neither {PREFIX}BANK nor {PREFIX}BANK?question=TEXT nor {PROFILES}BANK");
        if let Some(rest) = address.strip_prefix(PROFILES) {
            return Self::profile(address, rest);
        }
        let rest = address.strip_prefix(PREFIX).ok_or_else(forms)?;
        let (bank, parameters) = rest.split_once(QUESTION).map_or((rest, None), |(bank, rest)| (bank, Some(rest)));
        let bank = Bank::parse(bank).map_err(|e| e.to_string())?;
        let Some(parameters) = parameters else { return Ok(Self::Bank(bank)) };
        let (mut text, mut asked_at, mut asker) = (None, None, None);
        let parameters = query_string::parameters(parameters).map_err(|e| format!("{address}: {e}"))?;
        for (index, (name, value)) in parameters.iter().enumerate() {
            if parameters.iter().take(index).any(|(before, _)| before == name) {
                return Err(format!("{address}: {name} is given twice"));
            }
            match name.as_str() {
                "question" => text = Some(value.clone()),
                "asked_at" => {
                    asked_at = Some(EventTime::parse(value).map_err(|e| format!("{address}: asked_at: {e}"))?);
                }
                "asker" => asker = Some(value.clone()),
                _ => return Err(format!("{address}: {name} means nothing; it takes question, asked_at and asker")),
            }
        }
        let text = text.ok_or_else(forms)?;
        let question = Question { asked_at, asker, ..Question::new(bank, text) };
        Ok(Self::Followed(Box::new(FollowedResource::Question(SubscribeRequest::of(question)))))
    }

    /// The profile of a bank, or with `?person=` of one of its speakers; `rest` is the address without its beginning.
    fn profile(address: &str, rest: &str) -> Result<Self, String> {
        let (bank, parameters) = rest.split_once(QUESTION).unwrap_or((rest, ""));
        let mut show = ProfileRequest::of(Bank::parse(bank).map_err(|e| e.to_string())?);
        for (name, value) in query_string::parameters(parameters).map_err(|e| format!("{address}: {e}"))? {
            if name != "person" {
                return Err(format!("{address}: {name} means nothing; it takes person"));
            }
            if show.person.replace(value).is_some() {
                return Err(format!("{address}: person is given twice"));
            }
        }
        Ok(Self::Followed(Box::new(FollowedResource::Profile(show))))
    }

    /// Reads the address of what can be followed.
    ///
    /// # Errors
    /// What is wrong with the address, for the client.
    pub(super) fn followed(address: &str) -> Result<FollowedResource, String> {
        match Self::parse(address)? {
            Self::Followed(resource) => Ok(*resource),
            Self::Bank(bank) => {
                Err(format!("{address}: follow a question, {PREFIX}{bank}?question=TEXT, or {PROFILES}{bank}"))
            }
        }
    }
}

/// The forms of addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{PREFIX}{{+bank}}"), "bank")
        .with_mime_type(JSON)
        .with_description("How much a bank holds.");
    let question = ResourceTemplate::new(format!("{PREFIX}{{+bank}}{{?question,asked_at,asker}}"), "question")
        .with_mime_type(JSON)
        .with_description("What recall finds for a question. Subscribe to hear when it finds something else.");
    let profile = ResourceTemplate::new(format!("{PROFILES}{{+bank}}{{?person}}"), "profile")
        .with_mime_type(JSON)
        .with_description("What persons said that lasts. Subscribe to hear when it changes.");
    ListResourceTemplatesResult::with_all_items(vec![template, question, profile])
}

/// The resource at an address: the counts of a bank, what recall finds for a question, or a profile.
pub(super) async fn read(
    calls: &ToolCalls,
    offer: &ClientScope,
    address: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: String| ErrorData::resource_not_found(why, Some(json!({ "uri": address })));
    let text = match ResourceAddress::parse(address).map_err(missing)? {
        ResourceAddress::Bank(bank) => {
            let counts = calls.counts(&offer.who, bank).await.map_err(|e| missing(e.to_string()))?;
            serde_json::to_string(&counts).map_err(|e| ErrorData::internal_error(e.to_string(), None))?
        }
        ResourceAddress::Followed(resource) => match *resource {
            FollowedResource::Profile(show) => {
                let shown = calls.profile_of(show, offer).await.map_err(|e| missing(e.to_string()))?;
                shown.structured.to_string()
            }
            FollowedResource::Question(question) => {
                let SubscribeRequest { bank, text, asked_at, asker, .. } = question;
                let ask = QuestionInput { asked_at, asker, bank: Some(bank), ..QuestionInput::of(text) };
                let recalled = calls.recall(ask, offer).await.map_err(|e| missing(e.to_string()))?;
                recalled.structured.to_string()
            }
        },
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, address).with_mime_type(JSON)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bank_is_on_one_page_and_the_last_page_says_that_it_is() {
        let banks: Vec<Bank> = (0..250).map(|n| Bank::parse(&format!("team/{n:03}")).unwrap()).collect();
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = list(&banks, cursor.as_deref());
            seen.extend(page.resources.into_iter().map(|resource| resource.uri));
            pages += 1;
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let expected: Vec<String> = banks.iter().map(|bank| format!("ripplemem://banks/{bank}")).collect();
        assert_eq!((seen, pages), (expected, 3));
        assert!(list(&banks, Some("zzz")).resources.is_empty());
        assert!(list(&[], None).next_cursor.is_none());
    }

    #[test]
    fn an_address_names_a_bank_or_a_question_that_can_be_followed() {
        let bank = || Bank::parse("team/questions").unwrap();
        assert_eq!(ResourceAddress::parse("ripplemem://banks/team/questions"), Ok(ResourceAddress::Bank(bank())));
        let address =
            "ripplemem://banks/team/questions?question=Where%20is%20it%3F%26&asked_at=2024-05-01T10:00:00Z&asker=Ann";
        let expected = Question {
            asked_at: EventTime::parse("2024-05-01T10:00:00Z").ok(),
            asker: Some("Ann".to_owned()),
            ..Question::new(bank(), "Where is it?&")
        };
        let followed = FollowedResource::Question(SubscribeRequest::of(expected));
        assert_eq!(ResourceAddress::followed(address), Ok(followed));
        let of = |person: Option<&str>| {
            FollowedResource::Profile(ProfileRequest {
                person: person.map(str::to_owned),
                ..ProfileRequest::of(bank())
            })
        };
        assert_eq!(ResourceAddress::followed("ripplemem://profiles/team/questions"), Ok(of(None)));
        assert_eq!(
            ResourceAddress::followed("ripplemem://profiles/team/questions?person=Ann%20Lee"),
            Ok(of(Some("Ann Lee")))
        );
        let long = format!("ripplemem://banks/a?question={}", "x".repeat(MAX_BYTES));
        for (wrong, word) in [
            ("ripplemem://banks/a", "follow a question"),
            ("ripplemem://banks/../a?question=x", "segment"),
            ("ripplemem://banks/a?asked_at=2024-05-01T10:00:00Z", "?question=TEXT"),
            ("ripplemem://banks/a?question=x&asked_at=noon", "asked_at"),
            ("ripplemem://banks/a?question=x&as_of=1", "as_of means nothing"),
            ("ripplemem://profiles/a?as_of=1", "as_of means nothing"),
            ("ripplemem://profiles/../a", "segment"),
            ("file:///etc/passwd?question=x", "ripplemem://banks/BANK"),
            (&long, "bytes"),
        ] {
            let why = ResourceAddress::followed(wrong).unwrap_err();
            assert!(why.contains(word), "{word} is not in: {why}");
        }
    }
}
