//! The newest `spirv-val` that there is: that of `.tools/bin`, which scripts/setup-tools.sh fills, or else the system's.

use std::path::Path;
use std::process::Command;

use trefoil_codegen::emit::spirv;

/// Panics with the validator's message and the module as text if it refuses the module; without a validator it says so and does nothing.
pub fn validate(name: &str, words: &[u32]) {
    let folder = std::env::temp_dir().join(format!("trefoil-spirv-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{name}.spv"));
    std::fs::write(&file, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join(".tools/bin/spirv-val"));
    let tool = fetched.into_iter().find(|file| file.exists()).unwrap_or_else(|| "spirv-val".into());
    match Command::new(&tool).args(["--target-env", "vulkan1.3"]).arg(&file).output() {
        Ok(output) => assert!(
            output.status.success(),
            "{name}: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            spirv::disassemble(words)
        ),
        Err(error) => eprintln!("not validated: {}: {error}", tool.display()),
    }
    let _ = std::fs::remove_file(file);
}
