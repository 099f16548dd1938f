//! Draws figures as plots: SVG text, without using fonts or files of the system.
//!
//! In: figures of a run, a calibration. Out: SVG documents; the same figures always give the same text. Never draws a
//! figure that was not measured; a plot with nothing to draw is left out.

use std::error::Error;

use plotters::{coord::Shift, prelude::*};

use crate::{
    calibration::Calibration,
    result::{EvalFigures, EvalResult},
    result_table::budget,
};

const SIZE: (u32, u32) = (900, 460);
/// Left edge of the legend.
const LEGEND: u32 = 640;
const FONT: &str = "sans-serif";
const BEFORE: RGBColor = RGBColor(0x9a, 0xb8, 0xd8);
const AFTER: RGBColor = RGBColor(0x1f, 0x5a, 0x96);
const TURNS: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const UNITS: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const ABLATED: RGBColor = RGBColor(0x7a, 0x3e, 0x9d);
/// Height of a line of the legend.
const LINE: i32 = 19;

/// Why a plot could not be drawn.
pub(super) type PlotError = Box<dyn Error + Send + Sync>;
type PlotArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One point of a plot: its name, tokens and recall in percent.
struct PlotPoint {
    name: String,
    at: (f64, f64),
    colour: RGBColor,
}

/// Recall against context tokens: recollection before and after expansion, baselines, ablations.
/// Points are numbered as in the legend.
pub(super) fn recall_against_tokens(result: &EvalResult) -> Result<Option<String>, PlotError> {
    let points = points(result);
    let Some(low) = points.iter().map(|p| p.at.0).min_by(f64::total_cmp) else { return Ok(None) };
    let high = points.iter().map(|p| p.at.0).max_by(f64::total_cmp).unwrap_or(low);
    let least = points.iter().map(|p| p.at.1).min_by(f64::total_cmp).unwrap_or(0.0);
    let height = SIZE.1.max(48 + LINE as u32 * points.len() as u32);
    drawn((SIZE.0 + 160, height), |root| {
        let (plot, legend) = root.split_horizontally(LEGEND);
        let mut chart = ChartBuilder::on(&plot)
            .caption("Evidence recall against context tokens", (FONT, 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(((low / 1.3)..(high * 1.3)).log_scale(), ((least - 5.0).max(0.0))..105.0)?;
        chart
            .configure_mesh()
            .x_desc("mean o200k tokens a question (logarithmic)")
            .y_desc("recall, %")
            .x_label_formatter(&|t| format!("{t:.0}"))
            .y_label_formatter(&|r| format!("{r:.0}"))
            .light_line_style(WHITE)
            .draw()?;
        let ours = points.iter().filter(|p| p.colour == BEFORE || p.colour == AFTER).map(|p| p.at);
        chart.draw_series(LineSeries::new(ours, AFTER.stroke_width(2)))?;
        for (number, point) in (1..).zip(&points) {
            let mark = EmptyElement::at(point.at)
                + Circle::new((0, 0), 5, point.colour.filled())
                + Text::new(format!("{number}"), (6, -13), (FONT, 11));
            chart.draw_series([mark])?;
            let top = 36 + LINE * (number - 1);
            legend.draw(&Circle::new((12, top), 5, point.colour.filled()))?;
            let words = format!("{number}  {}: {:.1} % at {:.0}", point.name, point.at.1, point.at.0);
            legend.draw(&Text::new(words, (24, top - 7), (FONT, 12)))?;
        }
        Ok(())
    })
    .map(Some)
}

/// Recollection's points first; figures that were not measured are left out.
fn points(result: &EvalResult) -> Vec<PlotPoint> {
    let point = |name: String, tokens: Option<f64>, recall: Option<f64>, colour| {
        Some(PlotPoint { name, at: (tokens?.max(1.0), recall? * 100.0), colour })
    };
    let all = &result.overall;
    let ours = [
        point("first hop alone".to_owned(), all.first_hop_tokens, all.first_hop_recall, BEFORE),
        point("recollection".to_owned(), all.context_tokens, all.evidence_recall, AFTER),
    ];
    let baselines = result.baselines.iter().map(|r| {
        let colour = if r.over == "turns" { TURNS } else { UNITS };
        let name = format!("{} ({}, {})", r.name, r.over, budget(r.budget));
        point(name, r.overall.context_tokens, r.overall.evidence_recall, colour)
    });
    let ablations = result
        .ablations
        .iter()
        .map(|a| point(format!("ablation {}", a.name), a.overall.context_tokens, a.overall.evidence_recall, ABLATED));
    ours.into_iter().chain(baselines).chain(ablations).flatten().collect()
}

/// A share of every category, before expansion and after it.
pub(super) fn before_and_after(
    title: &str,
    result: &EvalResult,
    before: impl Fn(&EvalFigures) -> Option<f64>,
    after: impl Fn(&EvalFigures) -> Option<f64>,
) -> Result<Option<String>, PlotError> {
    let all = std::iter::once(("overall", &result.overall))
        .chain(result.by_category.iter().map(|(name, figures)| (name.as_str(), figures)));
    let bars: Vec<(&str, Option<f64>, Option<f64>)> = all
        .map(|(name, f)| (name, before(f).map(|s| s * 100.0), after(f).map(|s| s * 100.0)))
        .filter(|(_, before, after)| before.is_some() || after.is_some())
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    drawn(SIZE, |root| {
        let count = bars.len() as f64;
        let mut chart = ChartBuilder::on(root)
            .caption(title, (FONT, 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..count, 0.0..110.0)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_desc("%")
            .y_label_formatter(&|r| format!("{r:.0}"))
            .light_line_style(WHITE)
            .draw()?;
        for (i, (_, before, after)) in bars.iter().enumerate() {
            let left = i as f64;
            for (value, from, colour) in [(before, 0.14, BEFORE), (after, 0.50, AFTER)] {
                let Some(value) = value else { continue };
                let (from, to) = (left + from, left + from + 0.34);
                chart.draw_series([Rectangle::new([(from, 0.0), (to, *value)], colour.filled())])?;
                chart.draw_series([Text::new(format!("{value:.1}"), (from + 0.02, value + 5.0), (FONT, 12))])?;
            }
        }
        let width = f64::from(SIZE.0 - 52 - 24) / count;
        for (i, (name, ..)) in bars.iter().enumerate() {
            let x = 64.0 + width * (i as f64 + 0.14);
            root.draw(&Text::new((*name).to_owned(), (x as i32, SIZE.1 as i32 - 46), (FONT, 13)))?;
        }
        for (place, (name, colour)) in [("first hop alone", BEFORE), ("after expansion", AFTER)].into_iter().enumerate()
        {
            let x = 80 + 170 * place as i32;
            let y = SIZE.1 as i32 - 20;
            root.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], colour.filled()))?;
            root.draw(&Text::new(name, (x + 18, y - 1), (FONT, 13)))?;
        }
        Ok(())
    })
    .map(Some)
}

