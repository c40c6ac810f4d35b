//! `[log]`: what is logged, and how.

use tracing::level_filters::LevelFilter;

use crate::config::reader::Reader;

/// What is logged to standard error.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// One JSON object a line, or text for people.
    pub format: LogFormat,
    /// spendcap's own level; libraries log warnings and errors only, because they would log headers.
    pub level: LevelFilter,
}

/// How a log line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// One object a line.
    Json,
    /// For people.
    Text,
}

impl LogConfig {
    pub(in crate::config) fn read(reader: &mut Reader<'_>) -> Self {
        const SECTION: &str = "log";
        let format = reader.text(SECTION, "format", "json or text", |text| match text {
            "json" => Some(LogFormat::Json),
            "text" => Some(LogFormat::Text),
            _ => None,
        });
        let levels = "one of error, warn, info, debug, trace";
        let level = reader.text(SECTION, "level", levels, |text| match text {
            "error" => Some(LevelFilter::ERROR),
            "warn" => Some(LevelFilter::WARN),
            "info" => Some(LevelFilter::INFO),
            "debug" => Some(LevelFilter::DEBUG),
            "trace" => Some(LevelFilter::TRACE),
            _ => None,
        });
        Self {
            format: format.unwrap_or(LogFormat::Json),
            level: level.unwrap_or(LevelFilter::INFO),
        }
    }
}
