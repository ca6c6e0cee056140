//! Rows that go into a table, gathered column by column.
//!
//! The rows of a batch mostly have much in common: one queue, one worker, the first attempt. What is the same in all of
//! them is sent once and not as an array of equal values, which the server would have to take apart row by row: with
//! arrays alone, the rows of a lease cost three times as much.

/// How PostgreSQL names the type of a column.
pub(super) trait Kind {
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($kind:ty = $name:literal),* $(,)?) => {
        $(impl Kind for $kind { const NAME: &'static str = $name; })*
    };
}
kinds!(i64 = "bigint", i32 = "int", i16 = "smallint", bool = "bool", String = "text", Vec<u8> = "bytea");

impl<T: Kind> Kind for Option<T> {
    const NAME: &'static str = T::NAME;
}

/// The name of a column and of its type.
pub(super) type Column = (&'static str, &'static str);

pub(super) fn column<T: Kind>(name: &'static str, _: &[T]) -> Column {
    (name, T::NAME)
}

/// Inserts rows whose `each` columns come as arrays, and whose `alike` columns come as one value for all.
pub(super) fn insert(table: &str, each: &[Column], alike: &[Column]) -> String {
    let list = |of: &mut dyn Iterator<Item = String>| of.collect::<Vec<_>>().join(", ");
    let names = list(&mut each.iter().chain(alike).map(|(name, _)| (*name).to_owned()));
    let arrays = list(&mut (1..).zip(each).map(|(n, (_, kind))| format!("${n}::{kind}[]")));
    let first = each.len() + 1;
    let values: String = (first..).zip(alike).map(|(n, (_, kind))| format!(", ${n}::{kind}")).collect();
    format!("INSERT INTO {table} ({names}) SELECT w.*{values} FROM unnest({arrays}) w")
}

/// Updates rows, which are found by the first column.
pub(super) fn update(table: &str, each: &[Column], alike: &[Column]) -> String {
    let list = |of: &mut dyn Iterator<Item = String>| of.collect::<Vec<_>>().join(", ");
    let arrays = list(&mut (1..).zip(each).map(|(n, (_, kind))| format!("${n}::{kind}[]")));
    let names = list(&mut each.iter().map(|(name, _)| (*name).to_owned()));
    let first = each.len() + 1;
    let own = each[1..].iter().map(|(name, _)| format!("{name} = w.{name}"));
    let set =
        list(&mut own.chain((first..).zip(alike).map(|(n, (name, kind))| format!("{name} = ${n}::{kind}"))));
    let key = each[0].0;
    format!(
        "UPDATE {table} t SET {set} FROM unnest({arrays}) w({names}) WHERE t.{key} = ANY (ARRAY[w.{key}])"
    )
}

/// What stands for a column that is the same in all rows.
pub(super) fn first<T>(column: Vec<T>) -> T {
    column.into_iter().next().expect("there is a row, and every row has every column")
}

/// Columns of one table. Behind the semicolon stand those that are mostly the same in all rows.
macro_rules! columns {
    ($name:ident of $table:literal { $($each:ident: $kind:ty),* $(,)? $(; $($alike:ident: $alike_kind:ty),* $(,)?)? }) => {
        #[derive(Default)]
        struct $name { $($each: Vec<$kind>,)* $($($alike: Vec<$alike_kind>,)*)? }

        impl $name {
            /// Puts the rows into the table, if there are any.
            fn insert(self, out: &mut Vec<Write>) {
                static TEXTS: LazyLock<[String; 2]> = LazyLock::new(|| $name::texts(insert));
                self.write(&TEXTS, out);
            }

            /// The statements for rows that are apart, and for rows that are alike.
            fn texts(make: fn(&str, &[Column], &[Column]) -> String) -> [String; 2] {
                let empty = $name::default();
                let each = [$(column(stringify!($each), &empty.$each)),*];
                let alike: &[Column] = &[$($(column(stringify!($alike), &empty.$alike)),*)?];
                [make($table, &[&each[..], alike].concat(), &[]), make($table, &each, alike)]
            }

            fn write(self, [apart, alike]: &'static [String; 2], out: &mut Vec<Write>) {
                if [$(self.$each.is_empty()),*].contains(&true) {
                    return;
                }
                if !(true $($(&& self.$alike.windows(2).all(|pair| pair[0] == pair[1]))*)?) {
                    let all: Vec<Value> =
                        vec![$(Arc::new(self.$each) as Value,)* $($(Arc::new(self.$alike) as Value,)*)?];
                    out.push(Write::new(apart, all));
                    return;
                }
                let values: Vec<Value> =
                    vec![$(Arc::new(self.$each) as Value,)* $($(Arc::new(first(self.$alike)) as Value,)*)?];
                out.push(Write::new(alike, values));
            }
        }
    };
}

pub(super) use columns;
