// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The data of the page: decodes the blob (README.md, "The blob") and does all arithmetic on it.
// Pure: numbers in, numbers out; typed arrays throughout, no object per node.
//
// A *tree* is {count, parent, depth, end, func, line, key}: preorder, node 0 the root (parent -1),
// the subtree of i is i .. end[i] - 1. func: function index. line: null where nodes are functions.
// key: what siblings are told apart by. Weights are ticks, in arrays with one item a node.
(function (ns) {
  "use strict";

  const MAGIC = "pyebpf-page/4\n";
  const SIDE_BASE = 0;
  const SIDE_CURRENT = 1;
  const TIMELINE_ROWS = 8; // members of a dimension that are told apart in the timeline
  const WALL = "wall", CPU = "cpu", OFF_CPU = "off-cpu"; // as user/profile/kinds.h has them

  // The numbers are those of the blob, which has no parts: see group.js.
  const ORIGINS = ["own", "import", "library", "stdlib", "native", "kernel", "marker", "task", "part"];
  const CLASSES = ["unchanged", "undetermined", "rare", "slower1", "slower2", "slower3", "slower4",
    "faster1", "faster2", "faster3", "faster4", "new", "removed"];
  const MATCHES = ["none", "exact", "renamed", "inserted", "deleted"];
  const SOURCE_STATUS = ["embedded", "changed", "missing", "unknown", "too large"];

  // What is wrong with a blob, in a sentence for the person who opened the page.
  class PageError extends Error {}

  function broken(what) {
    return new PageError(`The data in this page is damaged (${what}). The file was probably cut ` +
      "short or changed on its way: copy it again, or make it again from the recording.");
  }

  // --- decoding ------------------------------------------------------------------------------

  // base64 text, line breaks allowed, to bytes.
  function decodeBase64(text) {
    try {
      return Uint8Array.fromBase64?.(text) ?? bytesOf(atob(text)); // not all of the floor have it
    } catch {
      throw broken("it is not base64");
    }
  }

  function bytesOf(binary) {
    const bytes = new Uint8Array(binary.length);

    for (let i = 0; i < bytes.length; i++)
      bytes[i] = binary.charCodeAt(i);
    return bytes;
  }

  function arrayFor(count, limit) {
    return new (limit <= 256 ? Uint8Array : limit <= 65536 ? Uint16Array : Uint32Array)(count);
  }

  // Numbers are unsigned LEB128. Every count is checked against the bytes left: a number takes one.
  class Reader {
    constructor(bytes, at) {
      this.bytes = bytes;
      this.length = bytes.length;
      this.at = at;
    }

    number() {
      let value = 0, scale = 1;

      for (;;) {
        if (this.at >= this.length)
          throw broken("it ends inside a number");
        const byte = this.bytes[this.at++];
        value += (byte & 127) * scale;
        if (byte < 128)
          break;
        scale *= 128;
        if (scale > 2 ** 56)
          throw broken("a number is too large");
      }
      return value;
    }

    count(what) {
      const n = this.number();

      if (n > this.length - this.at)
        throw broken(`it has not so many ${what}`);
      return n;
    }

    // count numbers below limit, in an array no wider than they need.
    column(count, limit, what, out = arrayFor(count, limit)) {
      const {bytes, length} = this;
      let at = this.at;

      if (count > length - at)
        throw broken(`it has not so many ${what}`);
      for (let i = 0; i < count; i++) {
        let value = bytes[at++];
        if (value > 127 && bytes[at] < 128) {
          value += 128 * bytes[at++] - 128; // two bytes: nearly all that are not one
        } else if (value > 127) {
          this.at = at - 1;
          value = this.number();
          at = this.at;
        }
        if (value >= limit)
          throw broken(`${what}: ${value} is out of range`);
        out[i] = value;
      }
      if (at > length)
        throw broken("it ends inside a column");
      this.at = at;
      return out;
    }

    // A copy, so that what is kept of the bytes does not keep them all.
    slice(length, what) {
      if (length > this.length - this.at)
        throw broken(`${what} end early`);
      this.at += length;
      return this.bytes.slice(this.at - length, this.at);
    }
  }

  function decodeMeta(reader) {
    const text = new TextDecoder().decode(reader.slice(reader.number(), "facts"));
    let meta;

    try {
      meta = JSON.parse(text);
    } catch {
      throw broken("its facts are no JSON");
    }
    return meta;
  }

  // Decoded when asked for: most names are never on screen.
  function decodeStrings(reader) {
    const count = reader.count("strings");
    const lengths = reader.column(count, 2 ** 32, "lengths of strings");
    const start = new Float64Array(count + 1);
    for (let i = 0; i < count; i++)
      start[i + 1] = start[i] + lengths[i];
    const bytes = reader.slice(start[count], "strings");
    const texts = new Array(count);
    const decoder = new TextDecoder();

    return {
      count,
      get(id) {
        return texts[id] ??= decoder.decode(bytes.subarray(start[id], start[id + 1]));
      },
    };
  }

  function decodeFunctions(reader, strings) {
    const count = reader.count("functions");

    if (!count)
      throw broken("it has no root");
    return {
      count,
      name: reader.column(count, strings, "names"),
      file: reader.column(count, strings, "files"),
      module: reader.column(count, strings, "modules"),
      origin: reader.column(count, ORIGINS.length - 1, "origins"),
      line: reader.column(count, 2 ** 32, "lines"),
      renamedFrom: reader.column(count, count, "former names"), // 0: has none
    };
  }

  // parent and end from how many levels each node is above a child of the one before it; end takes
  // their place: a node's is known after its number was read.
  function rebuildTree(end) {
    const count = end.length;
    const parent = new Int32Array(count), depth = new Uint32Array(count);
    let last = 0; // the node before

    parent[0] = -1;
    for (let i = 1; i < count; i++) {
      let p = last;
      for (let k = end[i]; k > 0; k--) {
        end[p] = i;
        p = parent[p];
        if (p < 0)
          throw broken("a node is above the root");
      }
      parent[i] = p;
      depth[i] = depth[p] + 1;
      last = i;
    }
    for (let p = last; p >= 0; p = parent[p])
      end[p] = count;
    return {count, parent, depth, end};
  }

  function decodeNodes(reader, functions) {
    const count = reader.count("nodes");

    if (!count)
      throw broken("it has no root");
    const tree = rebuildTree(reader.column(count, count, "levels", new Uint32Array(count)));
    const func = reader.column(count, functions, "functions of nodes");
    return {...tree, func, line: null, key: func};
  }

  // In an array no wider than the ticks of the runs ask for. Beyond 2^53 ns, a hundred days, sums are
  // not to the ns.
  function decodeTicks(reader, count, meta) {
    const all = meta.kinds ? 2 ** 63 : meta.runs.reduce((sum, run) => sum + run.ticks, 1);

    return reader.column(count, all || 2 ** 53, "weights",
      all < 2 ** 32 ? arrayFor(count, all) : new Float64Array(count));
  }

  function decodeSelf(reader, count, meta) {
    const ticks = () => decodeTicks(reader, count, meta);
    const current = ticks(), base = isComparing({meta}, {}) ? ticks() : null;

    return {current, base, waits: meta.shown === WALL ? ticks() : !base && meta.kinds?.every(isWaiting) ? current : null};
  }

  function decodeSites(reader, nodes, functions) {
    const first = new Uint32Array(nodes.count + 1); // of each node how many, then the sum before it
    let total = 0;

    reader.column(nodes.count, 2 ** 32, "sites of nodes", first);
    for (let i = 0; i < nodes.count; i++) {
      const own = first[i];
      if (!own)
        throw broken("a node has no site");
      first[i] = total;
      total += own;
    }
    first[nodes.count] = total;
    const parent = new Int32Array(reader.column(total, 2 ** 31, "callers of sites").buffer);
    const line = reader.column(total, 2 ** 32, "lines of sites");
    const node = new Uint32Array(total);
    for (let i = 0; i < nodes.count; i++) {
      const p = nodes.parent[i], defined = functions.line[nodes.func[i]];
      const callers = p < 0 ? 0 : first[p + 1] - first[p];
      for (let s = first[i]; s < first[i + 1]; s++) {
        if (p >= 0 && parent[s] >= callers)
          throw broken("a site has no caller");
        parent[s] = p < 0 ? -1 : parent[s] + first[p];
        node[s] = i;
        if (line[s]) // 0: unknown; else zigzag of the distance from the def, plus 1
          line[s] = defined + ((line[s] - 1) >>> 1 ^ -((line[s] - 1) & 1));
      }
    }
    if (first[1] !== 1)
      throw broken("the root has several sites");
    return {count: total, first, node, parent, line};
  }

  function decodeRows(reader, sites, tags, slots, meta) {
    const count = reader.count("rows");
    const site = reader.column(count, sites, "sites of rows");
    const tag = reader.column(count, tags, "threads of rows");
    const slot = reader.column(count, slots, "blocks of rows");
    const ticks = decodeTicks(reader, count, meta);
    const opcode = meta.opcodes ? reader.column(count, meta.opcodes.length, "opcodes") : null;

    for (let i = 1; i < count; i++) {
      const isSame = site[i] === 0 && tag[i] === tag[i - 1];
      const at = site[i] + site[i - 1], when = isSame ? slot[i] + slot[i - 1] : slot[i];
      if (at >= sites || when >= slots)
        throw broken("a row is out of range");
      site[i] = at;
      slot[i] = when;
    }
    return {count, site, tag, slot, ticks, opcode};
  }

  function decodeClasses(reader, count) {
    if (reader.number() === 0)
      return null;
    return {
      total: reader.column(count, CLASSES.length, "classes"),
      self: reader.column(count, CLASSES.length, "classes"),
      match: reader.column(count, MATCHES.length, "matches"),
    };
  }

  // Map of file string id -> {status, parts: [{line, bytes}]}: see sourceLines().
  function decodeSources(reader, strings) {
    const fileCount = reader.count("source files");
    const file = reader.column(fileCount, strings, "source files");
    const status = reader.column(fileCount, SOURCE_STATUS.length, "states of source files");
    const partCount = reader.count("pieces of source");
    const owner = reader.column(partCount, fileCount, "pieces of source");
    const line = reader.column(partCount, 2 ** 32, "lines of source");
    const length = reader.column(partCount, 2 ** 32, "lengths of source");
    const sources = new Map();

    for (let i = 0; i < fileCount; i++)
      sources.set(file[i], {status: SOURCE_STATUS[status[i]], parts: []});
    for (let i = 0; i < partCount; i++) {
      const bytes = reader.slice(length[i], "source lines");
      sources.get(file[owner[i]]).parts.push({line: line[i], bytes});
    }
    return sources;
  }

  function checkMeta(meta) {
    const lists = ["runs", "threads", "processes"];

    if (!meta || lists.some((name) => !Array.isArray(meta[name])) || !(meta.blocks >= 1))
      throw broken("its facts are incomplete");
    if (meta.threads.some((t) => !meta.processes[t.process]))
      throw broken("a thread has no process");
    if (meta.labels?.some(([without], set) => set && !(without < set)))
      throw broken("a label is before its set");
    meta.tags = meta.tags?.map(([thread, labels, kind]) => ({...meta.threads[thread], labels, kind})) ??
      meta.threads;
    if (meta.tags.some((tag) => !meta.processes[tag.process]))
      throw broken("a tag has no thread");
  }

  // The inflated blob, bytes, to a report:
  //   meta       the facts: README.md, "Facts"
  //   strings    {count, get(id)}
  //   functions  {count, name, file, module, origin, line, renamedFrom}: by function index; 0 is the root
  //   nodes      the tree by function
  //   self       {current, base, waits}: own ticks of each node; base null where no run is of that side;
  //              waits: what of current's is waiting, null where nothing is
  //   sites      {count, first, node, parent, line}: the same by line; those of node i are
  //              first[i] .. first[i + 1] - 1, a caller's site comes before its callees'
  //   rows       {count, site, tag, slot, ticks, opcode}: tag: index into meta.tags; slot: run *
  //              blocks + block; opcode: index into meta.opcodes, null where none were recorded
  //   idle       by node 1 + index of meta.idle where waiting says nothing, else 0; undefined: nowhere
  //   classes    null, or {total, self, match}: by node, indices of CLASSES and MATCHES
  //   sources    Map of file (string id) -> {status, parts}
  // sites, rows and sources are decoded when first asked for: the graph is drawn without. Throws
  // PageError, then too.
  function decode(bytes) {
    const head = new TextDecoder("latin1").decode(bytes.subarray(0, MAGIC.length));

    if (head !== MAGIC) {
      throw /^pyebpf-page\//.test(head)
        ? new PageError("The data in this page is of another version than its scripts.")
        : broken("wrong signature");
    }
    let reader = new Reader(bytes, MAGIC.length), rest = null;
    const meta = decodeMeta(reader);
    checkMeta(meta);
    const strings = decodeStrings(reader);
    const functions = decodeFunctions(reader, strings.count);
    const nodes = decodeNodes(reader, functions.count);
    const self = decodeSelf(reader, nodes.count, meta);
    const idle = meta.idle && reader.column(nodes.count, meta.idle.length + 1, "rules");
    const classes = decodeClasses(reader, nodes.count);
    const later = () => {
      rest ??= decodeRest(reader, meta, strings, functions, nodes);
      reader = null; // the bytes are not needed any more
      return rest;
    };

    return {meta, strings, functions, nodes, self, idle, classes,
      get sites() { return later().sites; },
      get rows() { return later().rows; },
      get sources() { return later().sources; }};
  }

  function decodeRest(reader, meta, strings, functions, nodes) {
    const sites = decodeSites(reader, nodes, functions);
    const rows = decodeRows(reader, sites.count, Math.max(meta.tags.length, 1),
      Math.max(meta.runs.length, 1) * meta.blocks, meta);
    const sources = decodeSources(reader, strings.count);

    if (reader.at !== reader.length)
      throw broken("something follows its end");
    return {sites, rows, sources};
  }

  // Some browsers have DecompressionStream, but not for this format.
  function openStream() {
    try {
      return new DecompressionStream("deflate");
    } catch {
      throw new PageError("This browser is too old to open the page: it cannot unpack its data " +
        "(DecompressionStream). Chrome 103, Edge 103, Firefox 113 and Safari 16.4 " +
        "or newer can.");
    }
  }

  // Text of the page's data element to bytes. Rejects with PageError.
  async function inflate(text) {
    const chunks = [];
    let length = 0;
    const stream = openStream();
    const writer = stream.writable.getWriter();
    const written = writer.write(decodeBase64(text)).then(() => writer.close());
    const reader = stream.readable.getReader();

    try {
      for (;;) {
        const {done, value} = await reader.read();
        if (done)
          break;
        chunks.push(value);
        length += value.length;
      }
      await written;
    } catch {
      written.catch(() => {}); // the reader has told already
      throw broken("it cannot be unpacked");
    }
    const bytes = new Uint8Array(length);
    length = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, length);
      length += chunk.length;
    }
    return bytes;
  }

  // --- names ---------------------------------------------------------------------------------

  function functionName(report, func) {
    return report.strings.get(report.functions.name[func]);
  }

  function functionFile(report, func) {
    return report.strings.get(report.functions.file[func]);
  }

  const PART = ORIGINS.indexOf("part"), isPart = ({functions}, func) => functions.origin[func] === PART;

  // --- kinds ---------------------------------------------------------------------------------

  const isWaiting = ({name}) => name === OFF_CPU;

  // What a word says of the page's kinds, as user/profile/kinds.c has it: {name, unit, period, factors};
  // factors: by kind what a value of 1 counts, 0: nothing; period: what is 1 then. Without a word, what
  // is shown first. Undefined: there is none of that name.
  function kindOf({kinds = [{name: CPU}], shown = kinds[0].name}, word = shown) {
    const isOf = ({name}) => name === word || word === WALL && (name === CPU || name === OFF_CPU);
    const own = kinds.filter(isOf), isSum = own.length > 1; // in ns

    return own.some((kind) => kind.name === word || isWaiting(kind)) ? {name: word, unit: own[0].unit,
      period: isSum ? 1 : own[0].period,
      factors: kinds.map((kind) => isOf(kind) ? isSum ? kind.period ?? 1 : 1 : 0)} : undefined;
  }

  // Of all that one can ask for, the first one shown first.
  function kindWords({kinds = [{name: CPU}], shown = kinds[0].name}) {
    const isSum = kindOf({kinds}, WALL)?.factors.filter(Boolean).length > 1;

    return [...new Set([shown, isSum && WALL, ...kinds.map(({name}) => name)])].filter(Boolean);
  }

  // --- filters -------------------------------------------------------------------------------

  // What can be filtered by: {process, thread, pod}, each a list of {key, label, ticks}, the
  // heaviest first. A name stands for all that have it; where several do, each is listed by number
  // as well: "worker", "worker (413)", but for numbers that one side of a comparison alone has: by
  // these nothing can be compared. state.process = [key...] etc. picks; none: all.
  function filterChoices(report) {
    const {meta, rows} = report;
    const ticks = new Float64Array(meta.tags.length), sides = new Uint8Array(meta.tags.length);
    const sideOf = slotSides(report, {}), isTwo = isComparing(report, {});
    const choices = {}, {factors} = kindOf(meta);

    for (let i = 0; i < rows.count; i++) {
      ticks[rows.tag[i]] += factors[meta.tags[rows.tag[i]]?.kind ?? 0] * rows.ticks[i]; // not of other units
      sides[rows.tag[i]] |= sideOf[rows.slot[i]];
    }
    for (const dimension of Object.keys(DIMENSIONS)) {
      const sums = new Map(), seen = new Map();
      meta.tags.forEach((thread, tag) => {
        for (const key of tagKeys(meta, dimension, thread)) {
          sums.set(key, (sums.get(key) ?? 0) + ticks[tag]);
          seen.set(key, seen.get(key) | sides[tag]);
        }
      });
      choices[dimension] = listChoices(sums, (key) => !isTwo || seen.get(key) === 3);
    }
    return choices;
  }

  const withoutNumber = (key) => key.replace(/ \(\d+\)$/, "");

  // "NAME (NUMBER)" says no more than "NAME" where it is the only one of that name.
  function listChoices(sums, isComparable) {
    const members = new Map();

    for (const key of sums.keys())
      if (withoutNumber(key) !== key)
        members.set(withoutNumber(key), (members.get(withoutNumber(key)) ?? 0) + 1);
    return [...sums]
      .filter(([key]) => withoutNumber(key) === key ||
        members.get(withoutNumber(key)) > 1 && isComparable(key))
      .map(([key, ticks]) => ({key, label: key || "(no name)", ticks}))
      .sort((a, b) => b.ticks - a.ticks || (a.key < b.key ? -1 : 1));
  }

  const DIMENSIONS = {
    process: (meta, thread) => {
      const process = meta.processes[thread.process];
      return process.pid === undefined ? [process.name]
        : [process.name, `${process.name} (${process.pid})`];
    },
    thread: (meta, thread) => [thread.name, `${thread.name} (${thread.tid})`],
    pod: (meta, thread) => [meta.processes[thread.process].pod ?? "(none)"],
  };

  function tagKeys(meta, dimension, thread) {
    return DIMENSIONS[dimension](meta, thread);
  }

  // For each tag that selection and all filters let through what a value of 1 counts, else 0.
  function passingTags({meta}, state, selected) {
    const {factors} = kindOf(meta);
    const passes = Float64Array.from(selected ??
      (meta.tags.length ? meta.tags.map(({kind = 0}) => factors[kind]) : [1]));

    for (const dimension of Object.keys(DIMENSIONS)) {
      const wanted = state[dimension];
      if (!wanted?.length)
        continue;
      meta.tags.forEach((thread, tag) => {
        if (!tagKeys(meta, dimension, thread).some((key) => wanted.includes(key)))
          passes[tag] = 0;
      });
    }
    return passes;
  }

  // Of what the state says; select.js is not there in tests of other things.
  const selectionOf = (report, state) => state.select ? ns.selectionOf(report, state) : {};

  // Of each row what a value of 1 counts, 0 where filters and selection do not let it through, whatever
  // its time.
  function passingRows(report, state) {
    const {site, tag} = report.rows, {sites, tags, isBusy} = selectionOf(report, state);
    const passes = passingTags(report, state, tags), idle = isBusy && idleRules(report);

    return sites ? (row) => idle?.(row) ? 0 : passes[tag[row]] * sites[site[row]] : (row) => passes[tag[row]];
  }

  // Of each row 1 + index of the rule by which it is a wait for work; 0: it is none.
  function idleRules({meta, idle, sites, rows: {site, tag}}) {
    const waits = meta.tags.map(({kind = 0}) => meta.kinds && isWaiting(meta.kinds[kind]));

    return idle && ((row) => waits[tag[row]] ? idle[sites.node[site[row]]] : 0);
  }

  // What is left out as idle: [what, ticks]..., the longest first.
  function idleSums(report, state) {
    const {meta, rows} = report, selection = selectionOf(report, state), rules = selection.isBusy && idleRules(report);
    const passes = passingTags(report, state, selection.tags), sides = slotSides(report, state), sums = {};

    for (let i = 0; rules && i < rows.count; i++) {
      const what = meta.idle[rules(i) - 1];
      if (what && sides[rows.slot[i]] && selection.sites[rows.site[i]])
        sums[what] = (sums[what] ?? 0) + passes[rows.tag[i]] * rows.ticks[i];
    }
    return Object.entries(sums).filter(([, ticks]) => ticks).sort((a, b) => b[1] - a[1]);
  }

  function isInRange(block, range) {
    return !range || (block >= range[0] && block < range[1]);
  }

  // For each slot the sides its ticks count for, a bit each (1 << SIDE): with a baseline range
  // blocks of the current side are the base, whatever other runs there are.
  function slotSides(report, state) {
    const {meta} = report, {slots} = selectionOf(report, state);
    const sides = new Uint8Array(Math.max(meta.runs.length, 1) * meta.blocks);

    meta.runs.forEach((run, r) => {
      for (let block = 0; block < meta.blocks; block++) {
        const at = r * meta.blocks + block;
        if (isInRange(block, state.range) && (run.side === SIDE_CURRENT || !state.baseRange))
          sides[at] |= 1 << run.side;
        if (state.baseRange && run.side === SIDE_CURRENT && isInRange(block, state.baseRange))
          sides[at] |= 1 << SIDE_BASE;
        sides[at] *= slots?.[at] ?? 1;
      }
    });
    return sides;
  }

  // True if the page compares: a differential report, or a range against a baseline range.
  function isComparing({meta}, state) {
    return Boolean(state.baseRange) || meta.runs.some((run) => run.side === SIDE_BASE);
  }

  // True if what is shown is all there is, so that what was computed when the page was written
  // (report.classes) holds.
  function isWhole(report, state) {
    const isFiltered = Object.keys(DIMENSIONS).some((d) => state[d]?.length);
    return !isFiltered && !state.select && !state.range && !state.baseRange;
  }

  // --- trees ---------------------------------------------------------------------------------

  // Orders nodes given in any order with parents before children into a preorder tree. Siblings
  // keep their order. Returns {tree, place}: place[i] is where the tree has node i.
  function preorderTree({count, parent, func, line, key}) {
    const size = new Uint32Array(count).fill(1);
    const place = new Uint32Array(count), next = new Uint32Array(count);
    const tree = {
      count,
      parent: new Int32Array(count),
      depth: new Uint32Array(count),
      end: new Uint32Array(count),
      func: new Uint32Array(count),
      line: line ? new Uint32Array(count) : null,
      key: new Uint32Array(count),
    };

    for (let i = count - 1; i > 0; i--)
      size[parent[i]] += size[i];
    for (let i = 0; i < count; i++) {
      const p = parent[i];
      let at = 0;
      if (p >= 0) {
        at = next[p];
        next[p] += size[i];
      }
      place[i] = at;
      next[i] = at + 1;
      tree.parent[at] = p < 0 ? -1 : place[p];
      tree.depth[at] = p < 0 ? 0 : tree.depth[place[p]] + 1;
      tree.end[at] = at + size[i];
      tree.func[at] = func[i];
      tree.key[at] = key[i];
      if (line)
        tree.line[at] = line[i];
    }
    return {tree, place};
  }

  // Grows a tree, by looking children up by (parent, key) where child() is asked. Rows of nodes are
  // in order of creation.
  class TreeBuilder {
    constructor(hasLines, capacity = 1024) {
      this.count = 0;
      this.parent = new Int32Array(capacity);
      this.func = new Uint32Array(capacity);
      this.key = new Uint32Array(capacity);
      this.line = hasLines ? new Uint32Array(capacity) : null;
      this.slots = null; // node + 1, open addressing; a power of two
    }

    grow() {
      const longer = (old) => {
        const grown = new old.constructor(old.length * 2);
        grown.set(old);
        return grown;
      };
      this.parent = longer(this.parent);
      this.func = longer(this.func);
      this.key = longer(this.key);
      this.line &&= longer(this.line);
      if (this.slots)
        this.index();
    }

    index() {
      this.slots = new Uint32Array(this.parent.length * 2);
      for (let i = 1; i < this.count; i++)
        this.slots[this.find(this.parent[i], this.key[i])] = i + 1;
    }

    // The slot that holds the child, or the free one where it would go.
    find(parent, key) {
      const mask = this.slots.length - 1;
      let h = Math.imul(parent ^ Math.imul(key, 0x9e3779b1), 0x85ebca6b);

      for (h ^= h >>> 15; ; h++) {
        const at = h & mask, node = this.slots[at] - 1;
        if (node < 0 || (this.parent[node] === parent && this.key[node] === key))
          return at;
      }
    }

    add(parent, func, key, line) {
      if (this.count === this.parent.length)
        this.grow();
      const node = this.count++;
      this.parent[node] = parent;
      this.func[node] = func;
      this.key[node] = key;
      if (this.line)
        this.line[node] = line;
      return node;
    }

    child(parent, func, key, line) {
      if (!this.slots)
        this.index();
      const at = this.find(parent, key);
      if (this.slots[at])
        return this.slots[at] - 1;
      if (this.count < this.parent.length) {
        this.slots[at] = this.count + 1;
        return this.add(parent, func, key, line);
      }
      const node = this.add(parent, func, key, line);
      this.slots[this.find(parent, key)] = node + 1;
      return node;
    }
  }

  // The tree by line. Made at first use, kept with the report: {tree, map}, map by site.
  function lineTree(report) {
    return report.lineTree ??= makeLineTree(report);
  }

  function makeLineTree({nodes, sites}) {
    const {count, parent, line} = sites;
    const func = new Uint32Array(count), key = new Uint32Array(count);
    const ids = new Map();

    for (let s = 0; s < count; s++) {
      func[s] = nodes.func[sites.node[s]];
      const frame = func[s] * 2 ** 32 + line[s];
      let id = ids.get(frame);
      if (id === undefined)
        ids.set(frame, id = ids.size);
      key[s] = id;
    }
    const {tree, place} = preorderTree({count, parent, func, line, key});
    return {tree, map: place};
  }

  // A shape is {tree, map}: what is drawn, and for each node of the source tree where its self
  // weight belongs, -1: nowhere. So totals, statistics and elided paths are worked out alike for
  // all shapes, and children + self = total in each.

  function identity(tree) {
    return {tree, map: null};
  }

  function finish(builder, map) {
    const {tree, place} = preorderTree(builder);
    for (let i = 0; i < map.length; i++)
      if (map[i] >= 0)
        map[i] = place[map[i]];
    return {tree, map};
  }

  // Leaves out nodes whose function is hidden: their callees become their callers', as their own time
  // does. groups: by function the one that stands for it; those of one that call each other are one
  // node. library: what such functions call of each other is the first one's.
  function shownFunctions(tree, {hidden, groups, library}) {
    const b = new TreeBuilder(tree.line && !groups), map = new Int32Array(tree.count);
    const isInLibrary = new Uint8Array(tree.count); // of what is shown last on the way to a node

    b.add(-1, tree.func[0], tree.key[0], 0);
    for (let i = 1; i < tree.count; i++) {
      const p = tree.parent[i], own = tree.func[i], func = groups ? groups[own] : own, at = map[p];
      const isAbsorbed = isInLibrary[p] && library?.[own] || groups && at && b.func[at] === func;
      map[i] = at;
      isInLibrary[i] = isInLibrary[p];
      if (hidden?.[own] || isAbsorbed)
        continue;
      map[i] = b.child(at, func, groups ? func : tree.key[i], b.line ? tree.line[i] : 0);
      isInLibrary[i] = library?.[own];
    }
    return finish(b, map);
  }

  // For each node the outermost node of function func it is in (itself included), -1: none.
  function outermost(tree, func) {
    const top = new Int32Array(tree.count).fill(-1);

    for (let i = 1; i < tree.count; i++) {
      const above = top[tree.parent[i]];
      top[i] = above >= 0 ? above : tree.func[i] === func ? i : -1;
    }
    return top;
  }

  // What func calls: the subtrees of its outermost nodes as one. Below the root, which is all
  // samples with func in them, stands func.
  function callees(tree, func) {
    const top = outermost(tree, func);
    const b = new TreeBuilder(Boolean(tree.line));
    const map = new Int32Array(tree.count).fill(-1);

    b.add(-1, tree.func[0], tree.key[0], 0);
    for (let i = 1; i < tree.count; i++) {
      if (top[i] < 0)
        continue;
      const p = top[i] === i ? 0 : map[tree.parent[i]];
      map[i] = b.child(p, tree.func[i], tree.key[i], tree.line ? tree.line[i] : 0);
    }
    return finish(b, map);
  }

  const INVERTED_PARTS = 32768; // what is lighter than 1/32768 of the whole is below a pixel
  const INVERTED_STEPS_MAX = 4e7; // items times levels: about half a second

  // Items of a level of reversed paths: where each began, how far it has come, the key there (it is
  // looked up while its memory is near), its weight; those of group g, the ones that came to
  // nodes[g] of the new tree, are start[g] .. start[g + 1] - 1.
  function emptyLevel(count) {
    return {leaf: new Uint32Array(count), at: new Uint32Array(count), name: new Uint32Array(count),
      weight: new Float64Array(count), nodes: [], start: [0]};
  }

  // Each node's own weight along its reversed path: below the root stand the functions that have
  // some, below each its callers, the heaviest first. Callers that are too light get no box: their
  // ticks stay the own of what they call. Returns {tree, map}, map only for nodes with weight: how
  // far up the path of each was followed.
  function inverted(tree, weight) {
    const {count, key, parent, func, line} = tree, keys = largest(key) + 1;
    const b = new TreeBuilder(Boolean(line), 65536), map = new Int32Array(count).fill(-1);
    const {sums, sizes, ends: first, made, offset} = newChildren(keys);
    let whole = weight[0], filled = 0;

    b.add(-1, func[0], key[0], 0);
    if (weight[0] > 0)
      map[0] = 0;
    for (let i = 1; i < count; i++) {
      if (!(weight[i] > 0))
        continue;
      const k = key[i];
      whole += weight[i];
      sums[k] += weight[i];
      if (!sizes[k]++)
        first[k] = i;
    }
    const level = emptyLevel(count), least = whole / INVERTED_PARTS;
    for (const k of [...sizes.keys()].filter((one) => sizes[one])
      .sort((x, y) => sums[y] - sums[x] || first[x] - first[y])) {
      const i = first[k];
      made[k] = b.add(0, func[i], key[i], line ? line[i] : 0);
      offset[k] = -1;
      if (sums[k] < least) // on this level all have a box, so that they sum up to the root
        continue;
      offset[k] = filled;
      filled += sizes[k];
      level.nodes.push(made[k]);
      level.start.push(filled);
    }
    const {leaf, at, name, weight: own} = level;
    for (let i = 1; i < count; i++) {
      if (!(weight[i] > 0))
        continue;
      const k = key[i], place = offset[k];
      if (place < 0) {
        map[i] = made[k];
        continue;
      }
      offset[k]++;
      leaf[place] = i;
      at[place] = parent[i];
      name[place] = key[parent[i]];
      own[place] = weight[i];
    }
    addCallers(b, tree, level, filled, map, least, keys);
    return finish(b, map);
  }

  // Of each child of a group: the sum and number of its items, one of them, its node, where its items
  // go on the next level.
  function newChildren(keys) {
    return {sums: new Float64Array(keys), sizes: new Uint32Array(keys), ends: new Uint32Array(keys),
      made: new Int32Array(keys), offset: new Int32Array(keys)};
  }

  // The levels above the first one, `level`, of count items.
  function addCallers(b, {key, parent, func, line}, level, count, map, least, keys) {
    // of the group at hand: its children by key; of each item its child, + 1
    const stamp = new Int32Array(keys).fill(-1), local = new Uint32Array(keys);
    const child = new Uint32Array(count), {sums, sizes, ends, made, offset} = newChildren(keys);
    let next = emptyLevel(count), steps = count;

    while (level.nodes.length) {
      const {leaf, at, name, weight: own, nodes, start} = level, groups = nodes.length;
      const {leaf: nextLeaf, at: nextAt, name: nextName, weight: nextOwn} = next;
      let filled = 0;
      steps += start[groups];
      if (steps >= INVERTED_STEPS_MAX)
        least = Infinity;
      for (let g = 0; g < groups; g++) {
        const node = nodes[g], from = start[g], to = start[g + 1];
        let children = 0;
        for (let k = from; k < to; k++) {
          const i = at[k], here = name[k];
          if (i === 0) { // the root has been reached: the path ends
            child[k] = 0;
            continue;
          }
          if (stamp[here] !== node) {
            stamp[here] = node;
            sums[children] = sizes[children] = 0;
            ends[children] = i; // an item of it
            local[here] = children++;
          }
          const c = local[here];
          child[k] = c + 1;
          sums[c] += own[k];
          sizes[c]++;
        }
        // heavy children become groups; items of the others have come to their end
        made.fill(node, 0, children);
        offset.fill(-1, 0, children);
        for (const c of heaviestFirst(sums, children, least)) {
          const i = ends[c];
          made[c] = b.add(node, func[i], key[i], line ? line[i] : 0);
          offset[c] = filled;
          filled += sizes[c];
          next.nodes.push(made[c]);
          next.start.push(filled);
        }
        for (let k = from; k < to; k++) {
          const c = child[k] - 1;
          if (c < 0 || offset[c] < 0) {
            map[leaf[k]] = c < 0 ? node : made[c];
            continue;
          }
          const place = offset[c]++, above = parent[at[k]];
          nextLeaf[place] = leaf[k];
          nextAt[place] = above;
          nextName[place] = key[above];
          nextOwn[place] = own[k];
        }
      }
      [level, next] = [next, Object.assign(level, {nodes: [], start: [0]})];
    }
  }

  // Those of 0 .. count - 1 that sum up to `least` or more.
  function heaviestFirst(sums, count, least) {
    const order = [];
    for (let c = 0; c < count; c++)
      if (sums[c] >= least)
        order.push(c);
    return order.sort((x, y) => sums[y] - sums[x]);
  }

  function largest(items) {
    let most = 0;
    for (let i = 0; i < items.length; i++)
      if (items[i] > most)
        most = items[i];
    return most;
  }

  // Who calls func: its outermost nodes' totals along their reversed paths.
  function callers(tree, func, self) {
    const top = outermost(tree, func), weight = new Float64Array(tree.count);

    for (let i = 1; i < tree.count; i++)
      if (top[i] >= 0)
        weight[top[i]] += self[i];
    const shape = inverted(tree, weight);
    for (let i = 1; i < tree.count; i++)
      if (top[i] >= 0)
        shape.map[i] = shape.map[top[i]];
    return shape;
  }

  // map of a, then of b.
  function compose(a, b) {
    if (!a)
      return b;
    if (!b)
      return a;
    return Int32Array.from(a, (node) => (node < 0 ? -1 : b[node]));
  }

  // --- weights -------------------------------------------------------------------------------

  // For each tag whether its rows are waiting; null: none of those that are shown. A comparison does not
  // tell it.
  function waitingTags(report, state) {
    const {meta} = report, {factors} = selectionOf(report, state).kind ?? kindOf(meta);

    return !isComparing(report, state) && meta.kinds?.some((kind, k) => factors[k] && isWaiting(kind))
      ? meta.tags.map(({kind = 0}) => isWaiting(meta.kinds[kind])) : null;
  }

  // Ticks of each source node (state.by line: site) by side: {base, current}; base null where
  // nothing is compared. waits: see decode().
  function selfWeights(report, state) {
    const byLine = state.by === "line";
    if (!byLine && report.self && isWhole(report, state))
      return report.self;
    const {rows, sites} = report;
    const passes = passingRows(report, state), sides = slotSides(report, state);
    const count = byLine ? sites.count : report.nodes.count;
    const current = new Float64Array(count);
    const base = isComparing(report, state) ? new Float64Array(count) : null;
    const waiting = waitingTags(report, state), waits = waiting && new Float64Array(count);

    for (let i = 0; i < rows.count; i++) {
      const ticks = passes(i) * rows.ticks[i];
      if (!ticks)
        continue;
      const side = sides[rows.slot[i]];
      const at = byLine ? rows.site[i] : sites.node[rows.site[i]];
      if (side & 1 << SIDE_CURRENT) {
        current[at] += ticks;
        if (waits && waiting[rows.tag[i]])
          waits[at] += ticks;
      }
      if (base && side & 1 << SIDE_BASE)
        base[at] += ticks;
    }
    return {base, current, waits};
  }

  function moveThrough(map, self, count) {
    if (!map)
      return self;
    const moved = new Float64Array(count);
    for (let i = 0; i < self.length; i++)
      if (map[i] >= 0)
        moved[map[i]] += self[i];
    return moved;
  }

  // Inclusive weights from own ones (index = node, any sign): children + self = total. Children
  // follow their parent in preorder, so one backward pass adds every subtree up.
  function totals({count, parent}, self) {
    const total = Float64Array.from(self);
    for (let i = count - 1; i > 0; i--)
      total[parent[i]] += total[i];
    return total;
  }

  // One base tick in current ticks: meta.scale for the runs as recorded; for ranges of time by the time
  // they take.
  function baseScale(report, state) {
    const {range, baseRange} = state, {time} = selectionOf(report, state), {meta} = report;

    if (baseRange) {
      const current = range ? range[1] - range[0] : meta.blocks;
      return current / Math.max(baseRange[1] - baseRange[0], 1);
    }
    return time?.[SIDE_BASE] && ["absolute", "second"].includes(meta.diff?.normalize)
      ? time[SIDE_CURRENT] / time[SIDE_BASE] : meta.scale ?? 1;
  }

  // A path of the base that nothing is on any more.
  function isGone({base, current}, node) {
    return base !== null && current.total[node] === 0 && base.total[node] > 0;
  }

  // The one predicate of what Elided counts and draws: the gone paths with samples of their own.
  function isElided(active, node) {
    return isGone(active, node) && active.base.self[node] > 0;
  }

  // Width of each node's own ticks, but for "current", which is at hand. Additive, so that boxes
  // fill their callers.
  const WIDTHS = {
    baseline: (c, b) => b,
    union: (c, b) => Math.max(c, b),
    delta: (c, b) => Math.abs(c - b),
  };

  // What the view is drawn by: Base and Head by their own side; Elided by what was removed.
  function widthBasis(state) {
    if (state.view === "base")
      return "baseline";
    return state.view === "diff" ? state.basis ?? "current" : "current";
  }

  function widthsOf(active, state) {
    const {tree, current, base, scale} = active, basis = widthBasis(state);

    if (!base || state.view !== "elided" && basis === "current")
      return current;
    const self = new Float64Array(tree.count);

    if (state.view === "elided") {
      for (let i = 0; i < tree.count; i++)
        if (isElided(active, i))
          self[i] = base.self[i] * scale;
    } else {
      const width = WIDTHS[basis];
      for (let i = 0; i < tree.count; i++)
        self[i] = width(current.self[i], base.self[i] * scale);
    }
    return {self, total: totals(tree, self)};
  }

  // The weights a reversed tree is pruned by: either side's.
  function eitherSide({base, current}, scale) {
    if (!base)
      return current;
    const sum = Float64Array.from(current);
    for (let i = 0; i < sum.length; i++)
      sum[i] += base[i] * scale;
    return sum;
  }

  function shapeOf(report, state, weights, scale) {
    const source = state.by === "line" ? lineTree(report) : identity(report.nodes);
    const steps = [];
    let {tree, map} = source;
    let moved = weights;
    const apply = (shape) => {
      steps.push(shape);
      tree = shape.tree;
      map = compose(map, shape.map);
    };
    const here = () => {
      moved = {
        current: moveThrough(map, weights.current, tree.count),
        base: weights.base && moveThrough(map, weights.base, tree.count),
      };
      return eitherSide(moved, scale);
    };

    const {groups, library} = selectionOf(report, state);
    if (groups || library || state.hidden?.some?.(Boolean))
      apply(shownFunctions(tree, {hidden: state.hidden, groups, library}));
    if (state.shape === "inverted")
      apply(inverted(tree, here()));
    else if (state.shape === "callers")
      apply(callers(tree, state.func, here()));
    else if (state.shape === "callees")
      apply(callees(tree, state.func));
    return {tree, map};
  }

  // THE data of everything on screen. state, all parts optional:
  //   view      "head" (default), "base", "diff", "elided"
  //   basis     "current" (default), "baseline", "union", "delta": widths of the view "diff"
  //   by        "function" (default), "line"
  //   shape     "call" (default); "inverted"; "callers", "callees" of function state.func: the two
  //             halves of a sandwich
  //   func      function index
  //   process, thread, pod   [key...] of filterChoices()
  //   select    which samples, and what a frame stands for, as select.js reads it (but for `by`, hidden)
  //   range     [from, to): blocks that count; baseRange: blocks they are compared with
  //   hidden    Uint8Array by function: 1: leave it out
  // Returns
  //   tree      what to draw
  //   map       by source node (by line: site) its node in tree, -1: none; null: the same
  //   current   {self, total} ticks by node;  base: the same, unscaled, or null
  //   waits     {self, total}: what of current is waiting; null: nothing
  //   scale     one base tick in current ticks
  //   width     {self, total}: what boxes are as wide as, in current ticks
  function activeData(report, state) {
    const weights = selfWeights(report, state), scale = baseScale(report, state);
    const {tree, map} = shapeOf(report, state, weights, scale);
    const active = {report, state, tree, map, scale, current: null, base: null, waits: null, width: null};

    for (const side of ["current", "base", "waits"]) {
      if (!weights[side])
        continue;
      const self = moveThrough(map, weights[side], tree.count);
      active[side] = {self, total: totals(tree, self)};
    }
    active.width = widthsOf(active, state);
    return active;
  }

  // --- what is read off the active data ------------------------------------------------------

  // {count, self, total, nodes}: removed paths; nodes is 1 where the view Elided fills a box.
  function elided(active) {
    const {tree, base} = active;
    const nodes = new Uint8Array(tree.count);
    let count = 0, self = 0;

    for (let i = 1; i < tree.count; i++) {
      if (isElided(active, i)) {
        nodes[i] = 1;
        count++;
        self += base.self[i] * active.scale;
      }
    }
    return {count, self, nodes};
  }

  // By function index, of all shapes the plain one's figures: {self, total, baseSelf, baseTotal};
  // total counts a stack once however often the function is in it; base* null without a base.
  function functionTable(active) {
    const {tree, current, base} = active, {func, end} = tree;
    const count = active.report.functions.count;
    const inside = new Uint32Array(count); // of each function where its outermost node ends
    const table = {
      self: new Float64Array(count),
      total: new Float64Array(count),
      baseSelf: base && new Float64Array(count),
      baseTotal: base && new Float64Array(count),
    };

    for (let i = 1; i < tree.count; i++) {
      const f = func[i], isOutermost = i >= inside[f];
      if (isOutermost) {
        inside[f] = end[i];
        table.total[f] += current.total[i];
      }
      table.self[f] += current.self[i];
      if (!base)
        continue;
      table.baseSelf[f] += base.self[i];
      if (isOutermost)
        table.baseTotal[f] += base.total[i];
    }
    return table;
  }

  // Ticks of each site, {self, total}: {current, base}; base null where nothing is compared.
  function siteSums(report, state) {
    const {sites} = report, self = selfWeights(report, {...state, by: "line"});
    const total = {current: Float64Array.from(self.current),
      base: self.base && Float64Array.from(self.base)};

    for (let s = sites.count - 1; s > 0; s--) {
      total.current[sites.parent[s]] += total.current[s];
      if (total.base)
        total.base[sites.parent[s]] += total.base[s];
    }
    return {self, total};
  }

  // Lines of one file: {lines, all, allBase}: Map of line -> {self, total, baseSelf, baseTotal}, a
  // stack counts once a line; ticks of each side. Of siteSums().
  function lineHeat(report, {self, total}, file) {
    const {sites, nodes, functions} = report, heat = new Map();

    for (let s = 1; s < sites.count; s++) {
      if (functions.file[nodes.func[sites.node[s]]] !== file || !sites.line[s])
        continue;
      let row = heat.get(sites.line[s]);
      if (!row)
        heat.set(sites.line[s], row = {self: 0, total: 0, baseSelf: 0, baseTotal: 0});
      const isOutermost = !hasLineAbove(report, s, file);
      row.self += self.current[s];
      row.baseSelf += self.base ? self.base[s] : 0;
      if (isOutermost) {
        row.total += total.current[s];
        row.baseTotal += total.base ? total.base[s] : 0;
      }
    }
    return {lines: heat, all: total.current[0], allBase: total.base ? total.base[0] : 0};
  }

  // Instructions that one function was at itself: Map of line -> [{name, current, base}...], the heaviest
  // first; ticks of the side that is shown, and of the base. Empty where none were recorded.
  function lineOpcodes(report, state, func, shown) {
    const {meta, rows, sites, nodes} = report, lines = new Map();
    const passes = passingRows(report, state), sides = slotSides(report, state);

    for (let i = 0; rows.opcode && i < rows.count; i++) {
      const site = rows.site[i], line = sites.line[site], side = sides[rows.slot[i]];
      if (nodes.func[sites.node[site]] !== func || !passes(i) || !side)
        continue;
      if (!lines.has(line))
        lines.set(line, []);
      const list = lines.get(line), name = meta.opcodes[rows.opcode[i]] || "unknown";
      let one = list.find((o) => o.name === name);
      if (!one)
        list.push(one = {name, current: 0, base: 0});
      one.current += (side >> shown & 1) * passes(i) * rows.ticks[i];
      one.base += (side & 1) * passes(i) * rows.ticks[i];
    }
    for (const list of lines.values())
      list.sort((a, b) => b.current - a.current || b.base - a.base);
    return lines;
  }

  function hasLineAbove({sites, nodes, functions}, site, file) {
    for (let p = sites.parent[site]; p > 0; p = sites.parent[p])
      if (sites.line[p] === sites.line[site] && functions.file[nodes.func[sites.node[p]]] === file)
        return true;
    return false;
  }

  // {status, lines}: lines: Map of number -> text of a file (string id); status tells why there
  // are none: one of SOURCE_STATUS, or "unknown" for a file nothing is known of.
  function sourceLines(report, file) {
    const source = report.sources.get(file);
    const lines = new Map();

    for (const {line, bytes} of source?.parts ?? [])
      new TextDecoder().decode(bytes).split("\n").forEach((text, i) => lines.set(line + i, text));
    return {status: source?.status ?? "unknown", lines};
  }

  // Ticks over time under the name filters, whatever the ranges: one series of meta.blocks numbers
  // for each of {key, label, side, sum, ticks, waits}, the heaviest first; waits: what of ticks is waiting. by: "run", "process", "thread" or "pod". A
  // few processes or threads have each its own, many of one name one together.
  function timeline(report, state, by = "run") {
    const {meta, rows} = report;
    const passes = passingRows(report, state), waiting = waitingTags(report, state);
    const series = new Map(), {blocks} = meta, tags = Math.max(meta.tags.length, 1);
    const members = {process: meta.processes, thread: meta.threads}[by] ?? [];
    const isFew = members.length <= TIMELINE_ROWS;
    const isLone = (name) => members.filter((m) => m.name === name).length < 2;
    const seriesOf = new Array(meta.runs.length * tags); // by run, then tag
    const find = (run, tag) => {
      const key = by === "run" ? String(run)
        : DIMENSIONS[by](meta, meta.tags[tag]).at(isFew ? -1 : 0) ?? "";
      const side = meta.runs[run].side, id = `${side} ${key}`;
      if (!series.has(id)) {
        const name = withoutNumber(key);
        const label = by === "run" ? meta.runs[run].file ?? "" : isLone(name) ? name
          : key.replace(/(.*) \((\d+)\)$/, "$2 $1"); // a long name is cut at its end
        series.set(id, {key, label, side, sum: 0, ticks: new Float64Array(meta.blocks),
          waits: new Float64Array(meta.blocks)});
      }
      return series.get(id);
    };

    for (let i = 0; i < rows.count; i++) {
      const tag = rows.tag[i], slot = rows.slot[i], ticks = passes(i) * rows.ticks[i];
      if (!ticks)
        continue;
      const run = Math.floor(slot / blocks);
      const row = seriesOf[run * tags + tag] ??= find(run, tag);
      row.ticks[slot - run * blocks] += ticks;
      row.waits[slot - run * blocks] += waiting?.[tag] ? ticks : 0;
      row.sum += ticks;
    }
    return [...series.values()].sort((a, b) => b.sum - a.sum);
  }

  const SAME_LENGTH = 1.02; // runs whose lengths differ by more have no time in common

  // The time of one side: {blocks, hasTime, text(block)}: blocks that any of its runs has; what time
  // it is after so many of them, in per cent where the runs' blocks are not of one length. hasTime:
  // false: its blocks are no parts of time.
  function timeScale({runs, blocks: all}, side) {
    const own = runs.filter((run) => run.side === side), timed = own.filter((run) => run.block_ns);
    const blocks = Math.max(1, ...own.map((run) => run.blocks ?? all));
    const lengths = timed.map((run) => run.block_ns), longest = Math.max(...lengths);
    const isOne = longest <= Math.min(...lengths) * SAME_LENGTH;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length / 1e6;

    return {blocks, hasTime: timed.length > 0 && !timed.some((run) => run.dealt),
      text: (block) => isOne ? ns.duration(block * mean) : ns.percent(block / blocks)};
  }

  // The path of keys from the root to a node, and back: how links name a node. -1: no such path.
  function pathOf(tree, node) {
    const path = [];
    for (let i = node; i > 0; i = tree.parent[i])
      path.push(tree.key[i]);
    return path.reverse();
  }

  function nodeAt(tree, path) {
    let node = 0;
    for (const key of path) {
      let child = node + 1;
      while (child < tree.end[node] && tree.key[child] !== key)
        child = tree.end[child];
      if (child >= tree.end[node])
        return -1;
      node = child;
    }
    return node;
  }

  Object.assign(ns, {SIDE_BASE, SIDE_CURRENT, ORIGINS, PART, isPart, CLASSES, MATCHES, PageError, decode, inflate,
    functionName, functionFile, isWaiting, kindOf, kindWords, idleSums, filterChoices, tagKeys, passingRows, slotSides, isComparing, isWhole,
    withoutNumber, totals, activeData, isGone, elided, functionTable, siteSums, lineHeat, lineOpcodes,
    sourceLines, timeline, timeScale, pathOf, nodeAt});
})(globalThis.pyebpf ??= {});
