//! A flow as a graph: for a terminal, as Mermaid, as Graphviz, as JSON.

use super::lanes;
use crate::output::cut;
use orchestrator_core::flow::{JoinRule, Plan, TaskDef};
use serde_json::{Value, json};
use std::fmt::Write;

/// No line of the text is longer.
const WIDTH: usize = 80;

/// The graph as text: a node per task, the lines between them, and what is special about each.
pub fn text(plan: &Plan) -> String {
    let tasks = plan.tasks();
    let needs: Vec<&[u32]> = tasks.iter().map(|task| &*task.needs).collect();
    let rows = lanes::draw(&needs);
    // Without lines, words must tell.
    let listed = rows.len() == tasks.len();
    let lanes = rows.iter().map(|row| row.lanes.chars().count()).max().unwrap_or(0);
    let names = tasks.iter().map(|task| task.name.chars().count()).max().unwrap_or(0);
    let handlers = tasks.iter().map(|task| task.spec.handler.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for row in rows {
        let line = match row.task {
            None => row.lanes,
            Some(at) => {
                let (task, def) = (&tasks[at as usize], &plan.def().tasks[at as usize]);
                let drawn = row.lanes.chars().count();
                let indent = " ".repeat(lanes - drawn);
                let mut marks = marks(def);
                if listed && !def.needs.is_empty() {
                    marks.insert(0, format!("needs {}", def.needs.join(", ")));
                }
                let marks = marks.join(" · ");
                format!(
                    "{}{indent}  {:names$}  {:handlers$}  {marks}",
                    row.lanes, task.name, task.spec.handler
                )
            }
        };
        let _ = writeln!(out, "{}", cut(line.trim_end(), WIDTH));
    }
    out
}

/// What is special about a task.
fn marks(task: &TaskDef) -> Vec<String> {
    let mut marks = vec![];
    if task.optional {
        marks.push("optional".to_owned());
    }
    if task.join != JoinRule::default() {
        marks.push(format!("join {}", task.join.as_str()));
    }
    if let Some(items) = &task.for_each {
        let at_once = task.concurrency.map(|most| format!(", {most} at once")).unwrap_or_default();
        marks.push(format!("for_each {}{at_once}", bare(items)));
    }
    if let Some(when) = &task.when {
        marks.push(format!("when {}", when.trim().trim_start_matches("{{").trim_end_matches("}}").trim()));
    }
    marks
}

/// An expression without its braces; another value as JSON.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().trim_start_matches("{{").trim_end_matches("}}").trim().to_owned(),
        other => other.to_string(),
    }
}

/// The graph for Mermaid.
pub fn mermaid(plan: &Plan) -> String {
    let mut out = "flowchart TD\n".to_owned();
    for (at, (task, def)) in plan.tasks().iter().zip(&plan.def().tasks).enumerate() {
        let label = label(def, &task.spec.handler).join("<br/>");
        let label = label.replace('"', "#quot;");
        let (open, close) = if def.for_each.is_some() { ("[[", "]]") } else { ("[", "]") };
        let _ = writeln!(out, "  t{at}{open}\"{label}\"{close}");
        if def.optional {
            let _ = writeln!(out, "  style t{at} stroke-dasharray: 5 5");
        }
    }
    for (at, task) in plan.tasks().iter().enumerate() {
        for need in &task.needs {
            let arrow = if plan.tasks()[*need as usize].optional { "-.->" } else { "-->" };
            let _ = writeln!(out, "  t{need} {arrow} t{at}");
        }
    }
    out
}

/// The graph for Graphviz.
pub fn dot(plan: &Plan) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!("digraph {} {{\n  rankdir=TB;\n  node [shape=box];\n", quoted(plan.name()));
    for (task, def) in plan.tasks().iter().zip(&plan.def().tasks) {
        let lines: Vec<_> = label(def, &task.spec.handler).iter().map(|line| quoted(line)).collect();
        let label = lines.join("\\n").replace("\"\\n\"", "\\n");
        let style = if def.optional { ", style=dashed" } else { "" };
        let doubled = if def.for_each.is_some() { ", peripheries=2" } else { "" };
        let _ = writeln!(out, "  {} [label={label}{style}{doubled}];", quoted(&task.name));
    }
    for task in plan.tasks() {
        for need in &task.needs {
            let need = &plan.tasks()[*need as usize];
            let style = if need.optional { " [style=dashed]" } else { "" };
            let _ = writeln!(out, "  {} -> {}{style};", quoted(&need.name), quoted(&task.name));
        }
    }
    out.push_str("}\n");
    out
}

fn label(def: &TaskDef, handler: &str) -> Vec<String> {
    [def.name.clone(), handler.to_owned()].into_iter().chain(marks(def)).collect()
}

/// The graph for programs.
pub fn as_json(plan: &Plan) -> Value {
    let name = |at: &u32| plan.tasks()[*at as usize].name.clone();
    let tasks = plan.tasks().iter().zip(&plan.def().tasks).map(|(task, def)| {
        json!({
            "name": task.name, "handler": task.spec.handler, "queue": task.spec.queue,
            "needs": task.needs.iter().map(name).collect::<Vec<_>>(),
            "join": task.join.as_str(), "optional": task.optional, "when": def.when,
            "for_each": def.for_each, "concurrency": def.concurrency,
        })
    });
    json!({ "flow": plan.name(), "tasks": tasks.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_flowfile::{FlowFile, Format};

    const FLOW: &str = "flow: d
tasks:
  fetch: { handler: command }
  left: { handler: command, needs: [fetch], optional: true }
  right: { handler: http, needs: [fetch], for_each: \"{{ tasks.fetch.output }}\", concurrency: 4 }
  merge: { handler: noop, needs: [left, right], join: all_done, when: \"{{ input.merge }}\" }
";

    fn plan() -> Plan {
        FlowFile::from_text("d.yaml", FLOW, Format::Yaml).unwrap().plan().unwrap()
    }

    #[test]
    fn the_text_shows_lines_and_marks() {
        assert_eq!(
            text(&plan()),
            "●    fetch  command\n\
             ├─╮\n\
             │ ●  left   command  optional\n\
             │ │\n\
             ● │  right  http     for_each tasks.fetch.output, 4 at once\n\
             ├─╯\n\
             ●    merge  noop     join all_done · when input.merge\n"
        );
    }

    #[test]
    fn mermaid_and_dot_tell_the_same() {
        let mermaid = mermaid(&plan());
        assert!(mermaid.contains("  t0[\"fetch<br/>command\"]\n"), "{mermaid}");
        assert!(mermaid.contains("  t1 -.-> t3\n") && mermaid.contains("  t2[[\"right"), "{mermaid}");
        let dot = dot(&plan());
        assert!(dot.contains("  \"fetch\" [label=\"fetch\\ncommand\"];\n"), "{dot}");
        assert!(dot.contains("  \"right\" -> \"merge\";\n") && dot.contains("style=dashed"), "{dot}");
    }
}
