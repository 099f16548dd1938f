//! A progress bar on stderr.
//!
//! In: progress of a long task. Out: a bar when stderr is a terminal, otherwise nothing.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pipeline::Progress;

/// Runs a task that reports its progress, and removes the bar when the task ends.
pub fn with_progress<T>(task: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let bar = TaskBar::new();
    let done = task(&mut |progress| bar.show(progress));
    bar.0.finish_and_clear();
    done
}

struct TaskBar(ProgressBar);

impl TaskBar {
    fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self(ProgressBar::with_draw_target(None, target))
    }

    fn show(&self, progress: Progress) {
        if let Some(total) = progress.total
            && self.0.length() != Some(total)
        {
            self.0.set_length(total);
            let template = format!("{} {{wide_bar}} {{pos}}/{{len}} {} {{eta}}", progress.doing, progress.unit);
            self.0.set_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        self.0.set_position(progress.done);
    }
}
