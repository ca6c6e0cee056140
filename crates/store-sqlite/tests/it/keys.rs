//! The index of idempotency keys is written late and in slices: it must not show.

use crate::support::{assert_sound, job, open, scratch};
use orchestrator_core::{JobId, Key, NewJob};
use orchestrator_store::{Store, Submitted};
use orchestrator_store_sqlite::SqliteStore;
use std::path::Path;

/// More than the keys that are held in memory before they are moved.
const KEYS: usize = 140_000;
const BATCH: usize = 10_000;

fn keyed(n: usize) -> NewJob {
    job("1").key(Key::new(n.to_string()))
}

/// How many keys are in the index, and up to which job it is complete.
fn index(path: &Path) -> (i64, i64) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let one = |sql: &str| conn.query_row(sql, [], |row| row.get(0)).unwrap();
    let watermark = "SELECT ifnull((SELECT value FROM meta WHERE name = 'idem_watermark'), 0)";
    (one("SELECT count(*) FROM idem"), one(watermark))
}

/// Submits some keys again, from all over and the newest: nothing of what is known may be taken for new.
async fn known_keys_are_refused(store: &SqliteStore, ids: &[JobId], when: &str) {
    let numbers: Vec<usize> = (0..ids.len()).step_by(997).chain(ids.len() - 50..ids.len()).collect();
    let answers = store.submit(numbers.iter().map(|n| keyed(*n)).collect()).await.unwrap();
    for (n, answer) in numbers.into_iter().zip(answers) {
        assert!(
            matches!(answer, Submitted::Existing { id, .. } if id == ids[n]),
            "{when}, key {n}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn keys_are_known_before_while_and_after_they_are_moved() {
    let dir = scratch();
    let path = dir.path().join("keys.db");
    let (a, b) = (open(&path), open(&path));
    let mut ids = vec![];
    for first in (0..KEYS).step_by(BATCH) {
        let answers = a.submit((first..first + BATCH).map(keyed).collect()).await.unwrap();
        ids.extend(answers.iter().map(Submitted::id));
    }
    let mut while_moving = 0;
    loop {
        // Both hold more than enough in memory, so both move slices, in turns.
        let (moved, watermark) = index(&path);
        known_keys_are_refused(&a, &ids, "the one that submitted").await;
        known_keys_are_refused(&b, &ids, "the other").await;
        // What comes while they move is not part of the move.
        for store in [&a, &b] {
            ids.push(store.submit(vec![keyed(ids.len())]).await.unwrap()[0].id());
        }
        if watermark > 0 {
            assert!(moved >= 1 << 17, "{moved} up to {watermark}");
            break;
        }
        if moved > 0 && while_moving == 0 {
            known_keys_are_refused(&open(&path), &ids, "opened in the middle of the move").await;
        }
        while_moving += u32::from(moved > 0);
        assert!(while_moving < 100, "{moved} are moved, and it does not end");
    }
    assert!(while_moving > 1, "it was never seen while it moved");
    known_keys_are_refused(&a, &ids, "after the move, the one that submitted").await;
    known_keys_are_refused(&b, &ids, "after the move, the other").await;
    a.close();
    known_keys_are_refused(&b, &ids, "after the other closed").await;
    let late = open(&path);
    known_keys_are_refused(&late, &ids, "opened after the move").await;
    ids.push(late.submit(vec![keyed(ids.len())]).await.unwrap()[0].id());
    known_keys_are_refused(&b, &ids, "a key that came after the move").await;
    b.close();
    late.close();
    assert_sound(&path);
}
