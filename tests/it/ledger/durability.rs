//! What a confirmed commit is worth does not depend on how the operator's PostgreSQL is tuned.

use super::place::{Database, Place};
use super::scene::{ask, issue, reserve, vault_key};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// Databases are often tuned to confirm commits that are not written yet; a reservation that a crash of
/// the database forgets lets the same money be sent twice.
#[tokio::test]
async fn a_database_tuned_to_lose_commits_does_not_lose_reservations() {
    let place = Place::postgres().await;
    place.open().await.close().await;
    let Database::Postgres { url } = &place.database else {
        panic!("a PostgreSQL")
    };
    let (_, name) = url.rsplit_once('/').unwrap();
    let tune = [
        format!("ALTER DATABASE {name} SET synchronous_commit = off"),
        format!("ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"),
        "CREATE TABLE seen (commit_mode TEXT, isolation TEXT)".to_owned(),
        "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES (current_setting('synchronous_commit'),
                current_setting('transaction_isolation'));
            RETURN NULL; END $$"
            .to_owned(),
        "CREATE TRIGGER see AFTER INSERT ON reservations FOR EACH ROW EXECUTE FUNCTION see()"
            .to_owned(),
    ];
    let mut connection = PgConnection::connect(url).await.unwrap();
    for statement in tune {
        let done = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection);
        done.await.unwrap();
    }

    let opened = place.open().await;
    let key = vault_key(&[("usd", 100)]);
    issue(&opened.ledger, &key).await;
    reserve(&opened.ledger, ask(&key, "cus_1", 60, "k1")).await;

    let seen: (String, String) = sqlx::query_as("SELECT commit_mode, isolation FROM seen")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(seen, ("on".to_owned(), "read committed".to_owned()));
    connection.close().await.unwrap();
    opened.close().await;
}
