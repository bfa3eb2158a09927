//! Runs ONNX's node tests on every device that opens, or on those that are named.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use trefoil::device::DeviceOptions;
use trefoil::{Device, DeviceKind, devices};
use trefoil_conformance::cases::Cases;
use trefoil_conformance::report::Report;
use trefoil_conformance::run::run;

/// ONNX's node tests, run through trefoil's graph.
#[derive(Debug, Parser)]
struct Arguments {
    /// The folder that scripts/fetch-onnx-cases.sh makes.
    #[arg(long, default_value = ".onnx/1.23.2")]
    cases: PathBuf,
    /// Devices with commas between; all that open if none is named.
    #[arg(long, value_delimiter = ',')]
    device: Vec<String>,
    /// Only cases whose name has this in it.
    #[arg(long)]
    only: Option<String>,
    /// Where to write the page, which is about all cases; it is printed otherwise.
    #[arg(long, conflicts_with = "only")]
    page: Option<PathBuf>,
}

fn main() -> ExitCode {
    match tell(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The kinds that are named, in their own order; all if none is.
fn kinds(named: &[String]) -> Result<Vec<DeviceKind>, String> {
    for name in named {
        if !DeviceKind::ALL.iter().any(|kind| kind.name() == name) {
            return Err(format!(
                "no device is called `{name}`: there are {}",
                DeviceKind::ALL.map(DeviceKind::name).join(", ")
            ));
        }
    }
    let is_wanted = |kind: &DeviceKind| named.is_empty() || named.iter().any(|name| name == kind.name());
    Ok(DeviceKind::ALL.into_iter().filter(is_wanted).collect())
}

/// The devices that are named, each of which must open; those that open if none is named.
fn opened(named: &[String]) -> Result<Vec<Device>, Box<dyn Error>> {
    let kinds = kinds(named)?;
    let mut opened = Vec::new();
    for kind in &kinds {
        match devices::open(*kind, &DeviceOptions::default()) {
            Ok(device) => opened.push(device),
            Err(error) if named.is_empty() => eprintln!("not on {kind}: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
    if opened.is_empty() {
        let names: Vec<_> = kinds.into_iter().map(DeviceKind::name).collect();
        return Err(format!("no device opens of {}", names.join(", ")).into());
    }
    Ok(opened)
}

/// The cases whose names have it in them, of which there is one at least.
fn read(arguments: &Arguments) -> Result<Cases, Box<dyn Error>> {
    let (folder, mut cases) = (arguments.cases.display(), Cases::read(&arguments.cases)?);
    let count = cases.cases.len();
    if count == 0 {
        return Err(format!("{folder} holds no case").into());
    }
    if let Some(only) = &arguments.only {
        cases.cases.retain(|case| case.name.contains(only));
        if cases.cases.is_empty() {
            return Err(format!("none of the {count} cases in {folder} has `{only}` in its name").into());
        }
    }
    Ok(cases)
}

/// Whether nothing failed.
fn tell(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let opened = opened(&arguments.device)?;
    let cases = read(arguments)?;
    let outcomes = cases.cases.iter().map(|case| run(&cases, case, &opened)).collect();
    let names = opened.iter().map(|device| device.kind().name().to_owned()).collect();
    let report = Report { cases: &cases, devices: names, outcomes };
    for failure in report.failures() {
        eprintln!("{failure}");
    }
    match &arguments.page {
        Some(path) => std::fs::write(path, report.page())?,
        None => println!("{}", report.page()),
    }
    Ok(report.failures().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_nobody_knows_is_refused() {
        let named = |names: &[&str]| kinds(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["vulcan"]).unwrap_err(), "no device is called `vulcan`: there are cpu, wgpu, vulkan, cuda");
        assert!(named(&["cpu", "vulcan"]).is_err());
        assert_eq!(named(&["cuda", "cpu"]).unwrap(), [DeviceKind::Cpu, DeviceKind::Cuda]);
        assert_eq!(named(&[]).unwrap(), DeviceKind::ALL);
    }

    #[test]
    fn a_name_that_no_case_has_is_refused() {
        let folder = std::env::temp_dir().join(format!("trefoil-cases-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("data.bin"), "").unwrap();
        let refused = |cases: &str, only: Option<&str>| {
            std::fs::write(folder.join("cases.json"), format!(r#"{{"version": "0", "cases": [{cases}]}}"#)).unwrap();
            let given = ["", "--cases"].map(str::to_owned).into_iter().chain([folder.display().to_string()]);
            let only = only.map(|only| format!("--only={only}"));
            read(&Arguments::try_parse_from(given.chain(only)).unwrap()).err().map(|error| error.to_string())
        };
        let case = r#"{"name": "test_abs", "opset": 1, "relative": 0, "absolute": 0, "inputs": [], "outputs": [], "nodes": []}"#;
        let complaints =
            [refused("", None), refused(case, Some("typo")), refused(case, Some("abs")), refused(case, None)];
        std::fs::remove_dir_all(&folder).unwrap();
        let told = |index: usize| complaints[index].clone().unwrap_or_default();
        assert!(told(0).ends_with("holds no case"), "{}", told(0));
        assert!(told(1).contains("none of the 1 cases") && told(1).contains("`typo`"), "{}", told(1));
        assert!(complaints[2..].iter().all(Option::is_none), "{complaints:?}");
    }

    #[test]
    fn a_page_is_of_all_cases() {
        assert!(Arguments::try_parse_from(["", "--page", "page.md", "--only", "abs"]).is_err());
        assert!(Arguments::try_parse_from(["", "--page", "page.md", "--device", "cpu"]).is_ok());
    }
}
