//! The tables of the study: who solves what, how fast, and where nobody knows why there is no answer.

use super::{PEERS, REFERENCE, Race};
use crate::run::table::table;

/// Below this many seconds nobody waits.
const SHORT: f64 = 0.1;

/// A race in a line: seconds of everyone.
pub fn line(race: &Race) -> String {
    let seconds = |name: &str| match race.runs[name].solved() {
        Some(seconds) => format!("{seconds:.4}"),
        None => "-".into(),
    };
    let columns: Vec<String> = contestants().chain([REFERENCE]).map(seconds).collect();
    format!("{} {} {} {}", race.name(), race.outcome, race.method, columns.join(" "))
}

fn contestants() -> impl Iterator<Item = &'static str> {
    ["auto"].into_iter().chain(PEERS)
}

pub fn markdown(races: &[Race]) -> String {
    solved(races) + &reasons(races) + &long(races) + &short(races)
}

/// How many each solves, and how often it is the fastest.
fn solved(races: &[Race]) -> String {
    let cells = |name: &str| {
        let solved = |race: &&Race| race.runs[name].solved().is_some();
        let is_fastest = |race: &&Race| {
            let mut all = contestants().filter_map(|name| race.runs[name].solved());
            race.runs[name].solved().is_some_and(|own| all.all(|other| own <= other))
        };
        let count = |is: &dyn Fn(&&Race) -> bool| races.iter().filter(|race| is(race)).count().to_string();
        vec![name.to_owned(), count(&solved), count(&is_fastest)]
    };
    let columns = ["contestant".to_owned(), format!("solved of {}", races.len()), "fastest".to_owned()];
    table(&columns, contestants().map(cells))
}

/// Where the reference and `auto` differ, and where there is neither an answer nor a reason.
fn reasons(races: &[Race]) -> String {
    let list = |what: &str, is: &dyn Fn(&Race) -> bool| {
        let names: Vec<String> = races.iter().filter(|race| is(race)).map(Race::name).collect();
        format!("{what}: {} {}\n", names.len(), names.join(", "))
    };
    let reached = |race: &Race| race.runs[REFERENCE].solved().is_some();
    let answered = |race: &Race| race.auto().is_some();
    list("\nThe reference has an answer, auto has none", &|race| reached(race) && !answered(race))
        + &list("No answer of the reference, one of auto", &|race| !reached(race) && answered(race))
        + &list("No answer and no certified reason", &|race| !race.certified)
}

/// Races in which the fastest peer takes long.
fn long(races: &[Race]) -> String {
    let ratio = |race: &Race| {
        let peer = race.best_peer().filter(|&peer| peer >= SHORT)?;
        Some(race.auto().map_or(f64::INFINITY, |own| own / peer))
    };
    let long: Vec<(&Race, f64)> = races.iter().filter_map(|race| Some((race, ratio(race)?))).collect();
    let within = |bound: f64| long.iter().filter(|(_, ratio)| *ratio <= bound).count();
    let slow = long.iter().filter(|(_, ratio)| *ratio > 2.0);
    format!(
        "\nThe fastest peer takes {SHORT} s or more on {}: auto within its time on {}, twice on {}, five times on {}.\n{}",
        long.len(),
        within(1.0),
        within(2.0),
        within(5.0),
        slow.map(|(race, ratio)| format!("{ratio:.2} x: {}\n", line(race))).collect::<String>()
    )
}

/// Races in which it does not, but `auto` does.
fn short(races: &[Race]) -> String {
    let short: Vec<&Race> =
        races.iter().filter(|race| race.best_peer().is_some_and(|peer| peer < SHORT)).collect();
    let waits: Vec<&&Race> = short.iter().filter(|race| race.auto().is_none_or(|own| own > SHORT)).collect();
    format!(
        "Less on {}, of which auto takes more than {SHORT} s on {}.\n{}",
        short.len(),
        waits.len(),
        waits.iter().map(|race| line(race) + "\n").collect::<String>()
    )
}
