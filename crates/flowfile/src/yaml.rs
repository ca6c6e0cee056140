//! YAML 1.2 with the core schema: the events of the parser to a document.
//!
//! Aliases are copied out, up to [`MAX_COPIED`] in all, so that a few lines cannot become gigabytes.

mod scalar;

use crate::format::{MAX_DEPTH, SyntaxError};
use orchestrator_core::flow::document::{Field, Kind, Node, Span};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use std::collections::HashMap;

/// How much anchors and aliases may copy: one for each value and for each byte of its texts.
const MAX_COPIED: usize = 1 << 18;

/// Reads one YAML document.
pub fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut builder = Builder::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| SyntaxError::new(place(error.marker()), error.info()))?;
        let at = place(&span.start);
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                let message = "a second document starts here; a file holds one flow, put this one in its own";
                return Err(SyntaxError::new(at, message));
            }
        }
        builder.event(event, at)?;
    }
    // Without a document (an empty text, or only comments) there is nothing.
    Ok(builder.root.unwrap_or(Node { at: Some(Span { line: 1, column: 1 }), kind: Kind::Null }))
}

fn place(marker: &Marker) -> Span {
    Span { line: marker.line() as u32, column: marker.col() as u32 + 1 }
}

/// Puts values together as their events come.
#[derive(Default)]
struct Builder {
    /// The lists and maps that are not ended yet, the outermost first.
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    copied: usize,
}

struct Open {
    at: Span,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    /// The fields so far, and the name whose value comes next.
    Map(Vec<Field>, Option<(Span, String)>),
}

struct Anchored {
    node: Node,
    depth: usize,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, at: Span) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tagged = is_tagged_text(tag.as_deref(), at)?;
                let plain = style == ScalarStyle::Plain && !tagged;
                if self.name_is_next() {
                    return self.name(&text, plain, at);
                }
                let kind = if plain {
                    scalar::resolve(&text).map_err(|message| SyntaxError::new(at, message))?
                } else {
                    Kind::Text(text.into_owned())
                };
                self.ended(Node { at: Some(at), kind }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), "seq", at)?;
                self.start(Open { at, anchor, content: Content::List(vec![]) })
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), "map", at)?;
                self.start(Open { at, anchor, content: Content::Map(vec![], None) })
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { at, anchor, content }) => {
                    let kind = match content {
                        Content::List(items) => Kind::List(items),
                        Content::Map(fields, _) => Kind::Map(fields),
                    };
                    self.ended(Node { at: Some(at), kind }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn name_is_next(&self) -> bool {
        matches!(self.open.last(), Some(Open { content: Content::Map(_, None), .. }))
    }

    fn name(&mut self, text: &str, plain: bool, at: Span) -> Result<(), SyntaxError> {
        if plain && text == "<<" {
            let message = "merging with << is not part of YAML 1.2; what tasks share goes into `defaults`";
            return Err(SyntaxError::new(at, message));
        }
        if let Some(Open { content: Content::Map(_, next), .. }) = self.open.last_mut() {
            *next = Some((at, text.to_owned()));
        }
        Ok(())
    }

    fn start(&mut self, open: Open) -> Result<(), SyntaxError> {
        if self.name_is_next() {
            let message = "a field name must be a text; a template needs quotes: \"{{ input.name }}\"";
            return Err(SyntaxError::new(open.at, message));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(SyntaxError::too_deep(open.at));
        }
        self.open.push(open);
        Ok(())
    }

    /// Puts a value where it belongs.
    fn ended(&mut self, node: Node, anchor: usize) -> Result<(), SyntaxError> {
        if anchor != 0 {
            let (weight, depth) = measure(&node);
            self.copy(weight, node.at)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), depth });
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map(fields, next)) => {
                if let Some((at, name)) = next.take() {
                    fields.push(Field { at: Some(at), name, value: node });
                }
            }
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Span) -> Result<(), SyntaxError> {
        if self.name_is_next() {
            return Err(SyntaxError::new(at, "a field name must be a text, not an alias"));
        }
        let Some(Anchored { node, depth }) = self.anchors.get(&anchor) else {
            return Err(SyntaxError::new(at, "the alias stands within the value that it names"));
        };
        if self.open.len() + depth > MAX_DEPTH {
            return Err(SyntaxError::too_deep(at));
        }
        let node = Node { at: Some(at), kind: node.kind.clone() };
        self.copy(measure(&node).0, Some(at))?;
        self.ended(node, 0)
    }

    fn copy(&mut self, weight: usize, at: Option<Span>) -> Result<(), SyntaxError> {
        self.copied += weight;
        if self.copied > MAX_COPIED {
            let message = "the anchors and aliases up to here copy too much; write the values out";
            return Err(SyntaxError { at, message: message.to_owned() });
        }
        Ok(())
    }
}

/// How much a copy of a value costs, and how deep lists and maps stand in it.
fn measure(node: &Node) -> (usize, usize) {
    let (own, inner): (usize, Vec<&Node>) = match &node.kind {
        Kind::Text(text) => return (1 + text.len(), 0),
        Kind::List(items) => (1, items.iter().collect()),
        Kind::Map(fields) => (
            1 + fields.iter().map(|field| field.name.len()).sum::<usize>(),
            fields.iter().map(|field| &field.value).collect(),
        ),
        _ => return (1, 0),
    };
    inner.into_iter().map(measure).fold((own, 1), |(weight, depth), (w, d)| (weight + w, depth.max(d + 1)))
}

const CORE: &str = "tag:yaml.org,2002:";

/// Whether a scalar's tag makes it a text; tags that would make it anything else are refused.
fn is_tagged_text(tag: Option<&Tag>, at: Span) -> Result<bool, SyntaxError> {
    match tag {
        None => Ok(false),
        Some(Tag { handle, suffix }) if handle == "!" && suffix.is_empty() => Ok(true),
        _ => refuse_tag(tag, "str", at).map(|()| true),
    }
}

fn refuse_tag(tag: Option<&Tag>, but: &str, at: Span) -> Result<(), SyntaxError> {
    match tag {
        Some(tag) if tag.handle != CORE || tag.suffix != but => {
            let shown = if tag.handle == CORE { format!("!!{}", tag.suffix) } else { tag.to_string() };
            Err(SyntaxError::new(at, format!("the tag {shown} is not supported; write the value without it")))
        }
        _ => Ok(()),
    }
}
