//! Params of models: what is missing, what is there instead, and models as files.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use std::fs;

use common::devices;
use half::f16;
use safetensors::SafeTensors;
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

#[test]
fn what_is_saved_is_what_is_opened_again() {
    let folder = std::env::temp_dir().join(format!("trefoil-graph-saved-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.safetensors");
    let model = Model::new();
    let (floats, halves) = ([1f32, -0.0, f32::NAN, f32::MIN_POSITIVE], [0.5, -2.0, 65504.0].map(f16::from_f32));
    model.set("floats", &[2, 2], &floats).unwrap();
    model.set("halves", &[3, 1], &halves).unwrap();
    model.set("integers", &[2], &[i64::MIN, 3]).unwrap();
    model.set("bools", &[3], [true, false, true].as_slice()).unwrap();
    model.set("scalar", &[], &[2.5f32]).unwrap();
    model.set("nothing", &[0, 4], &[0f32; 0]).unwrap();
    // One that is there is replaced.
    fs::write(&path, "no safetensors").unwrap();
    model.save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let stored = |name: &str| file.tensor(name).unwrap().data().to_vec();
    assert_eq!(stored("floats"), floats.map(f32::to_le_bytes).concat());
    assert_eq!(stored("halves"), halves.map(f16::to_le_bytes).concat());
    assert_eq!(stored("integers"), [i64::MIN, 3].map(i64::to_le_bytes).concat());
    assert_eq!(stored("bools"), [1u8, 0, 1]);
    assert_eq!(stored("scalar"), 2.5f32.to_le_bytes());
    assert_eq!((stored("nothing").len(), file.len()), (0, 6));

    let again = Model::from_safetensors(&[&path]).unwrap();
    assert_eq!(again.params().unwrap(), model.params().unwrap());
    for name in ["halves", "integers", "bools", "scalar", "nothing"] {
        assert_eq!(again.values(name).unwrap().values, model.values(name).unwrap().values, "{name}");
    }
    let told: Vec<_> =
        again.params().unwrap().into_iter().map(|param| (param.name, param.element, param.bytes)).collect();
    let known = |name: &str, element: ElementType, bytes: u64| (name.to_owned(), Ok::<_, String>(element), bytes);
    assert_eq!(
        told,
        [
            known("bools", ElementType::Bool, 12),
            known("floats", FLOAT, 16),
            known("halves", ElementType::F16, 6),
            known("integers", ElementType::I64, 16),
            known("nothing", FLOAT, 0),
            known("scalar", FLOAT, 4),
        ]
    );
    // The same params make the same file.
    let other = folder.join("other.safetensors");
    again.save(&other).unwrap();
    assert_eq!(fs::read(&other).unwrap(), bytes);
    drop(again);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn types_that_graphs_do_not_know_are_saved_too() {
    let path = std::env::temp_dir().join(format!("trefoil-graph-unknown-{}.safetensors", std::process::id()));
    let header = br#"{"w":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], &header[..], &[7, 8, 9]].concat();
    let model = Model::from_safetensors_bytes(&bytes).unwrap();
    assert_eq!(model.params().unwrap()[0].element, Err("f8_e4m3".to_owned()));
    model.save(&path).unwrap();
    let again = Model::from_safetensors(&[&path]).unwrap();
    assert_eq!(again.params().unwrap(), model.params().unwrap());
    assert!(fs::read(&path).unwrap().ends_with(&[7, 8, 9]));
    drop(again);
    fs::remove_file(&path).unwrap();
}

#[test]
fn what_cannot_be_saved_leaves_what_is_there() {
    let folder = std::env::temp_dir().join(format!("trefoil-graph-unsaved-{}", std::process::id()));
    fs::create_dir_all(folder.join("taken")).unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (model, path) = (Model::new(), folder.join("model.safetensors"));
    model.set("w", &[1], &[1f32]).unwrap();
    model.save(&path).unwrap();
    let old = fs::read(&path).unwrap();
    for refused in [folder.join("missing").join("model.safetensors"), folder.join("taken")] {
        let error = model.save(&refused).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", refused.display())), "{error}");
    }
    model.set("__metadata__", &[1], &[1f32]).unwrap();
    assert_eq!(
        model.save(&path).unwrap_err().to_string(),
        format!("{}: no tensor of it may be called `__metadata__`", path.display())
    );
    assert_eq!(fs::read(&path).unwrap(), old);
    assert_eq!(names(), ["model.safetensors", "taken"], "no draft is left");
    fs::remove_dir_all(&folder).unwrap();
}
