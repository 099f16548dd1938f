//! Banks as resources.
//!
//! In: the names of the banks, an address. Out: one resource a bank, in pages, and what it holds, counted. A
//! bank that holds nothing is no resource.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};

use serde_json::json;

use super::calls::Calls;
use crate::{model::Bank, serve::access::Caller};

/// What stands before the bank in its address. A bank needs no escapes there.
const PREFIX: &str = "ripplemem://banks/";
/// Most banks of a page.
const PAGE: usize = 100;
const JSON: &str = "application/json";

/// The banks after the one that `cursor` names.
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

/// The form of a bank's address.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{PREFIX}{{+bank}}"), "bank")
        .with_mime_type(JSON)
        .with_description("How much a bank holds.");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// What the bank at an address holds. Blocks.
pub(super) fn read(calls: &Calls, who: &Caller, address: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = |why: String| ErrorData::resource_not_found(why, Some(json!({ "uri": address })));
    let name = address.strip_prefix(PREFIX).ok_or_else(|| missing(format!("{address}: not {PREFIX}BANK")))?;
    let bank = Bank::parse(name).map_err(|e| missing(e.to_string()))?;
    let counts = calls.counts(who, bank).map_err(|e| missing(e.to_string()))?;
    let text = serde_json::to_string(&counts).map_err(|e| ErrorData::internal_error(e.to_string(), None))?;
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
}
