//! What no single operation can say: what holds for all of them, and corrections of what the derives cannot know.

use super::answers;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// Where the schema of a flow keeps its parts, and where they stand in the document.
const PARTS: (&str, &str) = ("#/$defs/", "#/components/schemas/Flow_");

/// Makes the document whole.
pub fn finish(described: OpenApi) -> Value {
    // A description is texts and numbers, which JSON can hold.
    let mut document = serde_json::to_value(described).unwrap_or_default();
    document["components"]["responses"] = answers::components();
    add_flow(&mut document["components"]["schemas"]);
    correct_outcome(&mut document["components"]["schemas"]["Outcome"]);
    walk(&mut document, &mut correct);
    if let Some(paths) = document["paths"].as_object_mut() {
        let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
        operations.for_each(|operation| {
            correct_optional(operation);
            add_request_id(operation);
        });
    }
    if let Some(responses) = document["components"]["responses"].as_object_mut() {
        responses.values_mut().for_each(with_request_id);
    }
    document
}

/// The definition of a flow has its own schema, the one that editors get, too.
fn add_flow(schemas: &mut Value) {
    let text = orchestrator_flowfile::json_schema().to_string().replace(PARTS.0, PARTS.1);
    let Ok(Value::Object(mut flow)) = serde_json::from_str(&text) else { return };
    flow.remove("$schema");
    if let Some(Value::Object(parts)) = flow.remove("$defs") {
        for (name, part) in parts {
            schemas[format!("Flow_{name}")] = part;
        }
    }
    schemas["Flow"] = Value::Object(flow);
}

/// An outcome is of one kind. Only the store says that an attempt is lost; no worker may.
fn correct_outcome(outcome: &mut Value) {
    let Some(kinds) = outcome.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    kinds.retain(|kind| kind["enum"] != json!(["lost"]));
    for kind in kinds.iter_mut().filter(|kind| kind["type"] == "object") {
        kind["additionalProperties"] = false.into();
    }
}

/// A parameter or a body that may be left out is not null instead.
fn correct_optional(operation: &mut Value) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        not_null(&mut parameter["schema"]);
    }
    if operation.pointer_mut("/requestBody/content/application~1json/schema").is_some_and(not_null) {
        operation["requestBody"]["required"] = false.into();
    }
}

/// Takes null out of a schema, and says whether it was there.
fn not_null(schema: &mut Value) -> bool {
    if let Some(kinds) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind["type"] != "null");
        if kinds.len() == 1
            && let Some(kind) = kinds.pop()
        {
            *schema = kind;
            return true;
        }
    }
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if types.len() == 1
            && let Some(kind) = types.pop()
        {
            schema["type"] = kind;
            return true;
        }
    }
    false
}

fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            visit(fields);
            fields.values_mut().for_each(|field| walk(field, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

fn correct(schema: &mut Map<String, Value>) {
    // Null is also any JSON, and then it would be both.
    let may_be_null =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().any(|item| item["type"] == "null"));
    if schema.get("oneOf").is_some_and(may_be_null)
        && let Some(items) = schema.remove("oneOf")
    {
        schema.insert("anyOf".to_owned(), items);
    }
    // By the names of the OpenAPI registry, and with the bound that follows from them.
    let (format, most) = match schema.get("format").and_then(Value::as_str) {
        Some("u-int8") => ("uint8", Some(u64::from(u8::MAX))),
        Some("u-int32") => ("uint32", Some(u64::from(u32::MAX))),
        Some("u-int64") => ("uint64", None),
        _ => return,
    };
    schema.insert("format".to_owned(), format.into());
    if let Some(most) = most {
        schema.entry("maximum").or_insert(most.into());
    }
}

fn add_request_id(operation: &mut Value) {
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    responses.values_mut().filter(|response| response.get("$ref").is_none()).for_each(with_request_id);
}

fn with_request_id(response: &mut Value) {
    response["headers"]["X-Request-Id"] = json!({
        "description": "The id of the request, as in the log.",
        "schema": { "type": "string" },
    });
}
