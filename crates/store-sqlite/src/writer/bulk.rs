//! Inserts in chunks. A statement that inserts sixteen rows costs far less than sixteen statements,
//! so the hot tables gather their rows until something wants to read them. `OR FAIL` spares SQLite a journal that
//! would take back the rows of a statement that fails halfway: here that takes back the whole transaction.

use orchestrator_core::Json;
use rusqlite::{Connection, Statement, ToSql};
use std::sync::Arc;

/// Rows per statement.
const CHUNK: usize = 16;

/// A row of a hot table.
pub trait Row {
    /// `INSERT INTO table (columns)`, or with another way to treat conflicts.
    const INTO: &'static str;
    /// How many columns.
    const COLUMNS: usize;

    /// Hands each value, in order, to `put`.
    fn bind(&self, put: &mut dyn FnMut(&dyn ToSql) -> rusqlite::Result<()>) -> rusqlite::Result<()>;
}

/// The rows of one table that wait to be inserted.
pub struct Bulk<'c, R> {
    one: Statement<'c>,
    many: Statement<'c>,
    rows: Vec<R>,
}

impl<'c, R: Row> Bulk<'c, R> {
    /// Prepares the statements.
    pub fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
        let row = format!("({})", vec!["?"; R::COLUMNS].join(", "));
        let many = format!("{} VALUES {}", R::INTO, vec![row.as_str(); CHUNK].join(", "));
        Ok(Bulk {
            one: conn.prepare(&format!("{} VALUES {row}", R::INTO))?,
            many: conn.prepare(&many)?,
            rows: Vec::with_capacity(CHUNK),
        })
    }

    /// Takes a row; a full chunk is written.
    pub fn push(&mut self, row: R) -> rusqlite::Result<()> {
        self.rows.push(row);
        if self.rows.len() == CHUNK {
            insert(&mut self.many, &self.rows)?;
            self.rows.clear();
        }
        Ok(())
    }

    /// Writes what waits.
    pub fn flush(&mut self) -> rusqlite::Result<()> {
        for row in self.rows.drain(..) {
            insert(&mut self.one, std::slice::from_ref(&row))?;
        }
        Ok(())
    }

    /// Forgets what waits: its transaction was rolled back.
    pub fn forget(&mut self) {
        self.rows.clear();
    }
}

fn insert<R: Row>(statement: &mut Statement<'_>, rows: &[R]) -> rusqlite::Result<()> {
    let mut at = 0;
    for row in rows {
        row.bind(&mut |value| {
            at += 1;
            statement.raw_bind_parameter(at, value)
        })?;
    }
    statement.raw_execute()?;
    Ok(())
}

/// Defines a row: its table and its columns, which are its fields.
macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident = $insert:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[allow(missing_docs, reason = "the fields are the columns, which the schema describes")]
            pub struct $name { $(pub $field: $type,)* }

            impl Row for $name {
                const INTO: &'static str =
                    concat!($insert, " (", rows!(@list $($field)*), ")");
                const COLUMNS: usize = [$(stringify!($field)),*].len();

                fn bind(&self, put: &mut dyn FnMut(&dyn ToSql) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
                    $(put(&self.$field)?;)*
                    Ok(())
                }
            }
        )*
    };
    (@list $first:ident $($rest:ident)*) => { concat!(stringify!($first) $(, ", ", stringify!($rest))*) };
}

rows! {
    /// A row of `jobs`.
    JobIn = "INSERT OR FAIL INTO jobs" {
        seq: i64, created: i64, spec: Option<i64>, lane: Option<i64>, flow: Option<i64>, tier: u8, tenant: i64,
        entry: Option<i64>, key: Option<Arc<str>>, bucket: Option<i64>, previous: Option<i64>, payload: Text,
        meta: Option<String>,
    }

    /// A row of `ready`.
    ReadyIn = "INSERT OR FAIL INTO ready" {
        line: i64, tier: u8, stamp: i64, task: i64, lane: i64, since: i64,
        attempt: u32, failures: u32, crashes: u32, checkpoint: Option<Text>,
    }

    /// A row of `leases`.
    LeaseIn = "INSERT OR FAIL INTO leases" {
        task: i64, attempt: u32, failures: u32, crashes: u32, spec: i64, flow: Option<i64>, lane: i64, tier: u8,
        stamp: i64, since: i64, started: i64, expires: i64, times_out: Option<i64>, worker: Arc<str>, checkpoint: Option<Text>,
    }

    /// A row of `ended`.
    EndedIn = "INSERT OR FAIL INTO ended" {
        task: i64, state: u8, at: i64, attempt: u32, failures: u32, crashes: u32, lane: i64, output: Option<Text>,
    }

    /// A row of `runs`.
    RunIn = "REPLACE INTO runs" { seq: i64, state: u8, body: Vec<u8>, output: Option<Text>, }

    /// A row of `alive`.
    AliveIn = "INSERT OR FAIL INTO alive" { deadline: i64, seq: i64, }

    /// A row of `tasks`.
    TaskIn = "INSERT OR FAIL INTO tasks" { task: i64, lane: i64, tier: u8, entry: Option<i64>, payload: Option<Text>, }

    /// A row of `idem`. One that was moved before a crash is moved again.
    IdemIn = "INSERT OR IGNORE INTO idem" { hash: i64, job: i64, }
}

/// JSON as a value of a column.
pub struct Text(pub Json);

impl ToSql for Text {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.as_str().to_sql()
    }
}

/// All hot tables.
pub struct Hot<'c> {
    pub jobs: Bulk<'c, JobIn>,
    pub ready: Bulk<'c, ReadyIn>,
    pub leases: Bulk<'c, LeaseIn>,
    pub ended: Bulk<'c, EndedIn>,
    pub idem: Bulk<'c, IdemIn>,
    pub runs: Bulk<'c, RunIn>,
    pub alive: Bulk<'c, AliveIn>,
    pub tasks: Bulk<'c, TaskIn>,
}

impl<'c> Hot<'c> {
    /// Prepares the statements.
    pub fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Hot {
            jobs: Bulk::prepare(conn)?,
            ready: Bulk::prepare(conn)?,
            leases: Bulk::prepare(conn)?,
            ended: Bulk::prepare(conn)?,
            idem: Bulk::prepare(conn)?,
            runs: Bulk::prepare(conn)?,
            alive: Bulk::prepare(conn)?,
            tasks: Bulk::prepare(conn)?,
        })
    }

    /// Writes what waits, before anything is read.
    pub fn flush(&mut self) -> rusqlite::Result<()> {
        self.jobs.flush()?;
        self.ready.flush()?;
        self.leases.flush()?;
        self.ended.flush()?;
        self.tasks.flush()?;
        self.runs.flush()?;
        self.alive.flush()?;
        self.idem.flush()
    }

    /// Forgets what waits: its transaction was rolled back.
    pub fn forget(&mut self) {
        self.jobs.forget();
        self.ready.forget();
        self.leases.forget();
        self.ended.forget();
        self.tasks.forget();
        self.runs.forget();
        self.alive.forget();
        self.idem.forget();
    }
}
