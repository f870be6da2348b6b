//! Circles in a graph of jobs that wait for each other.

/// `a → b → a`; of a long circle its two ends.
#[must_use]
pub fn drawn(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let back = names.first().copied().unwrap_or_default();
    if names.len() <= SHOWN {
        return format!("{} → {back}", names.join(" → "));
    }
    let (head, rest) = names.split_at(SHOWN - 1);
    let last = rest.last().copied().unwrap_or_default();
    format!("{} → … {} more … → {last} → {back}", head.join(" → "), rest.len() - 1)
}

/// The circles that a walk through the graph runs into, each from its first job in the file.
#[must_use]
pub fn find(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        Open,
        Done,
    }
    let mut visits = vec![Visit::New; edges.len()];
    let mut found = Vec::new();
    for start in 0..edges.len() {
        // An own stack: a chain of ten thousand jobs must not use up the thread's.
        let mut path: Vec<(usize, usize)> = Vec::new();
        if visits[start] == Visit::New {
            visits[start] = Visit::Open;
            path.push((start, 0));
        }
        while let Some((at, next)) = path.last_mut() {
            let Some(to) = edges[*at].get(*next).copied() else {
                visits[*at] = Visit::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match visits[to] {
                Visit::Done => {}
                Visit::New => {
                    visits[to] = Visit::Open;
                    path.push((to, 0));
                }
                Visit::Open => {
                    let mut circle: Vec<usize> =
                        path.iter().map(|(at, _)| *at).skip_while(|at| *at != to).collect();
                    let first = circle.iter().enumerate().min_by_key(|(_, at)| **at);
                    let shift = first.map_or(0, |(position, _)| position);
                    circle.rotate_left(shift);
                    found.push(circle);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_circle_is_shown_by_its_ends() {
        assert_eq!(drawn(&["a", "b"]), "a → b → a");
        let many = vec!["x"; 10_000];
        assert!(drawn(&many).ends_with("x → … 9988 more … → x → x"));
    }

    #[test]
    fn a_long_chain_is_walked_and_a_circle_in_it_found() {
        let chain: Vec<Vec<usize>> = (0..100_000).map(|at| vec![at + 1]).chain([vec![]]).collect();
        assert_eq!(find(&chain), Vec::<Vec<usize>>::new());
        assert_eq!(find(&[vec![1], vec![2], vec![1], vec![0]]), [vec![1, 2]]);
        assert_eq!(find(&[vec![0]]), [vec![0]]);
    }
}
