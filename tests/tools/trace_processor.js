// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// usage: trace_processor.js FOLDER TRACE, queries as a JSON object of SQL on standard input.
// Perfetto's trace_processor, built for browsers (engines.py fetches it into FOLDER), told of a page's
// worker as far as it looks for one. Prints a JSON object of rows.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const {pathToFileURL} = require("node:url");

const MEMORY64_PROBE_BYTES = 23; // of the module by which it asks for 64-bit memory: there is none
const LOADING = {tokenizeOnly: false, cropTrackEvents: false, ingestFtraceInRawTable: false,
  analyzeTraceProtoContent: false, ftraceDropUntilAllCpusValid: false};

class Module extends WebAssembly.Module {
  constructor(bytes) {
    if (bytes.length === MEMORY64_PROBE_BYTES)
      throw new WebAssembly.CompileError("no 64-bit memory");
    super(bytes);
  }
}

// The worker's side: gives its port.
function startWorker(folder) {
  const wasm = fs.readFileSync(path.join(folder, "trace_processor.wasm"));
  const scope = {
    self: {location: {href: "file:///"}},
    location: {href: "file:///"},
    console: {...console, log() {}, warn() {}},
    WorkerGlobalScope: class {},
    WebAssembly: Object.create(WebAssembly, {Module: {value: Module}}),
    XMLHttpRequest: class {
      open() {}
      send() {
        this.response = new Uint8Array(wasm).buffer;
      }
    },
  };
  const port = {};

  new Function(...Object.keys(scope),
    fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8"))(...Object.values(scope));
  scope.self.onmessage({data: port});
  return port;
}

async function startEngine(folder) {
  const {EngineBase} = await import(pathToFileURL(path.join(folder, "engine.mjs")));
  const port = startWorker(folder);
  const engine = new class extends EngineBase {
    mode = "WASM";
    id = "engine";
    rpcSendRequestBytes(data) {
      port.onmessage({data});
    }
    [Symbol.dispose]() {}
  }();

  port.postMessage = (data) => engine.onRpcResponseBytes(data);
  await new Promise((done) => setImmediate(done)); // its runtime is there in a microtask
  await engine.resetTraceProcessor(LOADING);
  return engine;
}

async function ask(engine, sql) {
  const result = await engine.query(sql), columns = result.columns(), rows = [];

  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(columns.map((column) => {
      const value = row.get(column);

      return typeof value === "bigint" ? Number(value) : value;
    }));
  return rows;
}

async function main(folder, trace) {
  const queries = JSON.parse(fs.readFileSync(0, "utf8")), answers = {};
  const engine = await startEngine(folder);

  await engine.parse(new Uint8Array(fs.readFileSync(trace)));
  await engine.notifyEof();
  for (const [name, sql] of Object.entries(queries))
    answers[name] = await ask(engine, sql);
  fs.writeFileSync(1, JSON.stringify(answers));
  process.exit(0);
}

console.log = console.warn = console.error = () => {}; // what it says of itself is no answer
main(...process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
