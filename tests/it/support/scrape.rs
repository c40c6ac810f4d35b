//! What `/metrics` says, as Prometheus would read it.

use std::collections::BTreeMap;

use http::Method;

use super::World;
use super::patience::until;

/// One scrape.
#[derive(Clone, Debug)]
pub(crate) struct Scrape {
    pub(crate) text: String,
    samples: Vec<Sample>,
}

/// One line of it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// As written.
    pub(crate) value: String,
}

impl Scrape {
    /// Scrapes the first replica until it is as wanted: the ledger's gauges may be a second old.
    pub(crate) async fn until(world: &World, what: &str, wanted: impl Fn(&Self) -> bool) -> Self {
        until(what, async || {
            let seen = Self::of(world, 0).await;
            wanted(&seen).then_some(seen)
        })
        .await
    }

    /// Scrapes replica `index`, without a token.
    pub(crate) async fn of(world: &World, index: usize) -> Self {
        let url = format!("http://{}/metrics", world.apps[index].admin_addr());
        let reply = world.client.send(Method::GET, &url, &[], "").await;
        Self::read(reply.expect(200).text)
    }

    fn read(text: String) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.map(sample).collect();
        Self { text, samples }
    }

    /// Every sample of a metric.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |found| found.name == name)
    }

    /// The whole number of the one sample with these labels among its own, or `None`.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<i64> {
        let mut found = self.all(name).filter(|sample| sample.has(labels));
        let value = found.next()?.whole();
        assert!(
            found.next().is_none(),
            "{name} {labels:?} is not one sample"
        );
        Some(value)
    }

    /// The same, where it must be there.
    #[track_caller]
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        let found = self.find(name, labels);
        found.unwrap_or_else(|| panic!("no {name} {labels:?} in\n{}", self.text))
    }

    /// What is not zero of a metric: the values of its labels `by`, with a space between, and the number.
    pub(crate) fn not_zero(&self, name: &str, by: &[&str]) -> BTreeMap<String, i64> {
        let all = self.all(name).map(|found| {
            let labels: Vec<_> = by
                .iter()
                .map(|label| found.labels[*label].as_str())
                .collect();
            (labels.join(" "), found.whole())
        });
        all.filter(|(_, value)| *value != 0).collect()
    }

    /// The sum over every sample with these labels among its own.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        let found = self.all(name).filter(|sample| sample.has(labels));
        found.map(Sample::whole).sum()
    }
}

impl Sample {
    pub(crate) fn whole(&self) -> i64 {
        let value = self.value.parse();
        value.unwrap_or_else(|_| panic!("not a whole number: {self:?}"))
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        let mut labels = labels.iter();
        labels.all(|(name, value)| self.labels.get(*name).is_some_and(|own| own == value))
    }
}

/// Label values of ours hold no quote, comma or space.
fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}').split(',');
    let labels = labels.filter_map(|label| {
        let (name, value) = label.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('"').to_owned()))
    });
    Sample {
        name: name.to_owned(),
        labels: labels.collect(),
        value: value.to_owned(),
    }
}
