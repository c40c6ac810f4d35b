//! One Rust file, read as far as the house rules need: code without comments and strings.

use std::fs;
use std::path::Path;

/// A path below `crate::` that a file names, such as `domain::money`.
pub(crate) struct Use {
    /// Counted from 1.
    pub(crate) line: usize,
    /// At most two segments.
    pub(crate) path: String,
}

/// A source file.
pub(crate) struct Source {
    name: String,
    /// Comments, strings and characters are blanked; line breaks stay.
    code: String,
    /// How much of `code` comes before the inline tests.
    outside_tests: usize,
}

impl Source {
    /// Reads `path`, named relative to `root`.
    pub(crate) fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        Self::new(&name, &text)
    }

    fn new(name: &str, text: &str) -> Self {
        let code = blank(text);
        let is_tests = name.ends_with("/tests.rs") || name.contains("/tests/");
        let outside_tests = match code.find("#[cfg(test)]\nmod tests {") {
            _ if is_tests => 0,
            Some(start) => start,
            None => code.len(),
        };
        Self {
            name: name.to_owned(),
            code,
            outside_tests,
        }
    }

    /// The path, relative to the repository.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The top-level module the file belongs to; `None` for `lib.rs` and `main.rs`.
    pub(crate) fn module(&self) -> Option<String> {
        let module = self.segments().into_iter().next()?;
        (module != "lib" && module != "main").then_some(module)
    }

    /// How many lines come before the inline tests.
    pub(crate) fn lines_outside_tests(&self) -> usize {
        self.production().lines().count()
    }

    /// Every `crate::x::y` and every `super::…` that climbs to the crate, outside tests.
    pub(crate) fn own_paths(&self) -> Vec<Use> {
        let depth = self.segments().len();
        let code = self.production();
        let mut found = Vec::new();
        for (start, _) in code.match_indices("crate::") {
            if is_word_start(code, start) {
                self.collect(start + "crate::".len(), &mut found);
            }
        }
        for (start, _) in code.match_indices("super::") {
            let chained = code[..start].ends_with("super::");
            if chained || !is_word_start(code, start) {
                continue;
            }
            let mut rest = start;
            let mut climbed = 0;
            while code[rest..].starts_with("super::") {
                rest += "super::".len();
                climbed += 1;
            }
            if climbed >= depth {
                self.collect(rest, &mut found);
            }
        }
        found
    }

    /// The lines that name a crate or a path such as `std::env`, outside tests.
    pub(crate) fn lines_naming(&self, library: &str) -> Vec<usize> {
        let code = self.production();
        let mut lines = Vec::new();
        for (start, _) in code.match_indices(library) {
            let end = start + library.len();
            let path_goes_on = code[end..].starts_with("::") || library.contains("::");
            let imported = code[..start].ends_with("use ");
            let whole = !code[end..].starts_with(is_word);
            let inner = code[..start].ends_with("::");
            if is_word_start(code, start) && whole && !inner && (path_goes_on || imported) {
                lines.push(self.line(start));
            }
        }
        if let Some(part) = library.strip_prefix("std::") {
            for tree in code.match_indices("use std::{").map(|(start, _)| start) {
                let end = code[tree..].find(';').map_or(code.len(), |end| tree + end);
                let inside = &code[tree + "use std::{".len()..end];
                let parts = inside.split([',', '{', '}']).map(str::trim);
                if parts
                    .into_iter()
                    .any(|item| item == part || starts_path(item, part))
                {
                    lines.push(self.line(tree));
                }
            }
        }
        lines
    }

    /// The lines of code that contain `needle`, tests included.
    pub(crate) fn lines_containing(&self, needle: &str) -> Vec<usize> {
        let found = self.code.match_indices(needle);
        found.map(|(start, _)| self.line(start)).collect()
    }

    /// The lines of `allow` and `expect` attributes that give no reason.
    pub(crate) fn relaxations_without_reason(&self) -> Vec<usize> {
        let mut lines = Vec::new();
        for opening in ["[allow(", "[expect(", ", allow(", ", expect("] {
            for (start, _) in self.code.match_indices(opening) {
                let before = &self.code[..start];
                let in_cfg_attr = before
                    .rfind("[cfg_attr(")
                    .is_some_and(|attribute| !before[attribute..].contains(']'));
                let end = self.code[start..].find(")]").unwrap_or(0);
                let reasoned = self.code[start..start + end].contains("reason =");
                if (opening.starts_with('[') || in_cfg_attr) && !reasoned {
                    lines.push(self.line(start));
                }
            }
        }
        lines
    }

    fn production(&self) -> &str {
        &self.code[..self.outside_tests]
    }

    fn line(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// `src/proxy/stage.rs` is `["proxy", "stage"]`.
    fn segments(&self) -> Vec<String> {
        let path = self.name.strip_prefix("src/").unwrap_or(&self.name);
        let path = path.trim_end_matches(".rs");
        path.split('/').map(str::to_owned).collect()
    }

    /// The path, or every path of the group, that begins at `start`.
    fn collect(&self, start: usize, found: &mut Vec<Use>) {
        for path in paths(&self.production()[start..]) {
            let line = self.line(start);
            found.push(Use { line, path });
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word_start(code: &str, start: usize) -> bool {
    !code[..start].ends_with(is_word) && !code[..start].ends_with('$')
}

fn starts_path(item: &str, part: &str) -> bool {
    item.strip_prefix(part)
        .is_some_and(|rest| rest.starts_with("::"))
}

/// The first two segments of the path at the start of `code`, or of every path of its group.
fn paths(code: &str) -> Vec<String> {
    let Some(group) = code.strip_prefix('{') else {
        return vec![two_segments(code)];
    };
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut item = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                let path = two_segments(group[item..at].trim());
                if !path.is_empty() {
                    found.push(path);
                }
                item = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

fn two_segments(code: &str) -> String {
    let end = code
        .find(|c: char| !is_word(c) && c != ':')
        .unwrap_or(code.len());
    let mut segments = code[..end]
        .split("::")
        .filter(|segment| !segment.is_empty());
    let first = segments.next().unwrap_or_default();
    match segments.next() {
        Some(second) => format!("{first}::{second}"),
        None => first.to_owned(),
    }
}

/// Replaces comments, strings and characters by spaces, so that only code is left to search.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word_before = code.ends_with(is_word);
        let length = token_to_blank(rest, word_before);
        if length == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (token, after) = rest.split_at(length);
        code.extend(token.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    code
}

/// The bytes of the comment, string or character that `rest` begins with; 0 where it begins none.
fn token_to_blank(rest: &str, word_before: bool) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if !word_before {
        let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
        if let Some(raw) = raw {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            if raw[hashes..].starts_with('"') {
                let opening = rest.len() - raw.len() + hashes + 1;
                let closing = format!("\"{}", "#".repeat(hashes));
                let end = rest[opening..].find(&closing);
                return end.map_or(rest.len(), |end| opening + end + closing.len());
            }
        }
    }
    // A character, not a lifetime: `'x'` or `'\…'`.
    let mut chars = rest.chars();
    if chars.next() == Some('\'') {
        let (first, second) = (chars.next(), chars.next());
        if first == Some('\\') || second == Some('\'') {
            return quoted(rest, '\'');
        }
    }
    0
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn paths_to_other_modules_are_seen_in_every_form() {
    let text = r##"
//! crate::comment
use crate::domain::money::Money;
use crate::{clock, ledger::{self, Ledger}, stripe as wire};
use super::super::proxy::Stage;
use super::sibling;
fn f<'a>(c: char) -> bool { c == '"' && "crate::string" != r#"crate::"raw" "# && crate::app::x() }
#[cfg(test)]
mod tests {
    use crate::sandbox;
}
"##;
    let source = Source::new("src/admin/keys.rs", text);
    let paths: Vec<_> = source
        .own_paths()
        .into_iter()
        .map(|found| found.path)
        .collect();
    assert_eq!(
        paths,
        [
            "domain::money",
            "clock",
            "ledger",
            "stripe",
            "app::x",
            "proxy::Stage"
        ]
    );
    assert_eq!(source.module().as_deref(), Some("admin"));
    assert_eq!(source.lines_outside_tests(), 7);
}

#[test]
fn libraries_are_seen_in_every_form() {
    let source = Source::new(
        "src/x.rs",
        "use std::{env, fs};\nuse sqlx;\nlet a = std::env::var(b);\nfn c(sqlx: &sqlx::Pool) {}\nuse other::sqlx::D;\n",
    );
    assert_eq!(source.lines_naming("std::env"), [3, 1]);
    assert_eq!(source.lines_naming("sqlx"), [2, 4]);
    assert_eq!(source.lines_naming("std::net"), [] as [usize; 0]);
}

#[test]
fn relaxations_are_seen() {
    let source = Source::new(
        "src/x.rs",
        "#[allow(a)]\n#![expect(a, reason = \"b\")]\n#[cfg_attr(x, allow(a))]\nf(a, expect(b))\n",
    );
    assert_eq!(source.relaxations_without_reason(), [1, 3]);
}
