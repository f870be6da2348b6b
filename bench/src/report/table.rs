//! The table, as Markdown that also reads well in a terminal: with a column for each peer that was
//! measured.

use crate::figure::Figure;
use crate::peer::Who;

pub(super) fn draw(figures: &[Figure]) -> String {
    let is_there = |who: &Who| figures.iter().any(|figure| figure.values.contains_key(who));
    let peers: Vec<Who> = Who::ALL.into_iter().filter(is_there).collect();
    let mut rows = vec![header(&peers)];
    rows.extend(figures.iter().map(|figure| row(figure, &peers)));
    let columns = rows[0].len();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>();
    rows.insert(1, rule);
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("| {cell:width$} "));
        }
        text.push_str("|\n");
    }
    text
}

fn header(peers: &[Who]) -> Vec<String> {
    let peers = peers.iter().map(|who| who.name());
    let cells = std::iter::once("work").chain(peers).chain(["ratio", "target", "met"]);
    cells.map(str::to_owned).collect()
}

fn row(figure: &Figure, peers: &[Who]) -> Vec<String> {
    let verdicts = figure.verdicts();
    let listed = |parts: Vec<String>| {
        let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        said.join(", ")
    };
    let mut cells = vec![figure.work.clone()];
    cells.extend(peers.iter().map(|who| figure.show(*who)));
    cells.push(listed(verdicts.iter().map(|verdict| verdict.actual.clone()).collect()));
    cells.push(listed(figure.bounds.iter().map(|bound| figure.target(*bound)).collect()));
    let met = |verdict: &crate::figure::Verdict| if verdict.met { "yes" } else { "no" }.to_owned();
    cells.push(listed(verdicts.iter().map(met).collect()));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Bound, Unit};

    #[test]
    fn a_row_shows_each_peer_and_each_target() {
        let mut figure = Figure::new("up", "jobs up", Unit::Seconds)
            .bound(Bound::Times(Who::S6, 0.3))
            .bound(Bound::Times(Who::Floor, 2.0));
        figure.set(Who::Mainstay, Some(0.5));
        figure.set(Who::S6, Some(2.0));
        figure.set(Who::Floor, Some(0.2));
        let row = row(&figure, &[Who::Mainstay, Who::S6, Who::Runit, Who::Floor]);
        assert_eq!(row[1..6].join("|"), "0.50 s|2.00 s|–|0.20 s|0.25 × s6, 2.50 × floor");
        assert_eq!(row[6..].join("|"), "≤ 0.3 × s6, ≤ 2 × floor|yes, no");
        let shown = draw(&[figure]);
        assert!(shown.contains("| floor") && !shown.contains("| runit"), "{shown}");
    }
}
