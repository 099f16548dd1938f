//! Synonyms (placeholder until the table is merged).
/// None.
pub fn synonyms(_: &str) -> impl Iterator<Item = (&'static str, f32)> {
    std::iter::empty()
}
