// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Search: which functions a pattern means and how much of the profile they cover. No DOM.
(function (ns) {
  "use strict";

  // A pattern as typed: a regular expression, or, where it is not one, the text itself. Letter
  // case matters only if the pattern has a capital. Returns {test(text), error}; error is "" or
  // says why the pattern is taken literally. An empty pattern gives null.
  function compile(pattern) {
    if (!pattern)
      return null;
    const flags = /\p{Lu}/u.test(pattern.replace(/\\./gu, "")) ? "u" : "iu";

    try {
      const re = new RegExp(pattern, flags);

      return {test: (text) => re.test(text), error: ""};
    } catch (e) {
      const literal = new RegExp(pattern.replace(/[$()*+.?[\\\]^{|}/-]/g, "\\$&"),
        flags.replace("u", ""));

      return {test: (text) => literal.test(text), error: "not a regular expression, so taken as text"};
    }
  }

  // texts(i): the strings to search in for function i of count; any may match. Returns a
  // Uint8Array, 1 where a function matches.
  function matchFunctions(search, count, texts) {
    const seen = new Map(), matched = new Uint8Array(count);
    const test = (text) => {
      let hit = seen.get(text);

      if (hit === undefined)
        seen.set(text, hit = search.test(text));
      return hit;
    };

    for (let i = 0; i < count; i++)
      matched[i] = Number(texts(i).some(test));
    return matched;
  }

  // tree: {count, parent, func}; weight: inclusive. Returns {nodes, weight}: how many nodes match
  // and the weight they cover, each sample once: what lies under another match adds nothing.
  function covered({count, parent, func}, weight, matched) {
    const under = new Uint8Array(count);
    let nodes = 0, sum = 0;

    for (let i = 0; i < count; i++) {
      const above = i > 0 && under[parent[i]];

      if (!matched[func[i]] || !(weight[i] > 0)) {
        under[i] = above;
        continue;
      }
      under[i] = 1;
      nodes++;
      if (!above)
        sum += weight[i];
    }
    return {nodes, weight: sum};
  }

  // The match after (step 1) or before (step -1) node, round and round; there is one.
  function nextMatch({count, func}, weight, matched, node, step) {
    do
      node = (node + step + count) % count;
    while (!matched[func[node]] || !(weight[node] > 0));
    return node;
  }

  Object.assign(ns, {compile, matchFunctions, covered, nextMatch});
})(globalThis.pyebpf ??= {});
