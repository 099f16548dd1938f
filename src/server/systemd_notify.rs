//! Tells systemd that the service has started.
//!
//! In: `NOTIFY_SOCKET`, which systemd sets for a unit of `Type=notify`. Out: one message there. Without the variable
//! nothing happens. Never an error: a service that cannot send the message runs all the same.

use crate::log_events;
/// Says that the service has started.
pub(super) fn notify_started() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        log_events::notification_failed(&error);
    }
}
