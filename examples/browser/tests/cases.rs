//! The file that the page reads, as its program writes it.

use std::error::Error;
use std::process::Command;

#[test]
fn every_case_has_texts_that_browsers_read() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("trefoil-browser-{}.json", std::process::id()));
    let ended = Command::new(env!("CARGO_BIN_EXE_trefoil-browser")).arg(&path).output()?;
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let cases: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&path)?)?;
    std::fs::remove_file(&path)?;
    assert!(!cases.is_empty(), "no case");
    for case in &cases {
        let texts = case["texts"].as_array().ok_or("a case without texts")?;
        assert!(
            texts.iter().any(|text| text["features"] == serde_json::json!([])),
            "{}: no text for every browser",
            case["name"]
        );
        assert!(texts.iter().all(|text| text["wgsl"].as_str().is_some_and(|wgsl| wgsl.contains("@compute"))));
    }
    Ok(())
}

#[test]
fn a_file_that_cannot_be_written_is_named() -> Result<(), Box<dyn Error>> {
    let ended = Command::new(env!("CARGO_BIN_EXE_trefoil-browser")).arg("/no/such/folder/cases.json").output()?;
    assert!(!ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("/no/such/folder/cases.json"));
    Ok(())
}
