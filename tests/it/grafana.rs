//! The dashboard and the alerts in `grafana/`, as Prometheus and Grafana read them.

mod dashboard;
mod layout;
mod rules;
mod schema;
