//! Draws a graph of dependencies top down in lanes: one node per row, one lane for every node that
//! something below still needs.

/// So many lanes are drawn; a graph that needs more is listed without lines.
const MAX_LANES: usize = 16;

/// One line of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The lanes, without trailing space.
    pub lanes: String,
    /// The node that stands on this line.
    pub task: Option<u32>,
}

/// Draws the nodes `0..needs.len()`, each below all that it needs, else in their order. What a node
/// needs must not lead in a circle.
pub fn draw(needs: &[&[u32]]) -> Vec<Row> {
    let order = order(needs);
    let mut drawing = Drawing { needs, lanes: vec![], left: open(needs), rows: vec![] };
    for task in &order {
        if !drawing.place(*task) {
            return order.iter().map(|task| Row { lanes: "●".to_owned(), task: Some(*task) }).collect();
        }
    }
    drawing.rows
}

/// How many nodes need each node.
fn open(needs: &[&[u32]]) -> Vec<usize> {
    let mut open = vec![0; needs.len()];
    for need in needs.iter().flat_map(|needs| needs.iter()) {
        open[*need as usize] += 1;
    }
    open
}

/// The nodes, each after all that it needs; always the first one that can be next.
fn order(needs: &[&[u32]]) -> Vec<u32> {
    let mut drawn = vec![false; needs.len()];
    let mut order = Vec::with_capacity(needs.len());
    while let Some(next) =
        (0..needs.len()).find(|at| !drawn[*at] && needs[*at].iter().all(|need| drawn[*need as usize]))
    {
        drawn[next] = true;
        order.push(next as u32);
    }
    order
}

struct Drawing<'a> {
    needs: &'a [&'a [u32]],
    /// The node whose line each lane carries.
    lanes: Vec<Option<u32>>,
    /// How many of those that need a node are not drawn yet.
    left: Vec<usize>,
    rows: Vec<Row>,
}

impl Drawing<'_> {
    /// Draws one node; false if there is no lane for it.
    fn place(&mut self, task: u32) -> bool {
        let needs = self.needs[task as usize];
        for need in needs {
            self.left[*need as usize] -= 1;
        }
        let from: Vec<usize> =
            (0..self.lanes.len()).filter(|at| self.lanes[*at].is_some_and(|n| needs.contains(&n))).collect();
        let ends = |lanes: &[Option<u32>], left: &[usize], at: usize| {
            lanes[at].is_none_or(|task| left[task as usize] == 0)
        };
        // It takes over a lane that ends with it, or the first that is free.
        let free = self.lanes.iter().position(Option::is_none).unwrap_or(self.lanes.len());
        let at = from.iter().copied().find(|at| ends(&self.lanes, &self.left, *at)).unwrap_or(free);
        if at >= MAX_LANES {
            return false;
        }
        if at == self.lanes.len() {
            self.lanes.push(None);
        }
        if !needs.is_empty() {
            let ended: Vec<bool> =
                (0..self.lanes.len()).map(|lane| ends(&self.lanes, &self.left, lane)).collect();
            self.connect(at, &from, &ended);
        }
        for lane in from {
            if ends(&self.lanes, &self.left, lane) {
                self.lanes[lane] = None;
            }
        }
        self.lanes[at] = Some(task);
        self.row(
            Some(task),
            |lane, used| {
                if lane == at {
                    '●'
                } else if used {
                    '│'
                } else {
                    ' '
                }
            },
            |_| ' ',
        );
        if self.left[task as usize] == 0 {
            self.lanes[at] = None;
        }
        while self.lanes.last().is_some_and(Option::is_none) {
            self.lanes.pop();
        }
        true
    }

    /// The line above a node: from the lanes that it needs to its own.
    fn connect(&mut self, at: usize, from: &[usize], ended: &[bool]) {
        let first = from.iter().copied().chain([at]).min().unwrap_or(at);
        let last = from.iter().copied().chain([at]).max().unwrap_or(at);
        let sign = |lane: usize, used: bool| {
            let (left, right) = (lane > first && lane <= last, lane >= first && lane < last);
            let up = used;
            let down = lane == at || (used && !(from.contains(&lane) && ended[lane]));
            let meets = lane == at || from.contains(&lane);
            match (meets, left, right, up, down) {
                (false, true, true, true, _) => '┼',
                (false, true, true, false, _) => '─',
                (false, _, _, true, _) => '│',
                (false, _, _, false, _) => ' ',
                (true, true, true, true, true) => '┼',
                (true, true, true, true, false) => '┴',
                (true, true, true, false, _) => '┬',
                (true, true, false, true, true) => '┤',
                (true, true, false, true, false) => '╯',
                (true, true, false, false, _) => '╮',
                (true, false, true, true, true) => '├',
                (true, false, true, true, false) => '╰',
                (true, false, true, false, _) => '╭',
                (true, false, false, ..) => '│',
            }
        };
        self.row(None, sign, |lane| if lane >= first && lane < last { '─' } else { ' ' });
    }

    fn row(&mut self, task: Option<u32>, sign: impl Fn(usize, bool) -> char, gap: impl Fn(usize) -> char) {
        let mut text = String::new();
        for (lane, used) in self.lanes.iter().enumerate() {
            text.push(sign(lane, used.is_some()));
            text.push(gap(lane));
        }
        self.rows.push(Row { lanes: text.trim_end().to_owned(), task });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(needs: &[&[u32]]) -> String {
        let line = |row: Row| match row.task {
            Some(task) => format!("{} {task}\n", row.lanes),
            None => format!("{}\n", row.lanes),
        };
        draw(needs).into_iter().map(line).collect()
    }

    #[test]
    fn a_chain_is_a_line() {
        assert_eq!(drawn(&[&[], &[0], &[1]]), "● 0\n│\n● 1\n│\n● 2\n");
    }

    #[test]
    fn a_diamond_opens_and_closes() {
        assert_eq!(drawn(&[&[], &[0], &[0], &[1, 2]]), "● 0\n├─╮\n│ ● 1\n│ │\n● │ 2\n├─╯\n● 3\n");
    }

    #[test]
    fn roots_stand_side_by_side_and_join() {
        assert_eq!(drawn(&[&[], &[], &[0, 1], &[]]), "● 0\n│ ● 1\n├─╯\n● 2\n● 3\n");
    }

    #[test]
    fn a_line_crosses_others() {
        // 3 needs 0 and 2, while 1 is still needed by 4.
        assert_eq!(drawn(&[&[], &[], &[], &[0, 2], &[1]]), "● 0\n│ ● 1\n│ │ ● 2\n├─┼─╯\n● │ 3\n  │\n  ● 4\n");
    }

    #[test]
    fn too_wide_a_graph_is_a_list() {
        let mut needs: Vec<&[u32]> = vec![&[]; 20];
        let all: Vec<u32> = (0..20).collect();
        needs.push(&all);
        let rows = draw(&needs);
        assert!(rows.len() == 21 && rows.iter().all(|row| row.lanes == "●"));
    }
}
