//! Lets those into line that nobody woke.
//!
//! Who frees a place under a limit wakes the first behind it, and passes over rows that others have in hand at that
//! moment: to wait for them could end in a deadlock. If that was the last place to come free, nobody would come
//! again. So every sweep looks for keys that have room and somebody waiting.

use crate::flush;
use crate::limits::{Keys, book};
use crate::load;
use crate::tx::{Abort, Tx};
use orchestrator_core::{LimitKey, Timestamp};

/// The most that one sweep lets in under a key: the rest is met by the next.
const MOST: u32 = 1000;

/// Wakes them; answers whether there were any.
pub async fn wake(tx: &mut Tx, now: Timestamp) -> Result<bool, Abort> {
    // Where a moment is set, a lease wakes them when it has come.
    let waited_for = "WITH RECURSIVE behind(key) AS (
            (SELECT limit_key FROM parked ORDER BY limit_key LIMIT 1)
            UNION ALL
            SELECT (SELECT p.limit_key FROM parked p WHERE p.limit_key > b.key ORDER BY p.limit_key LIMIT 1)
            FROM behind b WHERE b.key IS NOT NULL
        )
        SELECT k.id, k.key, k.running FROM behind b JOIN limit_keys k ON k.id = ANY (ARRAY[b.key]) WHERE k.wake_at IS NULL";
    let rows = tx.query(waited_for, &[]).await?;
    if rows.is_empty() {
        return Ok(false);
    }
    let book = book(tx).await?;
    let mut ids: Vec<i32> = vec![];
    for row in &rows {
        let key: LimitKey = row.get::<_, &str>(1).parse().map_err(|_| load::unreadable("a limit key"))?;
        let full = |cap: u32| i64::from(row.get::<_, i32>(2)) >= i64::from(cap);
        if !book.rule(&key).concurrency.is_some_and(full) {
            ids.push(row.get(0));
        }
    }
    if ids.is_empty() {
        return Ok(false);
    }
    let mut keys = Keys::default();
    keys.lock(tx, ids.clone()).await?;
    let n: Vec<i64> = ids.iter().map(|id| i64::from(keys.let_in(*id, now, MOST))).collect();
    tx.query(flush::WAKE, &[&ids, &n]).await?;
    tx.write(&[keys.write()]).await?;
    Ok(true)
}
