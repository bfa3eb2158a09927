//! Texts to batches of tokens.

use std::path::Path;

use tokenizers::{Tokenizer, TruncationParams};

use crate::encoder::Outcome;

/// The most tokens of a text; the rest of it is cut off, as the model's authors do.
pub const LONGEST: usize = 256;

/// The model's tokenizer.
pub struct Tokens(Tokenizer);

/// Texts as rows of equal length: shorter ones are filled up with tokens that the mask hides.
pub struct Batch {
    /// How many texts.
    pub texts: usize,
    /// Tokens of the longest.
    pub longest: usize,
    /// Token by token, text after text.
    pub ids: Vec<u32>,
    /// 1 for a token, 0 for filling.
    pub mask: Vec<f32>,
}

impl Tokens {
    /// Reads `tokenizer.json`.
    ///
    /// # Errors
    /// The file is not a tokenizer.
    pub fn open(file: &Path) -> Outcome<Self> {
        let mut tokenizer = Tokenizer::from_file(file)?;
        // Whatever the file says: rows are filled up to the batch's longest, below.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(Some(TruncationParams { max_length: LONGEST, ..TruncationParams::default() }))?;
        Ok(Self(tokenizer))
    }

    /// The tokens of texts; every text has at least the two that mark its ends.
    ///
    /// # Errors
    /// The tokenizer does not know a piece of a text.
    pub fn encode<T: AsRef<str>>(&self, texts: &[T]) -> Outcome<Batch> {
        let rows = texts
            .iter()
            .map(|text| Ok(self.0.encode(text.as_ref(), true)?.get_ids().to_vec()))
            .collect::<Outcome<Vec<_>>>()?;
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let (mut ids, mut mask) = (Vec::new(), Vec::new());
        for row in &rows {
            ids.extend(row);
            ids.resize(ids.len() + longest - row.len(), 0);
            mask.resize(mask.len() + row.len(), 1.0);
            mask.resize(mask.len() + longest - row.len(), 0.0);
        }
        Ok(Batch { texts: rows.len(), longest, ids, mask })
    }
}
