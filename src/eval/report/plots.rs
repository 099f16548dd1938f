//! Figures to pictures: SVG text, drawn without fonts or files of the system.
//!
//! In: figures of a run, a calibration. Out: SVG documents; the same figures always give
//! the same text. A figure that was not measured is not drawn, and a plot with nothing to
//! draw is none.

use std::error::Error;

use plotters::{coord::Shift, prelude::*};

use crate::eval::{
    calibrate::Calibration,
    result::{EvalResult, Figures},
};

const SIZE: (u32, u32) = (900, 460);
/// Where the legend begins.
const LEGEND: u32 = 640;
const FONT: &str = "sans-serif";
const BEFORE: RGBColor = RGBColor(0x9a, 0xb8, 0xd8);
const AFTER: RGBColor = RGBColor(0x1f, 0x5a, 0x96);
const RIVALS: [RGBColor; 8] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xb8, 0x8a, 0x00),
    RGBColor(0x5b, 0x5b, 0x5b),
    RGBColor(0x7a, 0x3e, 0x9d),
    RGBColor(0x8c, 0x2d, 0x04),
    RGBColor(0x2c, 0xa0, 0xc4),
];

/// Why a plot could not be drawn.
pub(super) type Failure = Box<dyn Error + Send + Sync>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Recall against the tokens that it cost: ours before and after expansion, rivals, ablations.
pub(super) fn recall_against_tokens(result: &EvalResult) -> Result<Option<String>, Failure> {
    let share = |f: &Figures| Some((f.context_tokens?.max(1.0), f.evidence_recall? * 100.0));
    let first = result.overall.first_hop_tokens.zip(result.overall.first_hop_recall);
    let mut points: Vec<(String, (f64, f64), RGBColor)> = Vec::new();
    points.extend(first.map(|(t, r)| ("first hop alone".to_owned(), (t.max(1.0), r * 100.0), BEFORE)));
    points.extend(share(&result.overall).map(|p| ("recollection".to_owned(), p, AFTER)));
    let ours = points.len();
    let rows = result.rivals.iter().map(|r| (r, "")).chain(result.ablations.iter().map(|r| (r, "without ")));
    for ((row, prefix), colour) in rows.zip(RIVALS.iter().cycle()) {
        let over = if prefix.is_empty() && row.over == "turns" { " (turns)" } else { "" };
        points.extend(share(&row.overall).map(|p| (format!("{prefix}{}{over}", row.name), p, *colour)));
    }
    let Some(low) = points.iter().map(|p| p.1.0).min_by(f64::total_cmp) else { return Ok(None) };
    let high = points.iter().map(|p| p.1.0).max_by(f64::total_cmp).unwrap_or(low);
    let least = points.iter().map(|p| p.1.1).min_by(f64::total_cmp).unwrap_or(0.0);
    drawn(|root| {
        let (plot, legend) = root.split_horizontally(LEGEND);
        let mut chart = ChartBuilder::on(&plot)
            .caption("Evidence recall against context tokens", (FONT, 18))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(((low / 1.3)..(high * 1.3)).log_scale(), ((least - 5.0).max(0.0))..100.0)?;
        chart
            .configure_mesh()
            .x_desc("mean o200k tokens a question (logarithmic)")
            .y_desc("recall, %")
            .x_label_formatter(&|t| format!("{t:.0}"))
            .y_label_formatter(&|r| format!("{r:.0}"))
            .light_line_style(WHITE)
            .draw()?;
        chart.draw_series(LineSeries::new(points.iter().take(ours).map(|p| p.1), AFTER.stroke_width(2)))?;
        chart.draw_series(
            points
                .iter()
                .enumerate()
                .map(|(i, (_, at, colour))| Circle::new(*at, if i < ours { 6 } else { 5 }, colour.filled())),
        )?;
        for (name, at, colour) in &points {
            key(&legend, &points, name, *at, *colour)?;
        }
        Ok(())
    })
    .map(Some)
}

/// One line of the legend, beside its colour.
fn key(
    legend: &Area<'_>,
    points: &[(String, (f64, f64), RGBColor)],
    name: &str,
    (tokens, recall): (f64, f64),
    colour: RGBColor,
) -> Result<(), Failure> {
    let place = points.iter().position(|p| p.0 == name && p.1 == (tokens, recall)).unwrap_or_default() as i32;
    let top = 36 + place * 22;
    legend.draw(&Circle::new((12, top), 5, colour.filled()))?;
    let words = format!("{name}: {recall:.1} % at {tokens:.0}");
    legend.draw(&Text::new(words, (24, top - 7), (FONT, 13)))?;
    Ok(())
}

/// A share of every category, before expansion and after it.
pub(super) fn before_and_after(
    title: &str,
    result: &EvalResult,
    before: impl Fn(&Figures) -> Option<f64>,
    after: impl Fn(&Figures) -> Option<f64>,
) -> Result<Option<String>, Failure> {
    let all = std::iter::once(("overall", &result.overall))
        .chain(result.by_category.iter().map(|(name, figures)| (name.as_str(), figures)));
    let bars: Vec<(&str, Option<f64>, Option<f64>)> = all
        .map(|(name, f)| (name, before(f).map(|s| s * 100.0), after(f).map(|s| s * 100.0)))
        .filter(|(_, before, after)| before.is_some() || after.is_some())
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    drawn(|root| {
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

/// Choices a unit against the threshold, with the chosen one.
pub(super) fn sweep(calibration: &Calibration) -> Result<Option<String>, Failure> {
    let (Some(first), Some(last)) = (calibration.sweep.first(), calibration.sweep.last()) else { return Ok(None) };
    let most = calibration.sweep.iter().map(|r| r.choices).fold(calibration.target_choices, f64::max);
    let (low, high) = (first.threshold, last.threshold.max(first.threshold + 0.001));
    drawn(|root| {
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
        chart.draw_series([Circle::new(chosen, 6, RIVALS[0].filled())])?;
        let words = format!("{:.3}: {:.2}", chosen.0, chosen.1);
        chart.draw_series([Text::new(words, (chosen.0 + (high - low) * 0.02, chosen.1 + most * 0.04), (FONT, 14))])?;
        Ok(())
    })
    .map(Some)
}

fn drawn(draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}
