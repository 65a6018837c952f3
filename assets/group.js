// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A report by parts of its samples, as `report --by` has them: values of a label, threads, processes,
// places. Each part is a function below the root, above all stacks that it has: so trees, tables,
// searches and comparisons know parts without being told of them. Pure.
(function (ns) {
  "use strict";

  const OPTIONS = {process: "process", thread: "thread", pod: "container"}; // of a selection, by dimension

  const PARTS_MAX = 1000; // of 20,000 traces in a million rows the trees would take 1.4 GB

  const memberOf = (meta, by, tag) => ns.tagKeys(meta, by, tag).at(-1);

  // [[word, what people call it]...]: dimensions of which there are several members, labels as "label:task".
  function groupChoices({meta}) {
    const several = Object.entries(OPTIONS).filter(([by]) =>
      new Set(meta.tags.map((tag) => memberOf(meta, by, tag))).size > 1);
    const names = new Set();

    for (let set of new Set(meta.tags.map(({labels = 0}) => labels)))
      for (; set; [set] = meta.labels[set])
        names.add(meta.labels[set][1]);
    return [...[...names].sort().map((name) => ["label:" + name, name]), ...several];
  }

  // By tag the part that it is of; undefined: it has no such label.
  function membersOf(meta, by) {
    const name = /^label:([^]*)/.exec(by)?.[1], values = [];

    meta.labels?.forEach(([without, own, value], set) => {
      values[set] = set && own === name ? value : values[without];
    });
    return meta.tags.map((tag) => name === undefined ? memberOf(meta, by, tag) : values[tag.labels ?? 0]);
  }

  // What selects a part by one of its tags, in the words of select.js; "": nothing does.
  function wordOf({processes}, by, tag, member) {
    const {pid, name, pod} = processes[tag.process], label = by.replace(/^label:/, "");
    const exactly = (text) => text.replace(/[*?[\\]/g, "\\$&");
    const value = {process: pid || exactly(name), thread: tag.tid || exactly(tag.name ?? ""),
      pod: pod && exactly(pod.replace(/^container /, ""))};
    const word = Object.hasOwn(OPTIONS, by) ? value[by] && [OPTIONS[by], String(value[by])]
      : ["label", member === undefined ? "!" + label : `${label}=${exactly(member)}`];

    return word ? `--${word[0]} ${/^[\w.:=/-]+$/.test(word[1]) ? word[1] : `'${word[1].replaceAll("'", "'\"'\"'")}'`}` : "";
  }

  // The sites of all parts, one part after the other: {site, part, parent, rows}. site[i] is what the report
  // has in the place of site i, 0: the part itself; part[i]: whose it is; rows: by row its site.
  function spread({sites, rows}, partOfTag, count) {
    const all = {site: [0], part: [-1], parent: [-1], rows: new Uint32Array(rows.count)};
    const place = new Uint32Array(sites.count), owner = new Int32Array(sites.count).fill(-1);
    const own = Array.from({length: count}, () => []);

    for (let i = 0; i < rows.count; i++)
      own[partOfTag[rows.tag[i]]].push(i);
    own.forEach((list, p) => {
      const found = [0];

      owner[0] = p;
      for (const i of list)
        for (let s = rows.site[i]; owner[s] !== p; s = sites.parent[s]) {
          owner[s] = p;
          found.push(s);
        }
      for (const s of Uint32Array.from(found).sort()) { // callers before callees, those of a node together
        place[s] = all.site.length;
        all.site.push(s);
        all.part.push(p);
        all.parent.push(s ? place[sites.parent[s]] : 0);
      }
      for (const i of list)
        all.rows[i] = place[rows.site[i]];
    });
    return all;
  }

  // {nodes, sites} as decode() has them; source: by node the report's. Part 0 is function `first`.
  function treesOf({nodes, sites}, {site, part, parent: callers}, first) {
    const node = new Uint32Array(site.length), starts = [];
    const source = [], parent = [], func = [], depth = [];

    for (let i = 0; i < site.length; i++) {
      const own = sites.node[site[i]], p = i ? node[callers[i]] : -1;

      if (!i || part[i] !== part[i - 1] || own !== source.at(-1)) {
        starts.push(i);
        source.push(own);
        parent.push(p);
        depth.push(p < 0 ? 0 : depth[p] + 1);
        func.push(i && !own ? first + part[i] : nodes.func[own]);
      }
      node[i] = source.length - 1;
    }
    const count = source.length, end = Uint32Array.from(source, (_, i) => i + 1), key = Uint32Array.from(func);

    for (let i = count - 1; i > 0; i--)
      end[parent[i]] = Math.max(end[parent[i]], end[i]);
    return {source,
      nodes: {count, parent: Int32Array.from(parent), depth: Uint32Array.from(depth), end, func: key, line: null, key},
      sites: {count: site.length, first: Uint32Array.from([starts, site.length].flat()), node,
        parent: Int32Array.from(callers), line: Uint32Array.from(site, (s) => sites.line[s])}};
  }

  // All parts, the heaviest first: by their shares of each kind, added up.
  function partsOf({meta, rows}, members) {
    const ticks = new Float64Array(meta.tags.length), kinds = [], sums = new Map();
    const kindOf = (tag) => meta.tags[tag].kind ?? 0;

    for (let i = 0; i < rows.count; i++)
      ticks[rows.tag[i]] += rows.ticks[i];
    ticks.forEach((own, tag) => {
      kinds[kindOf(tag)] = (kinds[kindOf(tag)] ?? 0) + own;
    });
    members.forEach((member, tag) =>
      sums.set(member, (sums.get(member) ?? 0) + ticks[tag] / (kinds[kindOf(tag)] || 1)));
    return [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a));
  }

  // The report by a word of groupChoices(); itself where it has none such. Functions keep their
  // indices, behind them stand the parts, PARTS_MAX of them and all others as one; partWord(function):
  // what selects it, "": nothing does.
  function groupReport(report, by) {
    if (!groupChoices(report).some(([word]) => word === by))
      return report;
    const {meta, strings, functions, rows, idle} = report, members = membersOf(meta, by), {count} = functions;
    const parts = partsOf(report, members), others = parts.length - PARTS_MAX;
    const numbers = new Map(parts.map((member, p) => [member, Math.min(p, PARTS_MAX)]));
    const names = [...parts.slice(0, PARTS_MAX).map((member) => member ?? "(none)"),
      ...others > 0 ? [`(${ns.count(others)} more)`] : []];
    const spots = spread(report, members.map((member) => numbers.get(member)), names.length);
    const {nodes, sites, source} = treesOf(report, spots, count);
    const longer = (column, of) => Uint32Array.from({length: count + names.length}, (_, f) => column[f] ?? of(f));
    const none = () => 0;

    return {...report, nodes, sites, self: null, classes: null, lineTree: null,
      idle: idle && Uint8Array.from(source, (node) => idle[node]),
      rows: {...rows, site: spots.rows},
      strings: {...strings, get: (id) => id < strings.count ? strings.get(id) : names[id - strings.count]},
      functions: {count: count + names.length, name: longer(functions.name, (f) => strings.count + f - count),
        file: longer(functions.file, none), module: longer(functions.module, none), line: longer(functions.line, none),
        renamedFrom: longer(functions.renamedFrom, none),
        origin: longer(functions.origin, () => ns.PART)},
      partWord: (f) => f - count < PARTS_MAX
        ? wordOf(meta, by, meta.tags[members.indexOf(parts[f - count])], parts[f - count]) : ""};
  }

  Object.assign(ns, {groupChoices, groupReport});
})(globalThis.pyebpf ??= {});
