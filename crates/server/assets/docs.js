// Shows openapi.json of this server: operations by tag, with what they take and give, a curl that can be copied, and a way to
// try them. Everything is made of elements and texts, never of markup, so that nothing in the document can become code.
"use strict";

const METHODS = ["get", "post", "put", "delete", "patch"];
let api;

/** An element with attributes and children; a text is a child, too. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/** Text with its `code` set as such; a line that begins with "- " is an item. */
function prose(text = "") {
  const inline = (part) => part.split("`").map((piece, n) => (n % 2 ? make("code", {}, piece) : piece));
  return text.split(/\n\n+/).map((paragraph) =>
    paragraph.startsWith("- ")
      ? make("ul", {}, paragraph.slice(2).split("\n- ").map((item) => make("li", {}, inline(item))))
      : make("p", {}, inline(paragraph)));
}

/** What a reference stands for. */
function resolve(thing) {
  if (!thing || !thing.$ref) return thing || {};
  const found = thing.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replace(/~1/g, "/")], api);
  return { ...found, ...thing, $ref: undefined, named: thing.$ref.split("/").pop() };
}

/** A type in a few words. */
function typeOf(given) {
  const schema = resolve(given);
  if (schema.named) return schema.named;
  const kinds = schema.anyOf || schema.oneOf || schema.allOf;
  if (kinds) return [...new Set(kinds.map(typeOf))].join(schema.allOf ? " and " : " or ");
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" or ");
  const type = [].concat(schema.type || "any").join(" or ");
  if (schema.items) return `${type} of ${typeOf(schema.items)}`;
  return schema.format ? `${type} (${schema.format})` : type;
}

/** The bounds of a type in a few words. */
function bounds(given) {
  const schema = resolve(given);
  const told = [
    ["minimum", "at least"], ["maximum", "at most"], ["minLength", "shortest"], ["maxLength", "longest"],
    ["minItems", "fewest"], ["maxItems", "most"], ["pattern", "as"], ["default", "default"],
  ];
  return told.filter(([key]) => schema[key] !== undefined).map(([key, word]) => `${word} ${schema[key]}`).join(", ");
}

/** The fields of a schema; what stands in them is opened on demand, so that a schema may hold itself. */
function fields(given) {
  const schema = resolve(given);
  const kinds = schema.anyOf || schema.oneOf || schema.allOf;
  if (kinds) return kinds.map(fields).filter(Boolean);
  if (schema.items) return fields(schema.items);
  if (!schema.properties) return null;
  const required = new Set(schema.required);
  return make("dl", {}, Object.entries(schema.properties).map(([name, field]) => {
    const description = resolve(field).description || (field.anyOf || field.oneOf || []).map((kind) => kind.description).find(Boolean);
    return [
      make("dt", {}, name, make("small", {}, ` ${typeOf(field)}${required.has(name) ? ", required" : ""} ${bounds(field)}`)),
      make("dd", {}, prose(description), opened(field)),
    ];
  }));
}

function holdsFields(given) {
  const schema = resolve(given);
  const kinds = schema.anyOf || schema.oneOf || schema.allOf;
  return Boolean(schema.properties) || (kinds || []).some(holdsFields) || Boolean(schema.items && holdsFields(schema.items));
}

function opened(schema) {
  if (!holdsFields(schema)) return null;
  const box = make("details", { class: "schema" }, make("summary", {}, `Fields of ${typeOf(schema)}`));
  box.addEventListener("toggle", () => box.childElementCount === 1 && box.append(...[fields(schema)].flat(9)), { once: true });
  return box;
}

/** A value that fits a schema, for a body to begin with. */
function example(content = {}) {
  if (content.example !== undefined) return content.example;
  return Object.values(content.examples || {})[0]?.value;
}

function copyable(text) {
  const code = make("pre", { tabindex: "0" }, text);
  const copy = make("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(code.textContent);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  } }, "Copy");
  return [make("div", { class: "row" }, copy), code];
}

const quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;

function curl(method, url, headers, body) {
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method])];
  for (const [name, value] of Object.entries(headers)) parts.push("-H", quoted(`${name}: ${value}`));
  if (body) parts.push("-d", quoted(body));
  return [...parts, quoted(new URL(url, location.href).href)].join(" ");
}

