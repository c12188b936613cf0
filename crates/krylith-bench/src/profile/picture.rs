//! Performance profiles as a picture.

use crate::Failure;
use krylith_plot::plotters::coord::Shift;
use krylith_plot::plotters::prelude::*;
use krylith_plot::{GRID, INK, Picture};

/// For each contestant the share of problems that it solves within a factor of the fastest one's seconds.
pub struct Profile<'a> {
    /// By contestant, the sorted factors of what it solved.
    curves: Vec<(&'a str, Vec<f64>)>,
    problems: usize,
}

/// Factors beyond this are not drawn.
const WIDEST: f64 = 100.0;
const COLOURS: [RGBColor; 5] = [
    INK,
    RGBColor(0xe0, 0x7b, 0x39),
    RGBColor(0x3f, 0x9b, 0x5f),
    RGBColor(0xb0, 0x3a, 0x5b),
    RGBColor(0x9a, 0x9a, 0x9a),
];

impl<'a> Profile<'a> {
    /// Of the seconds of each contestant on the same problems, none where it has no answer.
    pub fn new(seconds: Vec<(&'a str, Vec<Option<f64>>)>) -> Profile<'a> {
        let problems = seconds.first().map_or(0, |(_, all)| all.len());
        let fastest =
            |problem: usize| seconds.iter().filter_map(move |(_, all)| all[problem]).min_by(f64::total_cmp);
        let best: Vec<Option<f64>> = (0..problems).map(fastest).collect();
        let factors = |all: &[Option<f64>]| {
            let mut factors: Vec<f64> =
                all.iter().zip(&best).filter_map(|(&own, &best)| Some(own? / best?)).collect();
            factors.sort_by(f64::total_cmp);
            factors
        };
        let curves = seconds.iter().map(|(name, all)| (*name, factors(all))).collect();
        // What nobody solves says nothing about anybody.
        Profile { curves, problems: best.iter().flatten().count() }
    }

    /// The steps of a curve: factor and share.
    fn steps(&self, factors: &[f64]) -> Vec<(f64, f64)> {
        let share = |solved: usize| solved as f64 / self.problems.max(1) as f64;
        let mut steps = vec![(1.0, share(factors.partition_point(|&factor| factor <= 1.0)))];
        for (place, &factor) in
            factors.iter().enumerate().filter(|(_, factor)| **factor > 1.0 && **factor <= WIDEST)
        {
            steps.extend([(factor, share(place)), (factor, share(place + 1))]);
        }
        steps.push((WIDEST, share(factors.partition_point(|&factor| factor <= WIDEST))));
        steps
    }
}

impl Picture for Profile<'_> {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), Failure>
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(
                format!("{} systems: solved within a factor of the fastest", self.problems),
                ("sans-serif", 20),
            )
            .margin(15)
            .x_label_area_size(45)
            .y_label_area_size(60)
            .build_cartesian_2d((1.0..WIDEST).log_scale(), 0.0..1.0f64)?;
        chart
            .configure_mesh()
            .light_line_style(GRID)
            .x_desc("seconds over those of the fastest")
            .y_desc("share of systems")
            .y_label_formatter(&|share| format!("{:.0} %", 100.0 * share))
            .label_style(("sans-serif", 14))
            .draw()?;
        for ((name, factors), colour) in self.curves.iter().zip(COLOURS) {
            chart
                .draw_series(LineSeries::new(self.steps(factors), colour.stroke_width(2)))?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE)
            .border_style(GRID)
            .label_font(("sans-serif", 14))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_by_hand() {
        // The last problem is solved by nobody.
        let seconds = vec![
            ("a", vec![Some(1.0), Some(4.0), Some(3.0), None]),
            ("b", vec![Some(2.0), Some(1.0), None, None]),
        ];
        let profile = Profile::new(seconds);
        assert_eq!(profile.problems, 3);
        assert_eq!(profile.curves, [("a", vec![1.0, 1.0, 4.0]), ("b", vec![1.0, 2.0])]);
        let third = 1.0 / 3.0;
        assert_eq!(
            profile.steps(&profile.curves[1].1),
            [(1.0, third), (2.0, third), (2.0, 2.0 * third), (WIDEST, 2.0 * third)]
        );
    }
}
