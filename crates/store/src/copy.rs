//! What goes from one store to another when a database is moved: plain rows, without a word of SQL.
//!
//! A store that can be left reads its rows out in these shapes, a store that can be moved to writes them down in its
//! own. Numbers (of jobs, lanes, flows, tenants) stay as they are, so the rows keep pointing at each other, and with the
//! salt of the database the ids of jobs stay, too.

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A number, a moment in milliseconds, or 0 and 1 for no and yes.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The values of one row, in the order of [`Table::columns`].
pub type Row = Vec<Cell>;

/// Some rows of one table.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The table.
    pub table: Table,
    /// Its rows.
    pub rows: Vec<Row>,
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident = $name:literal: $($column:ident)*;)*) => {
        /// The tables, in the order in which they are copied: what others count on comes first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Table {
            $($(#[$doc])* $table,)*
        }

        impl Table {
            /// All of them.
            pub const ALL: &[Table] = &[$(Table::$table),*];

            /// What it is called.
            pub const fn name(self) -> &'static str {
                match self { $(Table::$table => $name),* }
            }

            /// What its rows hold, in order.
            pub const fn columns(self) -> &'static [&'static str] {
                match self { $(Table::$table => &[$(stringify!($column)),*]),* }
            }
        }
    };
}

tables! {
    /// How tasks are run.
    Specs = "specs": id body;
    /// Whose jobs there are.
    Tenants = "tenants": id name;
    /// Queues and handlers with sets of limit keys; `line` is the lane without keys, nothing where it is the lane itself.
    Lanes = "lanes": id line queue handler limits;
    /// Every version of every flow.
    Flows = "flows": id implicit name hash version created applied body;
    /// Limit rules.
    Rules = "rules": key rule operator;
    /// Token buckets of limit keys.
    Buckets = "buckets": key tat;
    /// Jobs. `entry` is the stamp of the task of a queue's job, or the moment before which a flow must not start.
    Jobs = "jobs": seq created spec lane flow tier tenant entry key bucket previous payload meta;
    /// Documents of jobs.
    Documents = "documents": seq name media_type size sha256 content;
    /// Queues that are paused.
    Paused = "paused": queue since;
    /// What workers told of themselves.
    Workers = "workers": name note first_seen last_seen;
    /// Heads of jobs of flows.
    Runs = "runs": seq state body output;
    /// Heads that live, by deadline.
    Alive = "alive": deadline seq;
    /// Heads that ended badly.
    Bad = "bad": seq;
    /// Tasks of flows that came to life. `entry` is the stamp with which one stands in line.
    Tasks = "tasks": task lane tier entry payload;
    /// Tasks that workers hold.
    Leases = "leases": task attempt failures crashes spec lane tier stamp since started expires times_out worker checkpoint;
    /// Tasks in line.
    Ready = "ready": line tier stamp task lane since attempt failures crashes checkpoint;
    /// Tasks in line behind a limit.
    Parked = "parked": line tier stamp task lane since attempt failures crashes checkpoint;
    /// Tasks out of line until a moment.
    Delayed = "delayed": due task lane tier attempt failures crashes checkpoint;
    /// Tasks of paused jobs.
    Held = "held": task lane tier stamp since due attempt failures crashes checkpoint;
    /// Tasks that are over.
    Ended = "ended": task state at attempt failures crashes lane tier output;
    /// Dead letters.
    Dead = "dead": task at reason line;
    /// Attempts that did not end well; `n` is their order within the task.
    Attempts = "attempts": task n attempt at how message;
    /// Which jobs wait for the end of a job.
    Waits = "waits": job waiter;
    /// How long tasks of flows took.
    Timings = "timings": flow task n total;
    /// Counts of ended tasks.
    Tally = "tally": line state n;
    /// Jobs that came and ended, by day.
    Daily = "daily": day what n;
    /// Turns between tenants.
    Fair = "fair": line tier tenant next;
    /// The journal.
    Journal = "journal": n at events;
}

impl Table {
    /// Where a column stands in a row.
    ///
    /// # Panics
    /// When the table has no such column.
    pub fn at(self, column: &str) -> usize {
        let place = self.columns().iter().position(|name| *name == column);
        place.unwrap_or_else(|| panic!("{} has no column {column}", self.name()))
    }
}

/// How far a database is, as far as that can be told without changing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The version of its schema; nothing where it has none yet.
    pub version: Option<i64>,
    /// The newest version that this program knows.
    pub known: i64,
    /// How many jobs it holds; nothing where the program is too old to tell.
    pub jobs: Option<u64>,
    /// Where it was moved to.
    pub moved_to: Option<String>,
    /// Where it was copied from.
    pub copied_from: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        assert_eq!(Table::Jobs.at("seq"), 0);
        assert_eq!(Table::Jobs.columns()[Table::Jobs.at("tenant")], "tenant");
        assert_eq!(Table::ALL.len(), 28);
    }
}
