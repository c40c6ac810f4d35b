//! The process's environment variables, taken once.

use std::collections::BTreeMap;
use std::fmt;

/// Variables by name. Secrets are among them, so `Debug` shows the names alone.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process. Text that is not UTF-8 is kept with replacement characters,
    /// which no setting accepts.
    pub fn of_process() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads it")]
        let variables = std::env::vars_os();
        variables
            .map(|(name, value)| {
                let name = name.to_string_lossy().into_owned();
                (name, value.to_string_lossy().into_owned())
            })
            .collect()
    }

    /// The variable's value; `None` where it is unset or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?;
        (!value.is_empty()).then_some(value.as_str())
    }

    /// The names of all variables that are set to something.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let set = self.0.iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, _)| name.as_str())
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter();
        Self(variables.map(|(n, v)| (n.into(), v.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
