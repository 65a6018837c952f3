// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Blobs for tests of the page, written from its specification (assets/README.md) and not from the
// writer in user/export: if the two disagree, a test shows it.
"use strict";
const {deflateSync} = require("node:zlib");

class Writer {
  constructor() {
    this.bytes = [];
  }

  number(value) {
    for (; value > 127; value = Math.floor(value / 128))
      this.bytes.push(value % 128 | 128);
    this.bytes.push(value);
  }

  column(values) {
    for (const value of values)
      this.number(value);
  }

  raw(bytes) {
    for (const byte of bytes)
      this.bytes.push(byte);
  }
}

function intern(table, key) {
  if (!table.has(key))
    table.set(key, table.size);
  return table.get(key);
}

const zigzag = (n) => (n < 0 ? -2 * n - 1 : 2 * n);

// "name (file:line)" or "name". A function's def is taken to be line 1.
function parseFrame(text) {
  const match = /^(.*) \((.*):(\d+)\)$/s.exec(text);
  return match ? {name: match[1], file: match[2], line: Number(match[3])}
    : {name: text, file: "", line: 0};
}

const OWN = 0, MARKER = 6; // of model.js, ORIGINS

const moduleOf = (file) => file.replace(/^.*\//, "").replace(/\.py$/, "");

// A tree of stacks: children by function, each with its sites by (caller's site, line).
function newNode(func, depth) {
  return {func, depth, children: new Map(), sites: [], siteIds: new Map()};
}

function siteOf(node, callerSite, line) {
  const id = intern(node.siteIds, `${callerSite} ${line}`);
  node.sites[id] ??= {caller: callerSite, line, rows: []};
  return id;
}

function addSample(root, tables, sample) {
  let node = root, site = 0;
  for (const text of sample.stack ? sample.stack.split(";") : []) {
    const {name, file, line} = parseFrame(text);
    const key = JSON.stringify([name, file]);
    const func = intern(tables.functions, key) + 1;
    tables.functionRows[func] ??= {name, file, origin: file ? OWN : MARKER, line: file ? 1 : 0};
    if (!node.children.has(func))
      node.children.set(func, newNode(func, node.depth + 1));
    node = node.children.get(func);
    site = siteOf(node, site, line);
  }
  node.sites[site].rows.push(sample);
}

function inPreorder(root) {
  const list = [], stack = [root];
  while (stack.length) {
    const node = stack.pop();
    list.push(node);
    stack.push(...[...node.children.values()].reverse());
  }
  return list;
}

// What nodes are as large as: samples of the kind that is shown, the first one; "wall": of the first two.
function ticksOf(node, {runs, tags, shown}, side, kinds = shown === "wall" ? [0, 1] : [0]) {
  return node.sites.flatMap((s) => s.rows)
    .filter(({run = 0, thread = 0}) => runs[run]?.side === side && kinds.includes(tags?.[thread][2] ?? 0))
    .reduce((sum, {ticks = 1}) => sum + ticks, 0);
}

// Rows in order of site, thread, slot, opcode; equal ones summed.
function collectRows(list, blocks, opcodes = [""]) {
  const rows = [];
  let site = 0;
  for (const node of list) {
    for (const {rows: samples} of node.sites) {
      const sums = new Map();
      for (const {thread = 0, run = 0, block = 0, ticks = 1, opcode = ""} of samples) {
        const key = (thread * 2 ** 20 + run * blocks + block) * 256 + Math.max(opcodes.indexOf(opcode), 0);
        sums.set(key, (sums.get(key) ?? 0) + ticks);
      }
      for (const key of [...sums.keys()].sort((a, b) => a - b))
        rows.push({site, tag: Math.floor(key / 2 ** 28), slot: Math.floor(key / 256) % 2 ** 20,
          ticks: sums.get(key), opcode: key % 256});
      site++;
    }
  }
  return rows;
}

function writeRows(w, rows, opcodes) {
  const isSame = rows.map((r, i) => i > 0 && rows[i - 1].site === r.site && rows[i - 1].tag === r.tag);
  w.number(rows.length);
  w.column(rows.map((r, i) => r.site - (i ? rows[i - 1].site : 0)));
  w.column(rows.map((r) => r.tag));
  w.column(rows.map((r, i) => r.slot - (isSame[i] ? rows[i - 1].slot : 0)));
  w.column(rows.map((r) => r.ticks));
  if (opcodes)
    w.column(rows.map((r) => r.opcode));
}

function writeSources(w, sources, strings) {
  w.number(sources.length);
  w.column(sources.map((s) => intern(strings, s.file)));
  w.column(sources.map((s) => s.status ?? 0));
  const parts = sources.flatMap((s, owner) =>
    (s.parts ?? []).map((p) => ({owner, line: p.line, bytes: Buffer.from(p.text)})));
  w.number(parts.length);
  w.column(parts.map((p) => p.owner));
  w.column(parts.map((p) => p.line));
  w.column(parts.map((p) => p.bytes.length));
  parts.forEach((p) => w.raw(p.bytes));
}

// samples: [{stack: "main (app.py:3);f (app.py:9)", thread, run, block, ticks, opcode}], the last five
// 0, 0, 0, 1 and "" if left out; thread: one of meta.tags, if these are there; opcode: one of meta.opcodes, if that is there. meta: over the facts of a plain recording of one run with one thread.
// classes: null or {total, self, match}, an array each by node in preorder.
// sources: [{file, status, parts: [{line, text}]}].
function encode({samples = [], meta = {}, classes = null, sources = []}) {
  const facts = {
    schema: "pyebpf-page/4", kind: "profile", title: "fixture", blocks: 40, scale: 1,
    runs: [{side: 1, file: "fixture.pyebpf", interval_ns: 1e6, block_ns: 1e8}],
    processes: [{pid: 412, name: "app", command_line: "python3 app.py"}],
    threads: [{process: 0, tid: 412, name: "MainThread"}],
    ...meta,
  };
  const strings = new Map([["", 0]]);
  const tables = {functions: new Map(), functionRows: [{name: "", file: "", origin: MARKER, line: 0}]};
  const root = newNode(0, 0);
  siteOf(root, 0, 0);
  samples.forEach((sample) => addSample(root, tables, sample));
  const list = inPreorder(root);

  const functionRows = tables.functionRows;
  const names = functionRows.map((f) => intern(strings, f.name));
  const files = functionRows.map((f) => intern(strings, f.file));
  const tail = new Writer();
  tail.number(functionRows.length);
  tail.column(names);
  tail.column(files);
  tail.column(functionRows.map((f) => intern(strings, moduleOf(f.file))));
  tail.column(functionRows.map((f) => f.origin));
  tail.column(functionRows.map((f) => f.line));
  tail.column(functionRows.map(() => 0));
  tail.number(list.length);
  tail.column(list.map((n, i) => (i ? list[i - 1].depth + 1 - n.depth : 0)));
  tail.column(list.map((n) => n.func));
  for (const side of facts.runs.some((r) => r.side === 0) ? [1, 0] : [1])
    tail.column(list.map((n) => ticksOf(n, facts, side)));
  if (facts.shown === "wall")
    tail.column(list.map((n) => ticksOf(n, facts, 1, [1])));
  if (facts.idle)
    tail.column(list.map((n) => Math.max(0, ...n.sites.flatMap(({rows}) => rows.map(({idle = 0}) => idle)))));
  tail.number(classes ? 1 : 0);
  for (const column of classes ? [classes.total, classes.self, classes.match] : [])
    tail.column(column);
  const sites = list.flatMap((n) => n.sites.map((s) => ({...s, def: functionRows[n.func].line})));
  tail.column(list.map((n) => n.sites.length));
  tail.column(sites.map((s) => s.caller));
  tail.column(sites.map((s) => (s.line ? zigzag(s.line - s.def) + 1 : 0)));
  writeRows(tail, collectRows(list, facts.blocks, facts.opcodes), facts.opcodes);
  writeSources(tail, sources, strings);

  const head = new Writer();
  head.raw(Buffer.from("pyebpf-page/4\n"));
  const json = Buffer.from(JSON.stringify(facts));
  head.number(json.length);
  head.raw(json);
  const texts = [...strings.keys()].map((s) => Buffer.from(s));
  head.number(texts.length);
  head.column(texts.map((t) => t.length));
  texts.forEach((t) => head.raw(t));
  return Buffer.concat([Buffer.from(head.bytes), Buffer.from(tail.bytes)]);
}

// As it stands in the page's data element.
function pack(blob) {
  return deflateSync(blob).toString("base64");
}

module.exports = {encode, pack};
