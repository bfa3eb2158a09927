//! What the example prints.

use trefoil_embed::encoder::Outcome;

/// Characters of a text that the table shows.
const SHOWN: usize = 36;

/// One object: the device, and an array of numbers for each text.
///
/// # Errors
/// A number is not finite, which JSON has no way to say.
pub fn json(device: &str, embeddings: &[Vec<f32>]) -> Outcome<String> {
    if embeddings.iter().flatten().any(|component| !component.is_finite()) {
        return Err("an embedding has a component that is not a number".into());
    }
    let (device, embeddings) = (serde_json::to_string(device)?, serde_json::to_string(embeddings)?);
    Ok(format!("{{\"device\": {device}, \"embeddings\": {embeddings}}}"))
}

/// The similarity of each pair of texts: 1 means the same.
pub fn table(texts: &[String], embeddings: &[Vec<f32>]) -> String {
    let mut table = format!("{:>3}  {:<SHOWN$}", "", "");
    for column in 1..=texts.len() {
        table += &format!(" {column:>6}");
    }
    for (row, (text, embedding)) in texts.iter().zip(embeddings).enumerate() {
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.pop();
            shown.push('…');
        }
        table += &format!("\n{:>3}  {shown:<SHOWN$}", row + 1);
        for other in embeddings {
            let similarity: f32 = embedding.iter().zip(other).map(|(a, b)| a * b).sum();
            table += &format!(" {similarity:>6.3}");
        }
    }
    table
}
