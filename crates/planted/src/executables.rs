//! Builds the tests with the feature that lets bugs be planted, and finds their executables.

use crate::catchers::{Target, Test};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The executables by package and target.
pub type Executables = BTreeMap<(&'static str, Target), PathBuf>;

/// Builds what these tests are in.
pub fn build(tests: &[Test]) -> Result<Executables, String> {
    let wanted: BTreeSet<_> = tests.iter().map(|test| (test.package, test.target)).collect();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    command.args(["--features", "orchestrator-core/planted-bugs"]);
    for package in wanted.iter().map(|(package, _)| package).collect::<BTreeSet<_>>() {
        command.args(["-p", package]);
    }
    for target in wanted.iter().map(|(_, target)| target).collect::<BTreeSet<_>>() {
        match target {
            Target::Lib => command.arg("--lib"),
            Target::Tests(name) => command.args(["--test", name]),
        };
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err("the tests cannot be built".to_owned());
    }
    let built: Vec<Artifact> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    wanted
        .into_iter()
        .map(|(package, target)| {
            let found = built.iter().find_map(|artifact| artifact.executable_of(package, target));
            let found = found.ok_or_else(|| format!("package {package} has no tests in {target}"))?;
            Ok(((package, target), found))
        })
        .collect()
}

/// What cargo tells of something that it built; other messages do not read as one.
#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: BuiltTarget,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct BuiltTarget {
    kind: Vec<String>,
    name: String,
}

impl Artifact {
    fn executable_of(&self, package: &str, target: Target) -> Option<PathBuf> {
        let same = match target {
            Target::Lib => self.target.kind.iter().any(|kind| kind == "lib"),
            Target::Tests(name) => {
                self.target.kind.iter().any(|kind| kind == "test") && self.target.name == name
            }
        };
        self.executable.clone().filter(|_| same && package_name(&self.package_id) == package)
    }
}

/// The name in a package id: `path+file:///dir/name#0.1.0`, or with `#name@0.1.0` where the directory has another name.
fn package_name(id: &str) -> &str {
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit_once('/').map_or(path, |(_, name)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_id_has_a_name() {
        assert_eq!(package_name("path+file:///src/crates/sim#0.1.0"), "sim");
        assert_eq!(package_name("path+file:///src/crates/core#orchestrator-core@0.1.0"), "orchestrator-core");
    }

    #[test]
    fn an_executable_is_found_by_its_package_and_target() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///src/crates/core#orchestrator-core@0.1.0",
            "target":{"kind":["test"],"name":"flows"},"executable":"/t/flows-1"}"#;
        let artifact: Artifact = serde_json::from_str(line).unwrap();
        let found = artifact.executable_of("orchestrator-core", Target::Tests("flows"));
        assert_eq!(found, Some("/t/flows-1".into()));
        assert_eq!(artifact.executable_of("orchestrator-core", Target::Lib), None);
        assert_eq!(artifact.executable_of("orchestrator-store", Target::Tests("flows")), None);
        assert!(serde_json::from_str::<Artifact>(r#"{"reason":"build-finished","success":true}"#).is_err());
    }
}
