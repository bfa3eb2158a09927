#![allow(missing_docs, clippy::unwrap_used)]
fn main() {
    let t = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let m = naga::front::wgsl::parse_str(&t).unwrap();
    let mut v = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::all());
    let i = v.validate(&m).unwrap();
    let o = naga::back::spv::Options {
        lang_version: (1, 3),
        bounds_check_policies: naga::proc::BoundsCheckPolicies::default(),
        zero_initialize_workgroup_memory: naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        ..Default::default()
    };
    let w = naga::back::spv::write_vec(&m, &i, &o, None).unwrap();
    std::fs::write(std::env::args().nth(2).unwrap(), w.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
}
