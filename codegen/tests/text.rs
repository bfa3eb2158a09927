//! The WGSL and CUDA C emitters: what a dozen small kernels become, judged by naga, by naga's SPIR-V writer and by NVRTC.

#[path = "support/kernels/mod.rs"]
mod kernels;
#[path = "support/nvrtc.rs"]
mod nvrtc;

use trefoil_codegen::artefact::{Code, Params};
use trefoil_codegen::emit::{Emitter, Source, cuda, wgsl};
use trefoil_codegen::front;
use trefoil_codegen::ir::{Instance, Module, instantiate};
use trefoil_codegen::layout;
use trefoil_codegen::lower::{Lowered, lower};
use trefoil_codegen::target::{Dialect, Feature, Features, ParamTransport, Profile, Target};
use trefoil_codegen::variants::variants;
use trefoil_codegen::verify::verify;

/// The first kernel of a source.
fn from_source(source: &str) -> Module {
    let outputs = front::parse_source(source).unwrap_or_else(|errors| panic!("{errors}"));
    instantiate(&outputs[0].module, &Instance::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn lowered(module: Module, target: Target, transport: ParamTransport) -> Lowered {
    let name = module.name.clone();
    let features = Features::of_target(target);
    let verified = verify(module).unwrap_or_else(|errors| panic!("{name} is not verified: {errors}"));
    let mut lowered = lower(&verified, &Profile::portable(target).with(features), transport)
        .unwrap_or_else(|errors| panic!("{name} is not lowered: {errors}"));
    if !lowered.info.relevant.has(Feature::F16Storage) {
        lowered.profile.features = Features::of(&[Feature::Subgroups]).union(lowered.module.requires);
    }
    lowered
}

/// naga's SPIR-V writer takes some modules to pieces that its validator accepts.
fn to_spirv(text: &str) -> Result<usize, String> {
    let (module, info) = wgsl::parse(text).map_err(|error| error.to_string())?;
    let options = naga::back::spv::Options { lang_version: (1, 3), ..Default::default() };
    naga::back::spv::write_vec(&module, &info, &options, None)
        .map(|words| words.len())
        .map_err(|error| error.to_string())
}

fn snapshot(name: &str, made_by: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "snapshots/text",
        prepend_module_to_snapshot => false,
        omit_expression => true,
        description => format!("made by {made_by} from the kernel `{name}` of codegen/tests/support/kernels"),
    }, {
        insta::assert_snapshot!(format!("{name}.{made_by}"), text);
    });
}

