//! How are things named, chosen and configured? The common part of every registry: an item with a summary
//! and options, and a choice `NAME?key=value&key=value` checked against it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An option of a registry item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OptionSpec {
    /// The option's name.
    pub name: &'static str,
    /// What it means, in a phrase.
    pub summary: &'static str,
    /// The value that is taken if none is given.
    pub default: &'static str,
    /// The values that it can take; empty: any, the item itself checks.
    pub values: &'static [&'static str],
}

/// What every registry item tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// What it is, in a phrase.
    pub summary: &'static str,
    /// What one must know to use it, in a paragraph.
    pub documentation: &'static str,
    /// What can be set.
    pub options: &'static [OptionSpec],
}

/// A chosen item: its name and the options that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Choice {
    /// The item's name.
    pub name: String,
    /// The options given, by name.
    pub options: BTreeMap<String, String>,
}

/// Why a choice cannot be met. The texts are fragments that fit after "error: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Not of the form `NAME?key=value&key=value`.
    #[error("'{text}' is not of the form NAME?option=value&option=value: {why}")]
    Form {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No item of that name.
    #[error("unknown {kind} '{name}'{}; there is: {known}", nearest_hint(.nearest))]
    Name {
        /// What kind of item, such as `lock`.
        kind: &'static str,
        /// What was given.
        name: String,
        /// The item whose name is nearest.
        nearest: Option<String>,
        /// All names.
        known: String,
    },
    /// The item has no such option.
    #[error("{kind} '{item}' has no option '{name}'{}; it has: {known}", nearest_hint(.nearest))]
    Option {
        /// What kind of item.
        kind: &'static str,
        /// The item.
        item: &'static str,
        /// What was given.
        name: String,
        /// The option whose name is nearest.
        nearest: Option<String>,
        /// All options.
        known: String,
    },
    /// The option cannot take that value.
    #[error("option '{option}' of {kind} '{item}' cannot be '{value}'{}; {expected}", nearest_hint(.nearest))]
    Value {
        /// What kind of item.
        kind: &'static str,
        /// The item.
        item: &'static str,
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// The value that is nearest.
        nearest: Option<Box<str>>,
        /// What it can take.
        expected: String,
    },
}

fn nearest_hint(nearest: &Option<impl std::fmt::Display>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let form = |why| ChoiceError::Form { text: text.to_owned(), why };
        let (name, query) = text.split_once('?').unwrap_or((text, ""));
        if name.is_empty() {
            return Err(form("the name is missing"));
        }
        let mut options = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| form("an option without '='"))?;
            if options.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(form("an option is given twice"));
            }
        }
        Ok(Self { name: name.to_owned(), options })
    }
}

impl TryFrom<String> for Choice {
    type Error = ChoiceError;

    fn try_from(text: String) -> Result<Self, ChoiceError> {
        text.parse()
    }
}

impl From<Choice> for String {
    fn from(choice: Choice) -> Self {
        choice.to_string()
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (place, (key, value)) in self.options.iter().enumerate() {
            write!(f, "{}{key}={value}", if place == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// The options of one item, complete and checked: given values over defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    kind: &'static str,
    item: Item,
    given: BTreeMap<String, String>,
}

impl Options {
    /// Checks a choice's options against the item.
    ///
    /// # Errors
    /// [`ChoiceError::Option`] for an option that the item does not have, [`ChoiceError::Value`] for a value
    /// that is not among those listed.
    pub fn check(kind: &'static str, item: Item, choice: &Choice) -> Result<Self, ChoiceError> {
        for (name, value) in &choice.options {
            let Some(option) = item.options.iter().find(|option| option.name == name) else {
                let names = item.options.iter().map(|option| option.name);
                return Err(ChoiceError::Option {
                    kind,
                    item: item.name,
                    name: name.clone(),
                    nearest: nearest(name, names.clone()),
                    known: join_or_none(names),
                });
            };
            if !option.values.is_empty() && !option.values.contains(&value.as_str()) {
                let values = option.values.iter().copied();
                return Err(ChoiceError::Value {
                    kind,
                    item: item.name,
                    option: name.clone(),
                    value: value.clone(),
                    nearest: nearest(value, values.clone()).map(String::into_boxed_str),
                    expected: format!("it can be: {}", join_or_none(values)),
                });
            }
        }
        Ok(Self { kind, item, given: choice.options.clone() })
    }

    /// The value of an option, given or default.
    ///
    /// # Panics
    /// If the item does not declare that option: a slip in the item's own code.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        match self.given.get(name) {
            Some(value) => value,
            None => match self.item.options.iter().find(|option| option.name == name) {
                Some(option) => option.default,
                None => panic!("{} '{}' does not declare option '{name}'", self.kind, self.item.name),
            },
        }
    }

    /// Was this option given, rather than left at its default?
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// An option's value, parsed.
    ///
    /// # Errors
    /// [`ChoiceError::Value`] with `expected`, such as "a number from 0 to 1".
    pub fn parse<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ChoiceError> {
        let value = self.get(name);
        parse(value).ok_or_else(|| ChoiceError::Value {
            kind: self.kind,
            item: self.item.name,
            option: name.to_owned(),
            value: value.to_owned(),
            nearest: None,
            expected: format!("it must be {expected}"),
        })
    }
}

/// Finds the item of a choice's name.
///
/// # Errors
/// [`ChoiceError::Name`] with the nearest known name.
pub fn find<T>(
    kind: &'static str,
    items: &[T],
    item_of: impl Fn(&T) -> Item,
    name: &str,
) -> Result<usize, ChoiceError> {
    items.iter().position(|item| item_of(item).name == name).ok_or_else(|| {
        let names = items.iter().map(|item| item_of(item).name);
        ChoiceError::Name {
            kind,
            name: name.to_owned(),
            nearest: nearest(name, names.clone()),
            known: join_or_none(names),
        }
    })
}

/// The name nearest to what was given, if one is near enough to be meant.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    const NEAR_ENOUGH: f64 = 0.6;
    names
        .map(|name| (strsim::normalized_damerau_levenshtein(given, name), name))
        .filter(|(likeness, _)| *likeness >= NEAR_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

fn join_or_none<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: Item = Item {
        name: "redis",
        summary: "",
        documentation: "",
        options: &[
            OptionSpec { name: "release", summary: "", default: "lua", values: &["lua", "del"] },
            OptionSpec { name: "drift", summary: "", default: "2ms", values: &[] },
        ],
    };

    #[test]
    fn a_choice_survives_its_text() {
        let choice: Choice = "redis?release=del&drift=1ms".parse().unwrap();
        assert_eq!(choice.to_string().parse::<Choice>().unwrap(), choice);
        assert_eq!(Options::check("lock", ITEM, &choice).unwrap().get("release"), "del");
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let choice: Choice = "redis?relase=del".parse().unwrap();
        let error = Options::check("lock", ITEM, &choice).unwrap_err().to_string();
        assert!(error.contains("did you mean 'release'?"), "{error}");
        let error = find("lock", &[ITEM], |item| *item, "rediss").unwrap_err().to_string();
        assert!(error.contains("did you mean 'redis'?"), "{error}");
        let choice: Choice = "redis?release=dell".parse().unwrap();
        let error = Options::check("lock", ITEM, &choice).unwrap_err().to_string();
        assert!(error.contains("did you mean 'del'?"), "{error}");
    }

    #[test]
    fn a_choice_of_another_form_says_why() {
        for (text, why) in [("?a=b", "name is missing"), ("x?a", "without '='"), ("x?a=1&a=2", "twice")] {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
