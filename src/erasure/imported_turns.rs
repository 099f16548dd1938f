//! Turns of imported banks that only the memory's records hold.
//!
//! In: a partition of the memory, and the first bytes of keys. Out: its turns that have no record in the turns log,
//! deleted ones included. Reads the live records of these keys.

use std::ops::ControlFlow;

use memchr::memmem;

use super::PipelineError;
use logs::Log;
use types::model::WindowTurn;
use types::record_value::turns_of;

/// What the JSON of a turn that an import brought holds: it has no offset of this log. The first turn of a partition has
/// the same, and no other offset begins with this digit.
const NO_OFFSET: &[u8] = b"\"source_offset\":0";

/// Calls `each` with the imported turns of the live records whose keys begin with `prefix`, once for each record that
/// holds the turn.
pub(super) fn each_imported_turn(
    log: &dyn Log,
    partition: u32,
    prefix: &[u8],
    each: &mut dyn FnMut(&WindowTurn),
) -> Result<(), PipelineError> {
    let all = &mut |_: &[u8], _| true;
    log.live_records(partition, prefix, all, &mut |record| {
        let json = record.value.as_deref().unwrap_or_default();
        // A record that cannot be read quarantines its bank, which says so.
        if memmem::find(json, NO_OFFSET).is_some()
            && let Ok(turns) = turns_of(json)
        {
            turns.iter().filter(|turn| turn.source_offset == 0).for_each(&mut *each);
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}
