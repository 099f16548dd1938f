//! Which parts around a part are counted together with it when words are looked for.
//!
//! In: the lengths of the parts on one side of a part, from the nearest on. Out: for each, whether its words count with
//! the part. The words of the nearest two parts count, however long these are; those of farther parts count while few
//! words are in between. If one part counts with another, the other counts with it.

/// The number of parts on either side that count however long they are.
const NEAREST: usize = 2;

/// How far the words of one side count.
#[derive(Debug)]
pub(in crate::index) struct WordWindow {
    window_words: u32,
    passed: usize,
    between: u32,
}

impl WordWindow {
    /// Beyond the nearest two, parts count while fewer than `window_words` words are in between.
    pub(in crate::index) fn new(window_words: u32) -> Self {
        Self { window_words, passed: 0, between: 0 }
    }

    /// Whether the next part, which has `words`, still counts. A part without words counts as one word.
    pub(in crate::index) fn admits(&mut self, words: u32) -> bool {
        let takes = self.passed < NEAREST || self.between < self.window_words;
        self.passed += 1;
        self.between = self.between.saturating_add(words.max(1));
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_count_and_further_ones_while_few_words_lie_between() {
        let taken = |window_words, lengths: &[u32]| {
            let mut window = WordWindow::new(window_words);
            lengths.iter().take_while(|words| window.admits(**words)).count()
        };
        assert_eq!(taken(20, &[50, 50, 1]), 2);
        assert_eq!(taken(20, &[10, 9, 1, 5]), 3);
        assert_eq!(taken(20, &[0; 30]), 20);
        assert_eq!(taken(0, &[1, 1, 1]), 2);
    }
}
