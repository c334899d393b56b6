//! How does a suite look at a glance? Locks and workloads down, faults and fences across.

use super::result::{CellResult, CellState, SuiteResult};
use crate::expectation::Outcome;

/// A suite's cells by row and column. Cells that differ in ttl, seed or settings share a place.
pub(super) struct Matrix<'s> {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(String, Vec<Vec<&'s CellResult>>)>,
}

impl<'s> Matrix<'s> {
    pub(super) fn new(suite: &'s SuiteResult) -> Self {
        let mut columns: Vec<String> = Vec::new();
        let mut rows: Vec<(String, Vec<(usize, &CellResult)>)> = Vec::new();
        for result in &suite.cells {
            let (row, column) = (row_of(result), column_of(result));
            let place = columns.iter().position(|known| *known == column).unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            });
            match rows.iter_mut().find(|(known, _)| *known == row) {
                Some((_, cells)) => cells.push((place, result)),
                None => rows.push((row, vec![(place, result)])),
            }
        }
        let spread = |cells: Vec<(usize, &'s CellResult)>| {
            let mut places: Vec<Vec<&CellResult>> = vec![Vec::new(); columns.len()];
            cells.into_iter().for_each(|(place, result)| places[place].push(result));
            places
        };
        let rows = rows.into_iter().map(|(row, cells)| (row, spread(cells))).collect();
        Self { columns, rows }
    }
}

fn row_of(result: &CellResult) -> String {
    format!("{} · {}", result.cell.lock, result.cell.workload)
}

fn column_of(result: &CellResult) -> String {
    format!("{} · {}", result.cell.faults(), result.cell.fence)
}

/// The worst of the cells that share a place.
pub(super) fn worst<'r>(cells: &[&'r CellResult]) -> Option<&'r CellResult> {
    let rank = |result: &&&CellResult| match result.state {
        _ if result.is_quarantined() => 1,
        CellState::Judged { outcome: Outcome::Forbidden } => 7,
        CellState::Judged { outcome: Outcome::Missing } => 6,
        CellState::Broken { .. } => 5,
        CellState::Judged { outcome: Outcome::Unknown } => 4,
        CellState::NotRun => 3,
        CellState::Judged { outcome: Outcome::Expected } => 2,
        CellState::Skipped => 0,
    };
    cells.iter().max_by_key(rank).copied()
}

/// The widest matrix that a terminal can be expected to show, letters.
const WIDTH_MAX: usize = 110;

/// The matrix for a terminal: columns have letters, explained above it. A suite whose cells have little in common
/// would be mostly gaps: it is a list.
#[must_use]
pub fn text(suite: &SuiteResult) -> String {
    let matrix = Matrix::new(suite);
    let rows_width = matrix.rows.iter().map(|(row, _)| row.chars().count()).max().unwrap_or(0);
    if rows_width + matrix.columns.len() * 10 > WIDTH_MAX { list(suite) } else { table(&matrix) }
}

fn list(suite: &SuiteResult) -> String {
    suite.cells.iter().map(|cell| format!("{:11} {}\n", cell.word(), cell.cell.name)).collect()
}

fn table(matrix: &Matrix<'_>) -> String {
    let letters: Vec<String> = (0..matrix.columns.len()).map(letter).collect();
    let mut text = String::new();
    for (letter, column) in letters.iter().zip(&matrix.columns) {
        text += &format!("  {letter}  {column}\n");
    }
    let width = matrix.rows.iter().map(|(row, _)| row.chars().count()).max().unwrap_or(0);
    text += &format!("\n{:width$}", "");
    let texts =
        |places: &[Vec<&CellResult>]| places.iter().map(|cells| place_text(cells)).collect::<Vec<_>>();
    let longest = matrix.rows.iter().flat_map(|(_, places)| texts(places)).map(|text| text.len()).max();
    let place_width = longest.unwrap_or(0).max(8);
    letters.iter().for_each(|letter| text += &format!("  {letter:<place_width$}"));
    for (row, places) in &matrix.rows {
        text += &format!("\n{row:width$}");
        texts(places).iter().for_each(|place| text += &format!("  {place:<place_width$}"));
    }
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn place_text(cells: &[&CellResult]) -> String {
    let Some(worst) = worst(cells) else { return "-".to_owned() };
    let alike = cells.iter().filter(|cell| cell.word() == worst.word()).count();
    if cells.len() == 1 {
        worst.word().to_owned()
    } else {
        format!("{} {alike}/{}", worst.word(), cells.len())
    }
}

/// `A` to `Z`, then `AA` and so on.
fn letter(place: usize) -> String {
    let last = char::from(b'A' + u8::try_from(place % 26).unwrap_or(0));
    match place / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letter(more - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_suite_is_seen_at_a_glance() {
        let text = text(&samples::suite());
        let expected = [
            "  A  none · none",
            "  B  pause-holder · none",
            "  C  pause-holder · token",
            "",
            "                  A         B         C",
            "redis · counter   passed    failed    unknown",
            "sqlite · counter  passed    -         skipped",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_in_quarantine_is_not_called_failed() {
        let mut suite = samples::suite();
        for cell in &mut suite.cells[1..4] {
            cell.cell.quarantine = Some("known to be slow".to_owned());
        }
        let text = text(&suite);
        let rows: Vec<_> = text.lines().skip(4).collect();
        let expected = [
            "                  A            B            C",
            "redis · counter   passed       quarantined  quarantined",
            "sqlite · counter  passed       -            skipped",
        ];
        assert_eq!(rows, expected);
        assert_eq!(suite.totals(), "5 cells: 2 passed, 2 quarantined, 1 skipped");
        let [redis, _, failed, ..] = suite.cells.as_slice() else { panic!("five cells") };
        assert_eq!(worst(&[failed, redis]).unwrap().word(), "passed");
        assert_eq!(list(&suite).lines().nth(2), Some("quarantined redis/counter/pause-holder/none"));
    }

    #[test]
    fn columns_have_letters() {
        assert_eq!([0, 25, 26, 27, 52].map(letter), ["A", "Z", "AA", "AB", "BA"]);
    }
}
