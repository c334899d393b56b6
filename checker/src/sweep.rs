//! Who else held then? Questions about many intervals, each answered in O(log n) after one sort.

/// An interval of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) owner: u64,
    /// Whose: the place of its tenure.
    pub(crate) tenure: u32,
}

const NOBODY: u32 = u32::MAX;

/// Intervals sorted by their start, and for each prefix the one that ends last and the one of another owner
/// that ends last: so "who of *another* owner began before t and lasts longest?" needs no search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    spans: Vec<Span>,
    latest: Vec<[u32; 2]>,
}

impl Spans {
    pub(crate) fn new(mut spans: Vec<Span>) -> Self {
        // Stable: nearly always in order already, which it notices.
        spans.sort_by_key(|span| (span.start, span.tenure, span.end));
        let mut latest = Vec::with_capacity(spans.len());
        let mut best = [NOBODY; 2];
        for (place, span) in spans.iter().enumerate() {
            best = better(&spans, best, place as u32, span);
            latest.push(best);
        }
        Self { spans, latest }
    }

    pub(crate) fn all(&self) -> &[Span] {
        &self.spans
    }

    /// How many begin before `at`.
    pub(crate) fn count_before(&self, at: u64) -> usize {
        self.spans.partition_point(|span| span.start < at)
    }

    /// Of the first `count`, the one of another owner that ends last.
    pub(crate) fn latest_of_others(&self, count: usize, owner: u64) -> Option<&Span> {
        let best = self.latest.get(count.checked_sub(1)?)?;
        let [first, second] = best.map(|place| self.spans.get(place as usize));
        first.filter(|span| span.owner != owner).or(second)
    }

    /// One of another owner that encloses `[from, to]`.
    pub(crate) fn enclosing(&self, from: u64, to: u64, owner: u64) -> Option<&Span> {
        let count = self.count_before(from.saturating_add(1));
        self.latest_of_others(count, owner).filter(|span| span.end >= to)
    }
}

fn better(spans: &[Span], best: [u32; 2], place: u32, span: &Span) -> [u32; 2] {
    let end_of = |place: u32| spans.get(place as usize).map(|span| span.end);
    let [first, second] = best;
    let Some(leader) = spans.get(first as usize) else { return [place, NOBODY] };
    if span.owner == leader.owner {
        return if span.end > leader.end { [place, second] } else { best };
    }
    if span.end > leader.end {
        [place, first]
    } else if end_of(second).is_none_or(|end| span.end > end) {
        [first, place]
    } else {
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn the_latest_of_others_is_what_a_search_finds(
            raw in prop::collection::vec((0u64..20, 0u64..20, 0u64..4), 0..12),
            owner in 0u64..4,
            count in 0usize..12,
        ) {
            let spans = raw.iter().enumerate().map(|(tenure, (start, end, owner))| Span {
                start: *start, end: *end, owner: *owner, tenure: tenure as u32,
            });
            let spans = Spans::new(spans.collect());
            let count = count.min(spans.all().len());
            let slow = spans.all()[..count].iter().filter(|span| span.owner != owner).map(|span| span.end).max();
            prop_assert_eq!(spans.latest_of_others(count, owner).map(|span| span.end), slow);
        }
    }
}
