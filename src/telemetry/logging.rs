//! Log lines on standard error: one event a line, its fields beside the message.

use std::io;

use thiserror::Error;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt};

use crate::config::{LogConfig, LogFormat};

/// Logging was set up before; a process does it once.
#[derive(Debug, Error)]
#[error("logging is set up already")]
pub struct LoggingError(());

/// Sends every event of this process to standard error.
pub fn init(config: &LogConfig) -> Result<(), LoggingError> {
    subscriber(config, io::stderr)
        .try_init()
        .map_err(|_| LoggingError(()))
}

fn subscriber<W>(config: &LogConfig, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer);
    let lines = match config.format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .boxed(),
        LogFormat::Text => lines.with_ansi(false).boxed(),
    };
    // Below warnings, HTTP libraries log headers, and with them keys.
    let libraries = config.level.min(LevelFilter::WARN);
    let filter = Targets::new()
        .with_default(libraries)
        .with_target(env!("CARGO_CRATE_NAME"), config.level);
    // For the whole subscriber, not for the layer: a layer's own filter remembers what it last refused on
    // this thread, and loses our next line after a library asked, through the log crate, whether to log.
    Registry::default().with(filter).with(lines)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Callsite as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, level: LevelFilter) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let config = LogConfig { format, level };
        tracing::subscriber::with_default(subscriber(&config, move || writer.clone()), || {
            tracing::debug!(amount_minor = 9900, "Reserved");
            tracing::debug!(target: "h2::codec", "a frame with headers");
            tracing::warn!(target: "h2::codec", "a broken frame");
        });
        let bytes = lines.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn json_is_one_object_a_line_with_its_fields() {
        let lines = logged(LogFormat::Json, LevelFilter::DEBUG);
        let event: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(event["message"], "Reserved");
        assert_eq!(event["amount_minor"], 9900);
        assert_eq!(event["level"], "DEBUG");
    }

    #[test]
    fn a_library_that_asks_before_it_logs_costs_no_line_of_ours() {
        let lines = Lines::default();
        let writer = lines.clone();
        let config = LogConfig {
            format: LogFormat::Json,
            level: LevelFilter::INFO,
        };
        // What the log crate's bridge asks about before a library's line is made.
        let line = tracing::callsite! {
            name: "line",
            kind: tracing::metadata::Kind::EVENT,
            target: "sqlx::query",
            level: tracing::Level::DEBUG,
            fields:
        };
        tracing::subscriber::with_default(subscriber(&config, move || writer.clone()), || {
            for _ in 0..2 {
                let line = line.metadata();
                let _answer = tracing::dispatcher::get_default(|ours| ours.enabled(line));
                tracing::info!("Serving");
            }
        });
        let bytes = lines.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches("Serving").count(), 2, "{text}");
    }

    #[test]
    fn the_level_is_spendcaps_own_and_libraries_only_warn() {
        for format in [LogFormat::Json, LogFormat::Text] {
            let lines = logged(format, LevelFilter::TRACE);
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].contains("Reserved") && lines[1].contains("broken"));
            assert_eq!(logged(format, LevelFilter::INFO).len(), 1);
            assert_eq!(logged(format, LevelFilter::ERROR).len(), 0);
        }
    }
}
