//! What expressions can refer to, for the engine and for plain references.

use super::engine;
use minijinja::value::{Enumerator, Object, Value as Dynamic};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The values that expressions see: `input`, `tasks` and `job`, and for one task of a `for_each`
/// also `item` and `item_index`.
///
/// Plain references walk these values where they are. Only for other expressions the engine needs
/// its own form of them: each name, and each task, is converted when it is first used, and at most
/// once per scope, however many items are rendered over it.
#[derive(Debug)]
pub struct Scope {
    base: Arc<Map<String, Value>>,
    item: Option<Item>,
    converted: OnceLock<Arc<Lazy>>,
    context: OnceLock<Dynamic>,
}

#[derive(Debug)]
struct Item {
    value: Value,
    index: Value,
}

impl Scope {
    /// A scope over `base`, which holds `input`, `tasks` and `job`.
    pub fn new(base: Map<String, Value>) -> Self {
        Scope { base: Arc::new(base), item: None, converted: OnceLock::new(), context: OnceLock::new() }
    }

    /// The item at hand, and its place in the list.
    pub fn set_item(&mut self, value: Value, index: usize) {
        self.item = Some(Item { value, index: Value::from(index) });
        self.context = OnceLock::new();
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        match (name, &self.item) {
            ("item", Some(item)) => Some(&item.value),
            ("item_index", Some(item)) => Some(&item.index),
            _ => self.base.get(name),
        }
    }

    /// Every name that has a value.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let item = self.item.iter().flat_map(|_| ["item", "item_index"]);
        self.base.keys().map(String::as_str).chain(item)
    }

    /// The scope as the engine takes it.
    pub(super) fn context(&self) -> Dynamic {
        let context = self.context.get_or_init(|| {
            let base = self.converted.get_or_init(|| Arc::new(Lazy::new(Arc::clone(&self.base), None)));
            Dynamic::from_object(Context {
                base: Arc::clone(base),
                item: self
                    .item
                    .as_ref()
                    .map(|item| (engine::from_json(&item.value), engine::from_json(&item.index))),
            })
        });
        context.clone()
    }
}

/// All names, for one item.
#[derive(Debug)]
struct Context {
    base: Arc<Lazy>,
    item: Option<(Dynamic, Dynamic)>,
}

impl Object for Context {
    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Dynamic> {
        match (name, &self.item) {
            ("item", Some((item, _))) => Some(item.clone()),
            ("item_index", Some((_, index))) => Some(index.clone()),
            _ => self.base.get_value_by_str(name),
        }
    }
}

/// An object whose fields are converted one by one, when they are asked for: the base, or the tasks
/// in it, for a job may hold the large outputs of many tasks, of which an expression uses few.
#[derive(Debug)]
struct Lazy {
    base: Arc<Map<String, Value>>,
    /// The field of the base that this object is; the base itself without one.
    field: Option<&'static str>,
    known: Mutex<BTreeMap<String, Dynamic>>,
}

const TASKS: &str = "tasks";

impl Lazy {
    fn new(base: Arc<Map<String, Value>>, field: Option<&'static str>) -> Self {
        Lazy { base, field, known: Mutex::default() }
    }

    fn fields(&self) -> Option<&Map<String, Value>> {
        match self.field {
            None => Some(&self.base),
            Some(field) => self.base.get(field)?.as_object(),
        }
    }

    fn convert(&self, name: &str, value: &Value) -> Dynamic {
        if self.field.is_none() && name == TASKS && value.is_object() {
            Dynamic::from_object(Lazy::new(Arc::clone(&self.base), Some(TASKS)))
        } else {
            engine::from_json(value)
        }
    }
}

impl Object for Lazy {
    fn get_value(self: &Arc<Self>, key: &Dynamic) -> Option<Dynamic> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Dynamic> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = known.get(name) {
            return Some(value.clone());
        }
        let value = self.convert(name, self.fields()?.get(name)?);
        known.insert(name.to_owned(), value.clone());
        Some(value)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.fields().into_iter().flat_map(Map::keys);
        Enumerator::Values(names.map(Dynamic::from).collect())
    }
}