/// Choices per unit against the threshold, with the chosen threshold.
pub(super) fn sweep(calibration: &Calibration) -> Result<Option<String>, PlotError> {
    let (Some(first), Some(last)) = (calibration.sweep.first(), calibration.sweep.last()) else { return Ok(None) };
    let most = calibration.sweep.iter().map(|r| r.choices).fold(calibration.target_choices, f64::max);
    let (low, high) = (first.threshold, last.threshold.max(first.threshold + 0.001));
    drawn(SIZE, |root| {
        let mut chart = ChartBuilder::on(root)
            .caption("Semantic choices a unit against the threshold", (FONT, 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(low..high, 0.0..most * 1.05)?;
        chart.configure_mesh().x_desc("threshold (cosine)").y_desc("mean choices").light_line_style(WHITE).draw()?;
        let line = calibration.sweep.iter().map(|r| (r.threshold, r.choices));
        chart.draw_series(LineSeries::new(line, AFTER.stroke_width(2)))?;
        let chosen = (calibration.semantic_threshold, calibration.choices);
        chart.draw_series([Circle::new(chosen, 6, TURNS.filled())])?;
        let words = format!("{:.3}: {:.2}", chosen.0, chosen.1);
        chart.draw_series([Text::new(words, (chosen.0 + (high - low) * 0.02, chosen.1 + most * 0.04), (FONT, 14))])?;
        Ok(())
    })
    .map(Some)
}

fn drawn(size: (u32, u32), draw: impl FnOnce(&PlotArea<'_>) -> Result<(), PlotError>) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}
