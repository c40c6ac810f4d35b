//! The dashboard and the alerts in `grafana/`, as Prometheus and Grafana read them.

mod dashboard;
mod demo;
mod layout;
mod live;
mod play;
mod process;
mod prometheus;
mod rules;
mod schema;
