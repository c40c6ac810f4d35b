//! Databases on the private PostgreSQL that `./test` starts.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

/// A new, empty database; returns its URL.
///
/// # Panics
/// Without `SPENDCAP_TEST_POSTGRES_URL`: a missing PostgreSQL is a failure, never a skipped test.
pub(crate) async fn fresh_database() -> String {
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting")]
    let Ok(admin) = std::env::var("SPENDCAP_TEST_POSTGRES_URL") else {
        panic!("SPENDCAP_TEST_POSTGRES_URL is not set: run the tests with ./test");
    };
    let name = format!("spendcap_{}", uuid::Uuid::now_v7().simple());
    let mut connection = PgConnection::connect(&admin).await.unwrap();
    let create = format!("CREATE DATABASE {name}");
    sqlx::query(sqlx::AssertSqlSafe(create))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let (server, _) = admin.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}