#[test]
fn wgsl_is_valid_and_as_recorded() {
    let mut failures = Vec::new();
    for module in kernels::all() {
        let name = module.name.clone();
        let lowered = lowered(module, Target::Wgsl, ParamTransport::Buffer);
        let text = wgsl::emit(&lowered).unwrap_or_else(|error| panic!("{error}"));
        if let Err(error) = wgsl::validate(&text) {
            failures.push(format!("{name}: {error}\n{text}"));
            continue;
        }
        if let Err(error) = to_spirv(&text) {
            failures.push(format!("{name}: naga's SPIR-V writer: {error}"));
        }
        snapshot(&name, "wgsl", &text);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn cuda_compiles_and_is_as_recorded() {
    let nvrtc = nvrtc::load();
    let mut failures = Vec::new();
    for module in kernels::all() {
        let name = module.name.clone();
        for transport in [ParamTransport::Value, ParamTransport::Buffer] {
            let lowered = lowered(module.clone(), Target::Cuda, transport);
            let text = cuda::emit(&lowered).unwrap_or_else(|error| panic!("{error}"));
            // The oldest that a device may be, but for products of matrices.
            let skipped = usize::from(text.contains("mma.sync"));
            for architecture in ["sm_75", "sm_80", "sm_90a"].into_iter().skip(skipped) {
                if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, architecture)) {
                    failures.push(format!("{name}: {log}\n{text}"));
                }
            }
            if transport == ParamTransport::Value {
                snapshot(&name, "cuda", &text);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn emitters_refuse_what_was_lowered_for_another_target() {
    let module = kernels::all().remove(0);
    let lowered = lowered(module, Target::Cuda, ParamTransport::Value);
    let error = wgsl::emit(&lowered).unwrap_err();
    assert_eq!(error.target, Target::Wgsl);
    assert!(error.to_string().contains("scaled_gelu"), "{error}");
}

#[test]
fn renaming_a_local_changes_its_name_alone() {
    let emit = |name: &str| {
        let lowered = lowered(kernels::scaled_gelu(name), Target::Wgsl, ParamTransport::Buffer);
        wgsl::emit(&lowered).unwrap()
    };
    assert_eq!(emit("position").replace("position", "where_to"), emit("where_to"));
}

#[test]
fn parameters_lie_where_the_host_writes_them() {
    let nvrtc = nvrtc::load();
    for module in kernels::all() {
        let name = module.name.clone();
        let for_wgsl = lowered(module.clone(), Target::Wgsl, ParamTransport::Buffer);
        let (parsed, _) = wgsl::parse(&wgsl::emit(&for_wgsl).unwrap()).unwrap();
        let (_, block) = parsed.types.iter().find(|(_, ty)| ty.name.as_deref() == Some("Params")).unwrap();
        let naga::TypeInner::Struct { members, .. } = &block.inner else { panic!("{name}: Params is no struct") };
        for field in for_wgsl.params.fields.iter() {
            let member = members.iter().find(|member| member.name.as_deref() == Some(&*field.name));
            assert_eq!(member.map(|member| member.offset), Some(field.offset), "{name}: {}", field.name);
        }
        let for_cuda = lowered(module, Target::Cuda, ParamTransport::Value);
        let mut text = cuda::emit(&for_cuda).unwrap();
        // NVRTC has no `offsetof`, but what its front end makes of one.
        for field in for_cuda.params.fields.iter() {
            let (member, offset) = (&field.name, field.offset);
            text.push_str(&format!("static_assert(__INTADDR__(&((Params*)0)->{member}) == {offset}, \"{member}\");\n"));
        }
        if let Some(Err(log)) = nvrtc.as_ref().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
            panic!("{name}: {log}");
        }
    }
}

#[test]
fn much_workgroup_memory_is_asked_for_at_launch() {
    let nvrtc = nvrtc::load();
    let text = cuda::emit(&lowered(kernels::large_tile(), Target::Cuda, ParamTransport::Value)).unwrap();
    assert!(text.contains("extern __shared__ __align__(16) unsigned char workgroup_memory[];"), "{text}");
    if let Some(Err(log)) = nvrtc.map(|nvrtc| nvrtc.compile(&text, "sm_90a")) {
        panic!("{log}\n{text}");
    }
}

#[test]
fn a_kernel_named_like_a_word_of_the_language_has_another_entry_point() {
    let wgsl = ["filter", "exp", "params", "Params", "uniform", "storage", "read", "read_write"];
    let cuda = ["template", "exp", "half", "params", "Params"];
    let wgsl = wgsl.map(|name| (name, Target::Wgsl));
    for (name, target) in wgsl.into_iter().chain(cuda.map(|name| (name, Target::Cuda))) {
        let mut module = kernels::scaled_gelu("i");
        module.name = name.to_owned();
        let lowered = lowered(
            module,
            target,
            if target == Target::Wgsl { ParamTransport::Buffer } else { ParamTransport::Value },
        );
        let text = if target == Target::Wgsl { wgsl::emit(&lowered) } else { cuda::emit(&lowered) }.unwrap();
        assert!(text.contains(&format!(" {name}_1(")), "{text}");
        if target == Target::Wgsl {
            wgsl::validate(&text).unwrap();
        }
    }
}

/// naga judges what it reads; what browsers read differs from that in a directive alone.
#[test]
fn the_dialects_of_wgsl_differ_in_their_directives() {
    let mut seen = 0;
    for module in kernels::all() {
        let name = module.name.clone();
        let verified = verify(module).unwrap();
        let source = Source::new(&verified);
        let mut emitter = Emitter::new(&source);
        let mut text = |dialect| {
            let asked = variants(&verified)
                .into_iter()
                .find(|(profile, _)| profile.target == Target::Wgsl && profile.dialect == Some(dialect))?;
            match emitter.code(&asked.0, asked.1).unwrap().code {
                Code::Text(text) => Some(text.into_owned()),
                Code::Spirv(_) => None,
            }
        };
        if let (Some(naga), Some(browsers)) = (text(Dialect::Naga), text(Dialect::Browsers)) {
            let without =
                |text: &str| text.lines().filter(|line| !line.starts_with("enable ")).collect::<Vec<_>>().join("\n");
            assert_eq!(without(&naga).trim(), without(&browsers).trim(), "{name}");
            assert!(browsers.contains("subgroups;") && !naga.contains("subgroups;"), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn a_local_of_doubles_may_be_named_like_a_function_of_cuda() {
    let names = [
        "floor", "ceil", "rint", "trunc", "sqrt", "fabs", "fmin", "fmax", "fma", "fmod", "exp", "exp2", "expm1", "log",
        "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    ];
    let chain =
        ["exp", "ln", "exp2", "log2", "exp_m1", "ln_1p", "log10", "sinh", "asinh", "cosh", "acosh", "tanh", "atanh"];
    let chain: String = chain.iter().map(|function| format!(".{function}()")).collect();
    let lines: String = names
        .iter()
        .map(|name| {
            format!("let {name} = y[0].floor() % y[0].sqrt().max(y[0].abs()).min(y[0].ceil()); y[0] = {name}{chain};\n")
        })
        .collect();
    let source = format!(
        "#[kernel(workgroup(64), targets(cuda), requires(Float64))] fn k(y: &mut [f64]) {{ if global_index() == 0 {{ {lines} }} }}"
    );
    let module = from_source(&source);
    let text = cuda::emit(&lowered(module, Target::Cuda, ParamTransport::Value)).unwrap();
    if let Some(Err(log)) = nvrtc::load().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
        panic!("{log}\n{text}");
    }
}

/// NVRTC and nvcc 13.0 take a value whose first part is the block's first parameter for a copy of the block.
#[test]
fn a_value_that_begins_with_the_first_parameter_is_no_copy_of_all() {
    let bodies = [
        "y[i] = S { a: first, b: Vec2::new(1, 2), c: 3.0 };",
        "let mut s = S { a: first, b: Vec2::new(i as u32, 2), c: 3.0 }; if i > 7 { s.c = 1.0; } y[i] = s;",
        "let named = first; let s = S { a: named, b: Vec2::new(1, 2), c: 3.0 }; y[i] = s;",
        "let mut s = y[i + 1]; s.a = first; y[i] = s;",
        "let mut v = Vec4::<u32>::splat(5); v.x = first; z[i] = v;",
        "let t = T { s: S { a: first, b: Vec2::new(1, 2), c: 3.0 }, d: 4 }; if t.d > i as u32 { y[i] = t.s; }",
    ];
    let nvrtc = nvrtc::load();
    for body in bodies {
        let source = format!(
            "#[device] struct S {{ a: u32, b: Vec2<u32>, c: f32 }}
            #[device] struct T {{ s: S, d: u32 }}
            #[kernel(workgroup(64), targets(cuda))]
            fn k(y: &mut [S], z: &mut [Vec4<u32>], first: u32, second: u32, third: f32, fourth: u32) {{
                let i = global_index();
                {body}
                if i == 1000 {{ z[i] = Vec4::splat(2); y[i] = S {{ a: 1, b: Vec2::splat(2), c: 3.0 }}; }}
            }}"
        );
        let module = from_source(&source);
        let text = cuda::emit(&lowered(module, Target::Cuda, ParamTransport::Value)).unwrap();
        assert!(text.contains("given(params.first)"), "{text}");
        let Some(nvrtc) = &nvrtc else { continue };
        let ptx = nvrtc.ptx(&text, "compute_90").unwrap();
        let of_block = |line: &&str| line.contains("ld.param") && line.contains("k_param_2");
        for line in ptx.lines().filter(of_block) {
            let others = ["+4]", "+8]", "+12]"].iter().any(|end| line.contains(end));
            assert!(!others && !line.contains(".v"), "{body} reads other parameters: {line}\n{ptx}\n{text}");
        }
    }
}

/// ptxas 13.0 takes what its instruction for magnitudes gives for one that is never negative, which the least number's is: kernels drawn at random found remainders without their sign.
#[test]
fn magnitudes_are_no_instruction_of_cuda() {
    let source = "#[kernel(workgroup(64), targets(cuda))]
        fn k(x: &[i32], y: &mut [i32], z: &mut [i64], a: i32, b: i64) {
            let i = global_index();
            y[i] = a.abs() % x[i];
            z[i] = b.abs() % (x[i] as i64);
        }";
    let module = from_source(source);
    let text = cuda::emit(&lowered(module, Target::Cuda, ParamTransport::Value)).unwrap();
    let Some(nvrtc) = nvrtc::load() else { return };
    let ptx = nvrtc.ptx(&text, "compute_90").unwrap();
    assert!(!ptx.contains("abs.s"), "{ptx}\n{text}");
}

/// A counter that is stepped past the largest number would begin again at the smallest.
#[test]
fn loops_step_plainly_where_their_ends_are_far_from_the_largest_number_and_to_the_end_elsewhere() {
    let plain = ["x.len()", "x.len() / 4", "n / 2", "n & 0xffff", "min(n, 1000)"];
    let careful = ["n", "n + 8", "x.len() * 2", "max(n, 8)"];
    for (end, plainly) in plain.iter().map(|end| (end, true)).chain(careful.iter().map(|end| (end, false))) {
        let source = format!(
            "#[kernel(workgroup(64))]\nfn k(x: &[f32], y: &mut [f32], n: usize) {{\n\
             let mut tile = workgroup_array::<f32>(64);\ntile[local_index()] = x[local_index()];\nbarrier();\n\
             for i in (local_index()..{end}).step_by(256) {{\ny[i] = tile[i % 64];\n}}\n}}"
        );
        for target in [Target::Wgsl, Target::Cuda] {
            let lowered = lowered(from_source(&source), target, ParamTransport::Buffer);
            let text = match target {
                Target::Cuda => cuda::emit(&lowered),
                _ => wgsl::emit(&lowered),
            };
            let text = text.unwrap_or_else(|error| panic!("{error}"));
            let step = if plainly { "i += 256u)" } else { "i += min(256u, " };
            assert!(text.contains(step), "{end}: {text}");
        }
    }
}

#[test]
fn long_loops_are_unrolled_by_the_compiler_of_cuda() {
    // A round has three statements; LONG is 1024 of them.
    let text = |rounds: u32, target: Target| {
        let source = format!(
            "#[kernel(workgroup(64))]\nfn k(x: &[u32], y: &mut [u32]) {{\nlet mut sum = 0;\n\
             for i in unroll(0..{rounds}) {{\nlet a = x[i];\nlet b = a ^ sum;\nsum = b * 3;\n}}\ny[0] = sum;\n}}"
        );
        let module = from_source(&source);
        let lowered = lowered(module, target, ParamTransport::Buffer);
        let text = match target {
            Target::Cuda => cuda::emit(&lowered),
            _ => wgsl::emit(&lowered),
        };
        text.unwrap_or_else(|error| panic!("{error}"))
    };
    let short = text(300, Target::Cuda);
    assert!(!short.contains("#pragma unroll") && !short.contains("for ("), "{short}");
    let long = text(400, Target::Cuda);
    assert!(long.contains("#pragma unroll\n    for (uint i = 0u; i < 400u; i++) {"), "{long}");
    if let Some(nvrtc) = nvrtc::load() {
        nvrtc.compile(&long, "sm_80").unwrap_or_else(|log| panic!("{log}\n{long}"));
    }
    let written = text(400, Target::Wgsl);
    assert!(!written.contains("for ("), "{written}");
}

#[test]
fn kernels_that_put_nothing_together_read_parameters_as_they_are() {
    let source = "#[kernel(workgroup(64), targets(cuda))]
        fn k(y: &mut [Vec4<u32>], first: u32) { y[global_index()] = Vec4::new(first, 1, 2, 3); }";
    let module = from_source(source);
    let text = cuda::emit(&lowered(module, Target::Cuda, ParamTransport::Value)).unwrap();
    assert!(text.contains("make_uint4(params.first, 1u, 2u, 3u)"), "{text}");
}

/// NVIDIA's driver has given another lane where a variable of 64-bit lanes was indexed by what is known when the kernel runs.
#[test]
fn lanes_of_64_bits_are_chosen_and_not_indexed_in_wgsl() {
    let source = "#[kernel(workgroup(64), targets(wgsl), requires(Int64, Float64))]
        fn k(x: &[i64], y: &mut [i64], z: &mut [f64], v: Vec3<i64>, w: Vec2<f64>) {
            let i = global_index();
            let mut own = Vec4::new(x[i], 2, 3, 4);
            own[i % 5] = 7;
            own[i % 3] += v[i % 4];
            y[i] = own[i % 2] + x[i];
            z[i] = w[i % 2];
        }";
    let module = from_source(source);
    let text = wgsl::emit(&lowered(module, Target::Wgsl, ParamTransport::Buffer)).unwrap();
    assert!(
        text.contains("select(select(select(0li, value.z, i == 2u), value.y, i == 1u), value.x, i == 0u)"),
        "{text}"
    );
    assert!(text.contains("own = vec4_i64_with(own, "), "{text}");
    assert!(!text.contains("own["), "{text}");
    to_spirv(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

/// WGSL's helpers are printed when something calls them first, which may be where a local of their name is in scope.
#[test]
fn a_local_may_be_named_like_a_helper_of_wgsl() {
    let names = [
        "is_nan",
        "is_nan_f32",
        "is_infinite",
        "signum",
        "choose",
        "choose_f32",
        "x_at",
        "x_vec4",
        "x_set",
        "y_set",
        "y_vec4",
        "_is_nan",
        "_signum",
        "_x_at",
    ];
    let lines: String = names
        .iter()
        .map(|name| {
            format!(
                "let {name} = x[i + 1] + x.vec4(i).y;
                let a = if {name}.is_nan() {{ 1.0 }} else {{ {name}.signum() }};
                let b = if a.is_infinite() {{ {name} }} else {{ a }};
                y[i] = b + {name};
                y.set_vec4(i + 1, Vec4::new(a, b, if b.is_nan() {{ {name} }} else {{ b }}, {name}));\n"
            )
        })
        .collect();
    let source =
        format!("#[kernel(workgroup(64))] fn k(x: &[f32], y: &mut [f32]) {{ let i = global_index(); {lines} }}");
    let module = from_source(&source);
    let text = wgsl::emit(&lowered(module, Target::Wgsl, ParamTransport::Buffer)).unwrap();
    if let Err(error) = wgsl::validate(&text) {
        panic!("{error}\n{text}");
    }
}

/// Helpers of CUDA C stand before everything else, and are called where a local of their name may be in scope.
#[test]
fn a_local_may_be_named_like_a_helper_of_cuda() {
    let helpers = [
        "subgroup_add",
        "subgroup_shuffle_xor",
        "roundf",
        "hypotf",
        "mul_high",
        "nearest_brain",
        "in_a_register",
        "read_here",
        "splat_float4",
        "to_uint4",
        "make_uchar3",
        "char2",
        "swizzle_yx",
        "matrix_part",
        "multiply_tiles_bf16_4",
        "tile_step_f16_16",
    ];
    let others = ["to", "to_x", "to_float5", "splat_all", "swizzle_xyzwx", "tile_step", "multiply_tiles_f16_often"];
    let line = |(number, name): (usize, &&str)| {
        format!(
            "{{ let {name} = subgroup_add(x[i + {number}].round()) * 2.0;
            y[i] = {name}.hypot(x[i]).round() + {name};
            z[i] = z[i] * Vec4::splat({name}); }}\n"
        )
    };
    let lines: String = helpers.iter().chain(&others).enumerate().map(line).collect();
    let source = format!(
        "#[kernel(workgroup(64), targets(cuda), requires(Subgroups))] fn k(x: &[f32], y: &mut [f32], z: &mut [Vec4<f32>]) {{ let i = global_index(); {lines} }}"
    );
    let text = cuda::emit(&lowered(from_source(&source), Target::Cuda, ParamTransport::Value)).unwrap();
    for name in helpers {
        assert!(text.contains(&format!("const float {name}_1 = ")), "{name}: {text}");
    }
    for name in others {
        assert!(text.contains(&format!("const float {name} = ")), "{name}: {text}");
    }
    if let Some(Err(log)) = nvrtc::load().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
        panic!("{log}\n{text}");
    }
}

/// Halves are `unsigned short` in CUDA C, and so are vectors of them.
#[test]
fn lanes_of_halves_are_moved_beside_those_of_integers() {
    let source = "#[kernel(workgroup(64), targets(cuda))]
        fn k(x: &mut [Vec4<f16>], y: &mut [Vec4<u16>]) {
            let i = global_index();
            let mut halves = x[i];
            halves[i % 5] = halves[i % 3];
            x[i] = halves;
            let mut integers = y[i];
            integers[i % 5] = integers[i % 3];
            y[i] = integers;
        }";
    let text = cuda::emit(&lowered(from_source(source), Target::Cuda, ParamTransport::Value)).unwrap();
    for function in ["ushort lane(const ushort4& v, uint i)", "void set_lane(ushort4& v, uint i, ushort value)"] {
        assert_eq!(text.matches(function).count(), 1, "{text}");
    }
    if let Some(Err(log)) = nvrtc::load().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
        panic!("{log}\n{text}");
    }
}

/// What a launch adds to the parameter block has names made of the author's, and identifiers lose what C++ keeps for itself.
#[test]
fn no_two_fields_have_one_name() {
    let source = "#[device] struct Pair { _x: f32, x: f32, x_1: f32 }
        #[device] struct Counted { n: u32 }
        #[kernel(workgroup(64))]
        fn k(x: &mut [Pair], x_len: u32, x_offset: u32, group_count: u32, p: Counted, p_n: u32, _n: u32, n: u32, pad_0: u32, wide: Vec4<u32>) {
            let i = global_index();
            let sum = x_len + x_offset + group_count + p.n + p_n + _n + n + pad_0 + wide.x;
            let pair = x[i];
            x[i] = Pair { _x: pair.x, x: pair._x, x_1: pair.x_1 + sum as f32 };
        }";
    let names = |params: &Params| params.fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>();
    let verified = verify(from_source(source)).unwrap_or_else(|errors| panic!("{errors}"));
    let host = names(&layout::params(&verified.module, verified.info.grid).unwrap());
    let own = ["x_len", "x_offset", "group_count", "p_n_2", "p_n", "_n", "n", "pad_0", "wide"];
    assert_eq!(host, [&own[..], &["x_len_2", "x_offset_2", "group_count_2"]].concat());
    for (target, transport) in [(Target::Wgsl, ParamTransport::Buffer), (Target::Cuda, ParamTransport::Value)] {
        let lowered = lowered(from_source(source), target, transport);
        assert_eq!(names(&lowered.params), host, "{}", target.name());
        if target == Target::Wgsl {
            let text = wgsl::emit(&lowered).unwrap();
            wgsl::validate(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            continue;
        }
        let text = cuda::emit(&lowered).unwrap();
        assert!(text.contains(">= params.group_count_2"), "{text}");
        if let Some(Err(log)) = nvrtc::load().map(|nvrtc| nvrtc.compile(&text, "sm_80")) {
            panic!("{log}\n{text}");
        }
    }
}

/// Compilers of WGSL may take it that there are neither infinities nor NaNs. What they would make of a value and itself is then said by its bits, and so is when a remainder has none; constants are left alone.
#[test]
fn what_has_no_result_is_told_by_bits_in_wgsl() {
    let text = |line: &str, features: &str| {
        let source = format!(
            "#[kernel(workgroup(64), targets(wgsl){features})] fn k(x: &[f64], y: &mut [f64], z: &mut [f32]) {{ let i = global_index(); let a = x[i]; let b = z[i]; {line} }}"
        );
        let module = from_source(&source);
        let profile = Profile::portable(Target::Wgsl).with(module.requires);
        let verified = verify(module).unwrap_or_else(|errors| panic!("{errors}"));
        let lowered = lower(&verified, &profile, ParamTransport::Buffer).unwrap();
        wgsl::emit(&lowered).unwrap()
    };
    let doubles = ", requires(Float64)";
    for (line, features, expected) in [
        ("z[i] = b / b;", doubles, "over_itself_f32(b)"),
        ("z[i] = b - b;", doubles, "less_itself_f32(b)"),
        ("let mut c = b; c /= c; z[i] = c;", doubles, "over_itself_f32(c)"),
        ("let mut c = b; c -= c; z[i] = c;", doubles, "less_itself_f32(c)"),
        ("z[i] = b % b;", doubles, "rest_by_itself_f32(b)"),
        ("z[i] = b % z[i + 1];", doubles, "rem_by_bits(b, "),
        ("y[i] = a % x[i + 1];", doubles, "rest_of_f64(x, y)"),
        ("y[i] = if a.is_nan() { 0.0 } else { a };", doubles, "!(x == x)"),
        ("y[i] = if a.is_nan() { 0.0 } else { a };", ", requires(Float64, Int64)", "bitcast<u64>(x)"),
    ] {
        let text = text(line, features);
        assert!(text.contains(expected), "{line}\n{text}");
    }
    assert!(!text("z[i] = b * (1.0 / 1.0);", doubles).contains("over_itself"));
}

/// A lane of a vector in workgroup memory has no address, a member of a struct there has one.
#[test]
fn uniform_loads_of_lanes_and_members_are_taken_by_naga() {
    for (place, is_load) in
        [("t[0]", true), ("t[0].x", false), ("t[0][1]", false), ("u[0].b", true), ("u[0].v.y", false)]
    {
        let source = format!(
            "#[device] struct S {{ a: f32, b: f32, v: Vec2<f32> }}
            #[kernel(workgroup(64))] fn k(y: &mut [f32], z: &mut [Vec4<f32>]) {{
                let mut t = workgroup_array::<Vec4<f32>>(64);
                let mut u = workgroup_array::<S>(64);
                t[local_index()] = z[local_index()];
                u[local_index()] = S {{ a: 1.0, b: y[0], v: Vec2::new(2.0, 3.0) }};
                barrier();
                let value = workgroup_uniform_load(&{place});
                {} = value;
            }}",
            if place == "t[0]" { "z[global_index()]" } else { "y[global_index()]" }
        );
        let module = from_source(&source);
        let text = wgsl::emit(&lowered(module, Target::Wgsl, ParamTransport::Buffer)).unwrap();
        assert_eq!(text.contains("workgroupUniformLoad"), is_load, "{text}");
        to_spirv(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

/// A kernel that reads `x`, writes `y` and shares `t`, around a body that knows its invocation and its workgroup's first one.
fn around(body: &str) -> Module {
    from_source(&format!(
        "#[kernel(workgroup(64))] fn k(x: &[u32], y: &mut [u32]) {{
            let mut t = workgroup_array::<u32>(64);
            let (l, g) = (local_index(), group_index() * 64);
            {body}
        }}"
    ))
}

/// Barriers order buffers where one that is written was accessed before any of them, and a load that a workgroup agrees on is a barrier.
#[test]
fn barriers_of_wgsl_order_buffers_that_are_touched_before_them() {
    let text = |body: &str| {
        let text = wgsl::emit(&lowered(around(body), Target::Wgsl, ParamTransport::Buffer)).unwrap();
        to_spirv(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        text
    };
    // Of a buffer that is only written either number might stay.
    let written = text("y[g + 63 - l] = 0; barrier(); y[g + l] = x[g + l];");
    assert!(written.contains("storageBarrier"), "{written}");
    let agreed = text(
        "t[l] = 1; y[g + l] = l as u32; let u = workgroup_uniform_load(&t[0]); let v = y[g + 63 - l]; barrier(); y[g + l] = v + u;",
    );
    let [first, load] = ["storageBarrier", "workgroupUniformLoad"].map(|word| agreed.find(word));
    assert!(first.is_some() && first < load, "{agreed}");
    // In a loop what comes behind a barrier comes before it, too.
    let repeated = text("for i in 0..x.len() { barrier(); y[g + (l + i) % 64] = x[i]; }");
    assert!(repeated.contains("storageBarrier"), "{repeated}");
    let unneeded = text("t[l] = x[g + l]; barrier(); let v = y[g + l]; y[g + l] = t[63 - l] + v;");
    assert!(!unneeded.contains("storageBarrier"), "{unneeded}");
}

/// NVRTC reads a buffer that is `__restrict__` once, whatever barriers there are and whatever others write between them.
#[test]
fn buffers_of_cuda_that_barriers_order_are_not_restricted() {
    let text = |body: &str| cuda::emit(&lowered(around(body), Target::Cuda, ParamTransport::Value)).unwrap();
    let ordered = text("let i = g + l; let a = y[i]; barrier(); y[i + 1] = x[i]; barrier(); y[i] = a + y[i];");
    assert!(ordered.contains("const uint* __restrict__ x") && ordered.contains("    uint* y"), "{ordered}");
    let alone = text("t[l] = x[g + l]; barrier(); y[g + l] = t[63 - l];");
    assert!(alone.contains("uint* __restrict__ y"), "{alone}");
}

/// Found by kernels drawn at random: naga computes with constants, refuses ends of `clamp` in the wrong order, and knows few functions and conversions of 64 bits.
#[test]
fn constants_of_any_width_and_order_are_taken_by_naga() {
    let lines = [
        "y[0] = clamp(86i32, -95i32, i32::MIN);",
        "y[1] = clamp(y[2], 5i32, -5i32);",
        "y[3] = pack4xi8(clamp(Vec4::<i32>::splat(0), Vec4::<i32>::splat(0), Vec4::<i32>::new(-7, 80, 6, 5))) as i32;",
        "y[4] = clamp(6u64, 100u64, 10u64) as i32;",
        "y[5] = signum(13i64) as i32;",
        "y[6] = abs(-50i64) as i32;",
        "y[7] = (50i32 as i64 as u32 as u64) as i32;",
        "y[8] = (6.75f64 as f32) as i32;",
    ];
    let body = lines.join("\n");
    let source = format!(
        "#[kernel(workgroup(64), requires(Int64, Float64))] fn k(y: &mut [i32]) {{ if global_index() == 0 {{ {body} }} }}"
    );
    let module = from_source(&source);
    let text = wgsl::emit(&lowered(module, Target::Wgsl, ParamTransport::Buffer)).unwrap();
    if let Err(error) = to_spirv(&text) {
        panic!("{error}\n{text}");
    }
}
