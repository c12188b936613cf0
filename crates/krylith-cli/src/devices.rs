//! `krylith devices`: what this machine has besides threads.

use crate::Failure;
use crate::args::Devices;
use crate::report::{bytes, counted, print, write_json};
use krylith_gpu::{Backend, DeviceInfo, devices};
use serde_json::json;
use std::fmt::Write;

pub fn run(options: &Devices) -> Result<(), Failure> {
    let found = devices();
    let standard = options.json.as_deref().is_some_and(crate::args::is_standard);
    let mut text = String::new();
    for info in &found.found {
        describe(&mut text, info);
    }
    for (backend, why) in &found.missing {
        writeln!(text, "{backend}: {why}")?;
    }
    if found.found.is_empty() {
        writeln!(text, "no device: solves run on the threads of the processor")?;
    }
    if !standard {
        print(&text)?;
    }
    if let Some(path) = &options.json {
        let device = |info: &DeviceInfo| {
            let mut value = serde_json::to_value(info).expect("plain data");
            value["device"] = info.selector().into();
            value["usable"] = info.lacks().is_none().into();
            value["lacks"] = info.lacks().into();
            value
        };
        let missing =
            |(backend, why): &(Backend, String)| json!({ "backend": backend.to_string(), "why": why });
        let list: Vec<_> = found.found.iter().map(device).collect();
        let missing: Vec<_> = found.missing.iter().map(missing).collect();
        write_json(path, &json!({ "devices": list, "missing": missing }))?;
    }
    Ok(())
}

/// A device, one line for each thing.
fn describe(text: &mut String, info: &DeviceInfo) {
    let kind = format!("{:?}", info.kind).to_lowercase();
    let can = |what, can| if can { what } else { "" };
    let abilities: Vec<&str> = [
        can("f64", info.f64),
        can("acquire/release atomics", info.acquire_release),
        can("forward progress", info.forward_progress),
    ]
    .into_iter()
    .filter(|ability| !ability.is_empty())
    .collect();
    let usable = info.lacks().map_or(String::new(), |lacks| format!("\n  not usable    {lacks}"));
    text.push_str(&format!(
        "{:<12} {}\n  driver        {}\n  what it is    {kind}, {}, {} of memory, buffers of up to {}\n  groups        up to {}, {} shared\n  \
         abilities     {}{usable}\n",
        info.selector(),
        info.name,
        info.driver,
        counted(info.compute_units as usize, "compute unit"),
        bytes(info.memory_bytes),
        bytes(info.max_buffer_bytes),
        counted(info.max_group_items, "item"),
        bytes(info.local_bytes),
        abilities.join(", "),
    ));
}