/** A form that makes a request: shows it as curl, and sends it where that may be tried. */
function form(path, method, operation) {
  const parameters = (operation.parameters || []).map(resolve);
  const json = operation.requestBody?.content?.["application/json"];
  const inputs = parameters.map((parameter) =>
    [parameter, make("input", { name: parameter.name, required: parameter.required, autocomplete: "off" })]);
  const begin = example(json);
  const body = json && make("textarea", { spellcheck: "false", "aria-label": "Body as JSON" }, begin === undefined ? "{}" : JSON.stringify(begin, null, 2));
  const shown = make("div", {});
  const answer = make("div", { "aria-live": "polite" });

  const request = () => {
    const query = new URLSearchParams();
    const headers = {};
    let url = path;
    for (const [parameter, input] of inputs) {
      if (parameter.in === "path") url = url.replace(`{${parameter.name}}`, encodeURIComponent(input.value || `{${parameter.name}}`));
      else if (!input.value) continue;
      else if (parameter.in === "query") query.set(parameter.name, input.value);
      else if (parameter.in === "header") headers[parameter.name] = input.value;
    }
    if (body?.value.trim()) headers["Content-Type"] = "application/json";
    return { url: url.replace(/%7B/g, "{").replace(/%7D/g, "}") + (query.size ? `?${query}` : ""), headers, body: body?.value.trim() || undefined };
  };
  const show = () => {
    const { url, headers, body } = request();
    shown.replaceChildren(...copyable(curl(method.toUpperCase(), url, headers, body)));
  };
  const send = async (event) => {
    event.preventDefault();
    const { url, headers, body } = request();
    answer.replaceChildren(make("p", { class: "quiet" }, "Waiting for the answer"));
    try {
      const response = await fetch(url.slice(1), { method: method.toUpperCase(), headers, body });
      const text = await response.text();
      let pretty = text;
      try { pretty = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
      answer.replaceChildren(
        make("p", { class: response.ok ? "" : "bad" }, `${response.status} ${response.statusText}`),
        make("pre", { tabindex: "0" }, `${[...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n")}\n\n${pretty}`));
    } catch (error) {
      answer.replaceChildren(make("p", { class: "bad" }, `No answer: ${error.message}`));
    }
  };
  const tried = method === "get" || method === "post";
  const made = make("form", { onsubmit: send, oninput: show },
    inputs.map(([parameter, input]) => make("label", {}, `${parameter.name} (${parameter.in})`, input)),
    body && make("label", { class: "wide" }, "Body", body),
    tried && make("div", { class: "row" }, make("button", { type: "submit" }, "Try it")));
  show();
  return [make("h3", {}, tried ? "Try it" : "As curl"), made, shown, answer];
}

function content(of) {
  return Object.entries(of || {}).map(([type, media]) => make("div", {},
    make("p", {}, make("code", {}, type), media.schema ? ` ${typeOf(media.schema)}` : ""),
    media.schema ? opened(media.schema) : null,
    example(media) === undefined ? null : make("pre", { tabindex: "0" }, JSON.stringify(example(media), null, 2))));
}

function responses(operation) {
  return make("dl", {}, Object.entries(operation.responses).map(([status, given]) => {
    const response = resolve(given);
    const headers = Object.keys(response.headers || {});
    return [
      make("dt", {}, status, make("small", {}, headers.length ? ` with ${headers.join(", ")}` : "")),
      make("dd", {}, prose(response.description), content(response.content)),
    ];
  }));
}

function inside(path, method, operation) {
  const parameters = (operation.parameters || []).map(resolve);
  return make("div", {},
    prose(operation.description),
    parameters.length ? [make("h3", {}, "Parameters"), make("dl", {}, parameters.map((parameter) => [
      make("dt", {}, parameter.name, make("small", {}, ` ${parameter.in}, ${typeOf(parameter.schema)}${parameter.required ? ", required" : ""} ${bounds(parameter.schema)}`)),
      make("dd", {}, prose(parameter.description)),
    ]))] : [],
    operation.requestBody ? [make("h3", {}, "Body"), ...content(operation.requestBody.content)] : [],
    make("h3", {}, "Answers"), responses(operation),
    form(path, method, operation));
}

function operationBox(path, method, operation) {
  const box = make("details", { class: "operation", id: operation.operationId },
    make("summary", {},
      make("span", { class: `method ${method}` }, method.toUpperCase()),
      make("code", {}, path), make("span", { class: "quiet" }, operation.summary)));
  box.words = `${method} ${path} ${operation.operationId} ${operation.summary} ${operation.description || ""}`.toLowerCase();
  // Filled when it is opened first: there are many.
  box.addEventListener("toggle", () => box.append(inside(path, method, operation)), { once: true });
  return box;
}

function show() {
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("about").append(...prose(api.info.description));
  const main = document.getElementById("operations");
  const contents = document.getElementById("contents");
  for (const tag of api.tags) {
    const boxes = [];
    for (const [path, item] of Object.entries(api.paths)) {
      for (const method of METHODS) {
        if (item[method]?.tags?.includes(tag.name)) boxes.push(operationBox(path, method, item[method]));
      }
    }
    const links = boxes.map((box) => make("li", {}, make("a", { href: `#${box.id}` }, box.querySelector(".quiet").textContent)));
    const part = make("section", {}, make("h2", {}, tag.name), prose(tag.description), boxes);
    const list = make("div", {}, make("h2", {}, tag.name), make("ul", {}, links));
    main.append(part);
    contents.append(list);
    sections.push({ part, list, boxes, links });
  }
  openTarget();
}

const sections = [];

function search() {
  const words = document.getElementById("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { part, list, boxes, links } of sections) {
    boxes.forEach((box, n) => {
      box.hidden = links[n].hidden = !words.every((word) => box.words.includes(word));
      found += !box.hidden;
    });
    part.hidden = list.hidden = boxes.every((box) => box.hidden);
  }
  document.getElementById("found").textContent = words.length ? `${found} found` : "";
}

/** The operation that the address names is open, so that a link to it shows it. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(target instanceof HTMLDetailsElement)) return;
  target.open = true;
  target.scrollIntoView();
  target.querySelector("summary").focus({ preventScroll: true });
}

document.getElementById("query").addEventListener("input", search);
addEventListener("hashchange", openTarget);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea")) return;
  event.preventDefault();
  document.getElementById("query").focus();
});
fetch("openapi.json").then((response) => response.json()).then((found) => {
  api = found;
  show();
}).catch((error) => {
  document.getElementById("about").append(make("p", { class: "bad" }, `The description could not be loaded: ${error.message}`));
});
