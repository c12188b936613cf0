//! What every kernel takes of NVIDIA's multiprocessors: compiled by NVRTC for four architectures, read from the cubins by cuobjdump.
//!
//! Occupancy is that of groups of 256 items: groups per multiprocessor as registers, shared memory and warps allow, times 8 warps, over the most warps.
//! A kernel with numbers in local memory (spilled, or on a stack) is an error.

use super::Options;
use crate::Failure;
use crate::run::table::table;
use crate::run::{Kept, Nothing, Output, Run};
use krylith_gpu::compile_for_cuda;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// An architecture: its number, warps and bytes of shared memory of a multiprocessor. Registers are 65,536 on all of them.
const ARCHITECTURES: [(i32, u32, u32); 4] =
    [(80, 64, 164 << 10), (90, 64, 228 << 10), (100, 64, 228 << 10), (120, 48, 100 << 10)];
const REGISTERS: u32 = 65_536;
const WARPS_OF_GROUP: u32 = 8;
/// Shared memory that the system keeps of each group.
const RESERVED: u32 = 1 << 10;

/// A kernel on an architecture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    kernel: String,
    architecture: i32,
    reproducible: bool,
    registers: u32,
    /// Bytes of local memory: spilled registers and stacks.
    local: u32,
    shared: u32,
    occupancy: f64,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let folder = options.output.as_deref();
    let output = folder.map_or(Output::Nowhere, |folder| Output::at(folder, "kernels"));
    let mut run = Run::<Row>::begin(output, Nothing {}, 1, &[])?;
    for reproducible in [false, true] {
        for architecture in ARCHITECTURES {
            if run.has(|row| row.reproducible == reproducible && row.architecture == architecture.0) {
                continue;
            }
            let cubin = compile_for_cuda(architecture.0, true, reproducible)?;
            let text = resources(&options.cuobjdump, &cubin)?;
            run.add(parse(&text, architecture, reproducible)?)?;
        }
    }
    run.end()?;
    let spilling: Vec<&Row> = run.rows.iter().filter(|row| row.local > 0).collect();
    match spilling.is_empty() {
        true => Ok(()),
        false => Err(format!("kernels in local memory: {spilling:?}").into()),
    }
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let mut kernels: BTreeMap<(&str, bool), Vec<&Row>> = BTreeMap::new();
        for row in &run.rows {
            kernels.entry((&row.kernel, row.reproducible)).or_default().push(row);
        }
        let cells = |(&(kernel, reproducible), rows): (&(&str, bool), &Vec<&Row>)| {
            let mut cells = vec![kernel.to_string(), if reproducible { "yes" } else { "no" }.to_string()];
            cells.extend(rows.iter().map(|row| format!("{}, {:.0} %", row.registers, 100.0 * row.occupancy)));
            cells.push(rows.iter().map(|row| row.shared).max().unwrap_or(0).to_string());
            cells.push(rows.iter().map(|row| row.local).max().unwrap_or(0).to_string());
            cells
        };
        let columns =
            ["kernel", "reproducible", "sm_80", "sm_90", "sm_100", "sm_120", "shared bytes", "local bytes"];
        format!(
            "{}\nRegisters per item, and occupancy in groups of 256 items; f64, the shape for GPUs.\n\n{}",
            run.head.markdown("Kernels on NVIDIA's GPUs"),
            table(&columns, kernels.iter().map(cells))
        )
    }
}

/// What cuobjdump says about a cubin.
fn resources(cuobjdump: &Path, cubin: &[u8]) -> Result<String, Failure> {
    let file = tempfile::NamedTempFile::with_suffix(".cubin")?;
    std::fs::write(file.path(), cubin)?;
    let output =
        Command::new(cuobjdump).arg("-res-usage").arg(file.path()).output().map_err(|error| {
            format!("{}: {error}; pip install nvidia-cuda-cuobjdump", cuobjdump.display())
        })?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

/// Lines of ` Function NAME:` followed by lines of `REG:26 STACK:0 SHARED:2048 LOCAL:0 ...`.
fn parse(
    text: &str,
    (architecture, warps, shared): (i32, u32, u32),
    reproducible: bool,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut name = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("Function ") {
            name = Some(rest.trim_end_matches(':').to_string());
        } else if let Some(kernel) = name.take_if(|_| line.starts_with("REG:")) {
            let number = |key: &str| -> Result<u32, Failure> {
                let word = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
                Ok(word.ok_or_else(|| format!("no {key} in {line:?}"))?.parse()?)
            };
            let (registers, own) = (number("REG")?, number("SHARED")?);
            rows.push(Row {
                kernel,
                architecture,
                reproducible,
                registers,
                local: number("STACK")? + number("LOCAL")?,
                shared: own,
                occupancy: occupancy(registers, own, (warps, shared)),
            });
        }
    }
    match rows.is_empty() {
        true => Err("cuobjdump names no kernel".into()),
        false => Ok(rows),
    }
}

fn occupancy(registers: u32, own: u32, (warps, shared): (u32, u32)) -> f64 {
    // Registers are given to a warp by 256.
    let of_group = (32 * registers).next_multiple_of(256) * WARPS_OF_GROUP;
    let groups = (REGISTERS / of_group.max(1)).min(warps / WARPS_OF_GROUP).min(shared / (own + RESERVED));
    f64::from(groups * WARPS_OF_GROUP) / f64::from(warps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cuobjdump_says_is_read() {
        let text = "Resource usage:\n Common:\n  GLOBAL:0\n Function dots:\n  REG:26 STACK:0 SHARED:2048 LOCAL:8 CONSTANT[0]:416\n";
        let rows = parse(text, ARCHITECTURES[0], false).unwrap();
        assert_eq!(
            (rows[0].kernel.as_str(), rows[0].registers, rows[0].shared, rows[0].local),
            ("dots", 26, 2048, 8)
        );
        assert!(parse("nothing", ARCHITECTURES[0], false).is_err());
    }

    /// By hand: 26 registers are 832 a warp, by 256 it is 1,024, 8,192 a group: 8 groups, of the 8 that there are warps for.
    #[test]
    fn occupancy_by_hand() {
        assert_eq!(occupancy(26, 0, (64, 164 << 10)), 1.0);
        assert_eq!(occupancy(128, 0, (64, 164 << 10)), 0.25);
        assert_eq!(occupancy(26, 40 << 10, (64, 164 << 10)), 0.5);
    }
}
