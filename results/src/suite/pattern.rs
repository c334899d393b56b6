//! Which cells are meant? A pattern with `*` for any text, matched against a cell's whole name.

/// Does the name match the pattern? Without a `*`, the pattern may stand anywhere in the name.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return name.contains(pattern);
    }
    let parts: Vec<&str> = pattern.split('*').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// The name that comes nearest to being matched: by the fewest letters to change, add or leave out.
pub(super) fn nearest<'n>(pattern: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    names.min_by_key(|name| distance(pattern, name))
}

/// How many letters of the pattern or the name are wrong (Levenshtein's distance, where `*` costs nothing).
fn distance(pattern: &str, name: &str) -> usize {
    let anywhere = if pattern.contains('*') { "" } else { "*" };
    let name: Vec<char> = name.chars().collect();
    let mut before: Vec<usize> = (0..=name.len()).collect();
    for wanted in format!("{anywhere}{pattern}{anywhere}").chars() {
        let free = wanted == '*';
        let mut row = vec![before[0] + usize::from(!free)];
        for (place, letter) in name.iter().enumerate() {
            let swapped = before[place] + usize::from(*letter != wanted);
            let step = usize::from(!free);
            row.push(swapped.min(before[place + 1] + step).min(row[place] + step));
        }
        before = row;
    }
    before[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        let name = "redis?aof=no/counter/kill-server/token";
        for pattern in
            ["*", "redis*", "*/token", "redis*/counter/*", "counter", "*kill*token*", "kill-server"]
        {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["sqlite*", "*/none", "redis/*", "tokens", "*counter"] {
            assert!(!matches(pattern, name), "{pattern}");
        }
        assert!(!matches("ab*ba", "aba"), "the two ends must not overlap");
    }

    #[test]
    fn a_slip_is_near_to_what_was_meant() {
        let names = ["redis/counter/none/none", "redis/counter/pause-holder/none", "sqlite/mutex/none/token"];
        for (pattern, meant) in [
            ("*/pause-holdr/*", names[1]),
            ("sqlit/mutex", names[2]),
            ("redis/counter/none/non", names[0]),
            ("*/tokn", names[2]),
        ] {
            assert_eq!(nearest(pattern, names.into_iter()), Some(meant), "{pattern}");
        }
        assert_eq!(distance("*counter*", names[0]), 0);
        assert_eq!(nearest("*", std::iter::empty()), None);
    }
}
