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
}
