//! `krylith devices`: what this machine has besides threads.

use crate::Failure;
use crate::args::Devices;
use crate::progress::spinner;
use crate::report::{bytes, complain, counted, print, write_json};
use krylith::calibrate::{Calibration, MeasuredPlace, OnThreads, calibrate};
use krylith::plan::{Machine, Machines};
use krylith_gpu::{
    Backend, Device, DeviceFigures, DeviceInfo, DeviceOptions, Devices as Found, devices, measure,
};
use serde_json::json;
use std::fmt::Write;
use std::fs::File;
use std::path::PathBuf;

pub fn run(options: &Devices) -> Result<(), Failure> {
    // What cannot be written shows before anything is measured.
    let create = |path: &PathBuf| {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, Failure>((path.clone(), file))
    };
    let machine_file = options.machine.as_ref().map(create).transpose()?;
    let found = devices();
    let standard = options.json.as_deref().is_some_and(crate::args::is_standard);
    let mut text = String::new();
    let mut figures = Vec::new();
    for info in &found.found {
        describe(&mut text, info);
        let measured = (options.bench && info.lacks().is_none()).then(|| bench(info, options.size));
        match &measured {
            Some(Ok(measured)) => measured_lines(&mut text, measured),
            Some(Err(error)) => writeln!(text, "  failed        {error}")?,
            None => {}
        }
        figures.push(measured);
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
    if let Some((path, mut file)) = machine_file {
        let machines = machines(&found, complain)?;
        serde_json::to_writer_pretty(&mut file, &Machines::Several { machines: machines.clone() })?;
        let names = machines.iter().map(|machine| machine.device.as_deref().unwrap_or("threads"));
        let names: Vec<&str> = names.collect();
        complain(format_args!("{} has the figures of {}", path.display(), names.join(" and of ")));
    }
    if let Some(path) = &options.json {
        let device = |(info, measured): (&DeviceInfo, &Option<Result<DeviceFigures, String>>)| {
            let mut value = serde_json::to_value(info).expect("plain data");
            match measured {
                Some(Ok(figures)) => value["bench"] = serde_json::to_value(figures).expect("plain data"),
                Some(Err(error)) => value["error"] = error.as_str().into(),
                None => {}
            }
            value["device"] = info.selector().into();
            value["usable"] = info.lacks().is_none().into();
            value["lacks"] = info.lacks().into();
            value
        };
        let missing =
            |(backend, why): &(Backend, String)| json!({ "backend": backend.to_string(), "why": why });
        let list: Vec<_> = found.found.iter().zip(&figures).map(device).collect();
        let missing: Vec<_> = found.missing.iter().map(missing).collect();
        write_json(path, &json!({ "devices": list, "missing": missing }))?;
    }
    Ok(())
}

/// The figures of a device, or what went wrong: the others are measured all the same.
fn bench(info: &DeviceInfo, size: u16) -> Result<DeviceFigures, String> {
    let _spinner = spinner(&format!("measuring {}", info.selector()));
    let device = Device::open(&info.selector().parse()?, DeviceOptions::default());
    let device = device.map_err(|error| error.to_string())?;
    measure(&device, size.into()).map_err(|error| error.to_string())
}

/// The figures of the threads and of every device that Krylith can run on; a failure is reported through `tell`, and the other places are measured.
fn machines(found: &Found, tell: fn(String)) -> Result<Vec<Machine>, Failure> {
    let measured = |name: &str, place: &dyn MeasuredPlace| {
        let spinner = spinner(&format!("measuring {name}"));
        let calibration = Calibration::new(name).threads(rayon::current_num_threads());
        let mut show = |line: &str| {
            let run = line.split(':').take(2).collect::<Vec<_>>().join(":");
            spinner.say(format!("measuring {name}: {run}"));
        };
        calibrate(place, &calibration, &mut show)
    };
    let mut machines = Vec::new();
    match measured("threads", &OnThreads) {
        Ok(machine) => machines.push(machine),
        Err(error) => tell(format!("threads: {error}")),
    }
    for info in found.found.iter().filter(|info| info.lacks().is_none()) {
        let name = info.selector();
        match Device::open(&name.parse()?, DeviceOptions::default()) {
            Err(error) => tell(format!("{name}: {error}")),
            Ok(device) => match measured(&name, &device) {
                Ok(machine) => machines.push(machine),
                Err(error) => tell(format!("{name}: {error}")),
            },
        }
    }
    if machines.is_empty() { Err("nothing could be measured".into()) } else { Ok(machines) }
}

/// What was measured.
fn measured_lines(text: &mut String, f: &DeviceFigures) {
    text.push_str(&format!(
        "  measured      {}: updates {:.1} GB/s, dot products {:.1} GB/s, products {:.1} GB/s, {:.1} us per launch, {:.1} us per read\n",
        f.problem,
        f.update_gigabytes_per_second,
        f.dot_gigabytes_per_second,
        f.product_gigabytes_per_second,
        f.launch_microseconds,
        f.read_microseconds
    ));
    for s in &f.solves {
        text.push_str(&format!(
            "  cg, {:<10}{} in {}, {:.3} s, set-up {:.3} s\n",
            s.preconditioner,
            s.outcome,
            counted(s.iterations, "iteration"),
            s.solve,
            s.analyze + s.factor + s.copy
        ));
    }
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
