//! Sentence embeddings: all-MiniLM-L6-v2 as a graph ([`bert`]), its tokenizer ([`tokens`]), and one executable for all batches ([`encoder`]).

pub mod bert;
pub mod encoder;
pub mod tokens;
