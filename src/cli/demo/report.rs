//! What the demo prints.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the demo is for a terminal"
)]

use std::io::{self, IsTerminal as _};

use anyhow::ensure;
use comfy_table::{CellAlignment, Table, presets};

use super::AMOUNT_MINOR;
use super::race::Tally;
use super::world::World;
use crate::cli::money::grouped;
use crate::sandbox::Sandbox;

/// One way to Stripe and what came of it.
pub(super) struct Row {
    title: &'static str,
    /// By the sandbox's books.
    charges: usize,
    /// By the sandbox's books, in cents.
    taken_minor: i64,
    tally: Tally,
}

impl Row {
    pub(super) fn counted(title: &'static str, sandbox: &Sandbox, tally: Tally) -> Self {
        let made = sandbox.charges();
        let taken_minor = made.iter().map(|charge| charge.amount_captured).sum();
        Self {
            title,
            charges: made.len(),
            taken_minor,
            tally,
        }
    }

    /// Refuses a demo that does not show what it is for.
    pub(super) fn expect(&self, charges: usize) -> anyhow::Result<()> {
        let title = self.title;
        let taken_minor = i64::try_from(charges)?.saturating_mul(AMOUNT_MINOR);
        ensure!(
            self.charges == charges && self.taken_minor == taken_minor,
            "{title}: the sandbox made {} charges of {} in all, and {charges} of {} were expected",
            thousands(self.charges),
            dollars(self.taken_minor),
            dollars(taken_minor),
        );
        let answered = self.tally.other;
        ensure!(
            answered == 0,
            "{title}: {answered} requests were answered with something else"
        );
        Ok(())
    }

    fn answers(&self) -> String {
        let Tally {
            charged,
            replayed,
            capped,
            other,
        } = self.tally;
        let parts = [
            (charged, "a new charge"),
            (replayed, "the existing charge"),
            (capped, "402, cap reached"),
            (other, "something else"),
        ];
        let told = parts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told
            .map(|(count, what)| format!("{:>5} × {what}", thousands(*count)))
            .collect();
        told.join("\n")
    }
}

pub(super) fn say(text: &str) {
    println!("{text}");
}

/// Where to look while it plays. Beside the bars, on standard error: it is another one every time.
pub(super) fn metrics_line(world: &World) {
    eprintln!("Prometheus may scrape {}/metrics", world.admin_url());
}

/// The table, counted from the sandbox's own books.
pub(super) fn table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["", "charges", "money", "the replicas were told"]);
    for row in rows {
        let charges = thousands(row.charges);
        table.add_row([
            row.title,
            &charges,
            &dollars(row.taken_minor),
            &row.answers(),
        ]);
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Below the bars, where there are any.
    let below_bars = if io::stderr().is_terminal() { "\n" } else { "" };
    println!("{below_bars}{table}\n");
    println!("Charges and money are counted from the sandbox's own books, not from spendcap's.");
    println!("Right is 500 and $49,500; the cap is $54,450.\n");
}

/// What to try by hand.
pub(super) fn curl_lines(world: &World) {
    let (proxy, key) = (world.proxy_url(), world.vault_key());
    let (admin, token) = (world.admin_url(), world.admin_token());
    let sandbox = world.sandbox().base_url();
    println!("Everything stays up until Ctrl-C. Try, in another terminal:\n");
    println!("KEY={key}\n");
    println!("# A duplicate, under a fresh key: the charge that exists.");
    println!("curl -i {proxy}/v1/charges -u $KEY: \\");
    println!("  -d amount=9900 -d currency=usd -d customer=cus_demo001\n");
    println!("# A lawful second charge of the same customer.");
    println!("curl -i {proxy}/v1/charges -u $KEY: -H 'Spendcap-Reference: addon' \\");
    println!("  -d amount=9900 -d currency=usd -d customer=cus_demo001\n");
    println!("# Over the cap: 402.");
    println!("curl -i {proxy}/v1/charges -u $KEY: \\");
    println!("  -d amount=600000 -d currency=usd -d customer=cus_new\n");
    println!("# What the vault key has left.");
    println!("curl {proxy}/spendcap/v1/key -u $KEY:\n");
    println!("# What was observed, for operators.");
    println!("curl '{admin}/v1/flags?limit=3' -H 'Authorization: Bearer {token}'\n");
    println!("# What Prometheus scrapes.");
    println!("curl -s {admin}/metrics | grep _minor\n");
    println!("# What Stripe really charged: 500, and what you added.");
    println!("curl -s {sandbox}/_sandbox/charges | tail -c 90");
}

fn dollars(minor: i64) -> String {
    let (dollars, cents) = (grouped(&(minor / 100).to_string()), minor % 100);
    if cents == 0 {
        format!("${dollars}")
    } else {
        format!("${dollars}.{cents:02}")
    }
}

fn thousands(number: usize) -> String {
    grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_shown_only_where_there_are_some() {
        assert_eq!(dollars(14_850_000), "$148,500");
        assert_eq!(dollars(9_901), "$99.01");
    }
}
