//! Params of models: what is missing, and what is there instead.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::devices;
use trefoil_dsl::device::Device;
use trefoil_graph::{ElementType, Executable, Extents, Graph, Model, Options};

const FLOAT: ElementType = ElementType::F32;

fn compile(graph: &Graph, model: &Model, device: &Device) -> Executable {
    Executable::compile(graph, model, device, &Options::default()).unwrap()
}

/// A layer whose params are `layer.w` and `layer.b`, and one that it declares and does not read.
fn layer() -> Graph {
    let mut g = Graph::new();
    let w = g.param("layer.w", FLOAT, [2]).unwrap();
    let b = g.param("layer.b", FLOAT, [2]).unwrap();
    g.param("layer.spare", FLOAT, [2]).unwrap();
    let x = g.input("x", FLOAT, [2]).unwrap();
    let y = g.mul(x, w).unwrap();
    let y = g.add(y, b).unwrap();
    g.output("y", y).unwrap();
    g
}

#[test]
fn all_missing_params_are_named_with_what_the_model_has_instead() {
    for device in devices() {
        let (graph, model) = (layer(), Model::new());
        let executable = compile(&graph, &model, &device);
        let missing = || {
            let checked = executable.check_params().unwrap_err().to_string();
            let run = executable.run(&[("x", (&[3f32, 5.0]).into())], &Extents::new());
            assert_eq!(run.map(drop).unwrap_err().to_string(), checked);
            checked
        };
        assert_eq!(missing(), "params `layer.w` (f32[2]), `layer.b` (f32[2]) are not given");
        for name in ["model.layer.w", "model.layer.b", "layer.spare"] {
            model.set(name, &[2], &[1f32, 2.0]).unwrap();
        }
        assert_eq!(
            missing(),
            "params `layer.w` (f32[2]), `layer.b` (f32[2]) are not given; the model has `model.layer.b`, `model.layer.w`"
        );
        model.set("layer.b", &[2], &[1f32, 2.0]).unwrap();
        for index in 0..10 {
            model.set(&format!("another.{index}"), &[1], &[0f32]).unwrap();
        }
        let told: Vec<_> = (0..10).map(|index| format!("`another.{index}`")).collect();
        assert_eq!(
            missing(),
            format!("param `layer.w` (f32[2]) is not given; the model has {} and 2 more", told.join(", "))
        );
        model.set("layer.w", &[2], &[2f32, 4.0]).unwrap();
        executable.check_params().unwrap();
        let outputs = executable.run(&[("x", (&[3f32, 5.0]).into())], &Extents::new()).unwrap();
        assert_eq!(outputs.get::<f32>("y").unwrap(), [7.0, 22.0]);
    }
}

/// Who declares a param otherwise than the model has it is told how to read it; there is no way for a type that graphs do not know.
#[test]
fn a_param_of_another_type_is_declared_as_it_is_and_cast() {
    let header = br#"{"layer.b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"layer.w":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[4,6]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], &header[..], &[0; 6]].concat();
    let model = Model::from_safetensors_bytes(&bytes).unwrap();
    for device in devices() {
        let refused = |name: &str| {
            let mut g = Graph::new();
            let param = g.param(name, FLOAT, [2]).unwrap();
            let y = g.exp(param).unwrap();
            g.output("y", y).unwrap();
            Executable::compile(&g, &model, &device, &Options::default()).map(drop).unwrap_err().to_string()
        };
        assert_eq!(
            refused("layer.b"),
            "param `layer.b`: elements of type bf16 given, f32 expected; declare it bf16 and `cast` it"
        );
        assert_eq!(refused("layer.w"), "param `layer.w`: elements of type f8_e4m3 given, f32 expected");
    }
}
