//! What kind of processor a machine has.

use super::super::xml::Element;
use super::object::{children, info, kind};

/// Architecture, vendor, family and model as far as they are stated, as topologies of NCCL have
/// them: `x86_64 GenuineIntel 6 85`. Without the latter if packages differ.
pub(super) fn name(topology: &Element, objects: &[&Element]) -> Option<String> {
    let mut elements = std::iter::once(&topology).chain(objects);
    let architecture = elements.find_map(|element| info(element, "Architecture"));
    let architecture = architecture.map(|name| match name {
        "aarch64" => "arm64",
        "ppc64le" => "ppc64",
        other => other,
    });
    let mut packages = Vec::new();
    for object in objects {
        collect_packages(object, &mut packages);
    }
    let of = |package: &Element| {
        let keys = ["CPUVendor", "CPUFamilyNumber", "CPUModelNumber"];
        keys.map(|key| info(package, key).map(str::to_owned))
    };
    let first = packages.first().map(|package| of(package));
    let is_one = packages.iter().all(|package| Some(of(package)) == first);
    let cpu = first.filter(|_| is_one).into_iter().flatten().map_while(|value| value);
    let words: Vec<String> = architecture.map(str::to_owned).into_iter().chain(cpu).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn collect_packages<'a>(object: &'a Element, packages: &mut Vec<&'a Element>) {
    if matches!(kind(object), "Package" | "Socket") {
        packages.push(object);
    }
    for child in children(object) {
        collect_packages(child, packages);
    }
}
