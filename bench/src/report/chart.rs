//! The chart: for each work the share of what a peer needs that Mainstay needs. A bar that ends
//! before the line at 1 is less than the peer; the tick across a bar is its target. Figures that
//! have no peer, or say the same as another, are left to the table.

use std::fmt::Write;

use crate::figure::{Bound, Figure, Unit};
use crate::peer::Who;

const SHOWN: [&str; 7] =
    ["up", "down", "memory", "crash-p50", "lines-raw", "lines-stamped", "meanwhile-p50"];
const WIDTH: f64 = 760.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 90.0;
/// Bars longer than twice the peer are cut; their number still tells.
const SCALE: f64 = 2.0;
const BAR: f64 = 14.0;
const STEP: f64 = 19.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .work { font-weight: 600 }
  .faint { fill: #6e7781 }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .one { stroke: #6e7781; stroke-width: 1.5; stroke-dasharray: 4 3 }
  .target { stroke: #24292f; stroke-width: 2 }
  .met { fill: #2f81b7 } .missed { fill: #c4622d } .free { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #8d96a0 }
    .grid { stroke: #3d444d } .one { stroke: #8d96a0 } .target { stroke: #e6edf3 }
    .met { fill: #4ba3d9 } .missed { fill: #e0884f } .free { fill: #6e7681 }
  }
";

pub(super) fn draw(figures: &[Figure]) -> String {
    let groups: Vec<(&Figure, Vec<Bar>)> = figures
        .iter()
        .filter(|figure| SHOWN.contains(&figure.id))
        .map(|figure| (figure, bars(figure)))
        .filter(|(_, bars)| !bars.is_empty())
        .collect();
    let mut body = String::new();
    let mut y = 46.0;
    for (figure, bars) in &groups {
        y += 16.0;
        text(&mut body, 12.0, y, "work", &figure.work);
        y += 8.0;
        for bar in bars {
            bar.draw(&mut body, y);
            y += STEP;
        }
        y += 6.0;
    }
    let height = y + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"What Mainstay needs, as a share of what each peer needs\">\n<style>{STYLE}</style>\n"
    );
    text(&mut svg, 12.0, 18.0, "work", "Mainstay's share of what each peer needs: less is better");
    text(&mut svg, 400.0, 18.0, "faint", "blue: within its target; orange: not; grey: no target");
    axis(&mut svg, height);
    svg + &body + "</svg>\n"
}

#[derive(Debug)]
struct Bar {
    who: Who,
    ratio: f64,
    target: Option<f64>,
}

fn bars(figure: &Figure) -> Vec<Bar> {
    let Some(own) = figure.values.get(&Who::Mainstay) else { return Vec::new() };
    // The floor supervises nothing, so its memory says nothing.
    let left_out = |who: Who| who == Who::Floor && figure.unit == Unit::Megabytes;
    figure
        .values
        .iter()
        .filter(|(who, value)| **who != Who::Mainstay && !left_out(**who) && **value > 0.0)
        .map(|(who, value)| Bar {
            who: *who,
            ratio: own / value,
            target: target(figure, *who, *value),
        })
        .collect()
}

/// The bound against this peer, as a ratio.
fn target(figure: &Figure, who: Who, value: f64) -> Option<f64> {
    figure.bounds.iter().find_map(|bound| match bound {
        Bound::Times(peer, limit) if *peer == who => Some(*limit),
        Bound::TimesAnd(peer, limit, more) if *peer == who => Some(limit + more / value),
        Bound::Over(peer, limit) if *peer == who => Some((value + limit) / value),
        Bound::Times(..)
        | Bound::TimesAnd(..)
        | Bound::Share(..)
        | Bound::Over(..)
        | Bound::AtMost(_) => None,
    })
}

impl Bar {
    fn draw(&self, svg: &mut String, y: f64) {
        let class = match self.target {
            Some(target) if self.ratio <= target => "met",
            Some(_) => "missed",
            None => "free",
        };
        let end = along(self.ratio.min(SCALE));
        text(svg, 24.0, y + 11.5, "faint", self.who.name());
        let _infallible = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
            (end - LEFT).max(1.0)
        );
        if let Some(target) = self.target {
            let x = along(target.min(SCALE));
            line(svg, "target", x, y - 2.0, y + BAR + 2.0);
        }
        let beside = self.target.map_or(end, |target| end.max(along(target.min(SCALE))));
        let number =
            if self.ratio < 0.01 { "< 0.01 ×".into() } else { format!("{:.2} ×", self.ratio) };
        text(svg, beside + 6.0, y + 11.5, "number", &number);
    }
}

fn axis(svg: &mut String, height: f64) {
    for mark in [0.0, 0.5, 1.0, 1.5, 2.0] {
        let class = if mark == 1.0 { "one" } else { "grid" };
        line(svg, class, along(mark), 44.0, height - 8.0);
        let label = if mark == 1.0 { "1 = the peer".to_owned() } else { mark.to_string() };
        text(svg, along(mark) - 4.0, 38.0, "faint", &label);
    }
}

fn along(ratio: f64) -> f64 {
    LEFT + ratio / SCALE * (WIDTH - LEFT - RIGHT)
}

fn line(svg: &mut String, class: &str, x: f64, from: f64, to: f64) {
    let _infallible = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _infallible = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        text.replace('<', "&lt;")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_has_a_bar_coloured_by_its_target() {
        let mut figure = Figure::new("up", "jobs up", Unit::Seconds)
            .bound(Bound::Times(Who::S6, 0.3))
            .bound(Bound::Times(Who::Floor, 2.0));
        figure.set(Who::Mainstay, Some(0.5));
        figure.set(Who::S6, Some(2.0));
        figure.set(Who::Runit, Some(1.5));
        figure.set(Who::Floor, Some(0.2));
        let svg = draw(&[figure]);
        for class in ["met", "missed", "free"] {
            let bar = format!("<rect class=\"{class}\"");
            assert_eq!(svg.matches(&bar).count(), 1, "{class}");
        }
        assert!(svg.contains("2.50 ×"), "a bar that is cut still says its number");
    }
}
