//! Whatever the tokens are, the front end answers.

use trefoil_codegen::front;

use super::realistic::KERNELS;

/// A small generator of numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// The words and signs of a source.
fn pieces(source: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for character in source.chars() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        match pieces.last_mut() {
            Some(last) if word(character) && last.chars().all(word) => last.push(character),
            _ => pieces.push(character.to_string()),
        }
    }
    pieces
}

#[test]
fn changed_kernels_do_not_stop_it() {
    let kernels: Vec<&str> = KERNELS.split("\n#[").collect();
    let vocabulary = pieces(KERNELS);
    let mut numbers = Numbers(1);
    let mut understood = 0;
    for round in 0..3000 {
        let first = kernels[numbers.below(kernels.len())];
        let second = kernels[numbers.below(kernels.len())];
        let mut words = pieces(&format!("#[{}\n#[{}", first.trim_start_matches("#["), second.trim_start_matches("#[")));
        for _ in 0..1 + round % 4 {
            let at = numbers.below(words.len());
            match numbers.below(4) {
                0 => {
                    words.remove(at);
                }
                1 => words[at] = vocabulary[numbers.below(vocabulary.len())].clone(),
                2 => words.insert(at, vocabulary[numbers.below(vocabulary.len())].clone()),
                _ => {
                    let other = numbers.below(words.len());
                    words.swap(at, other);
                }
            }
        }
        let source: String = words.concat();
        if syn::parse_str::<syn::File>(&source).is_ok() {
            understood += 1;
            if let Err(errors) = front::parse_source(&source) {
                assert!(!errors.0.is_empty());
            }
        }
    }
    assert!(understood > 500, "only {understood} sources were Rust");
}
