//! All that a ledger has stored, as text.

use std::path::Path;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

/// Every byte of every file in `folder` but one.
pub(super) fn files(folder: &Path, but: &Path) -> String {
    let mut all = String::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path != but {
            let bytes = std::fs::read(&path).unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

/// Every column of every row of every table; bytes are hexadecimal.
pub(super) async fn tables(url: &str) -> String {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let names = "SELECT table_name::text FROM information_schema.tables
        WHERE table_schema = 'public'";
    let names = sqlx::query(names).fetch_all(&mut connection).await.unwrap();
    let mut all = String::new();
    for name in names {
        let name: String = name.get(0);
        let rows = format!("SELECT row_to_json(t)::text FROM {name} t");
        let rows = sqlx::query(AssertSqlSafe(rows));
        for row in rows.fetch_all(&mut connection).await.unwrap() {
            let row: String = row.get(0);
            all.push_str(&row);
            all.push('\n');
        }
    }
    all
}
