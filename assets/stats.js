// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a change is worth: scatter of counts, intervals, chances, classes. The formulas are those of
// user/diff (replicates.c, dispersion.c, contrast.c, centre.c, classes.c), so that a page that
// filters says what the program would say of the same samples; on all samples both say the same,
// which a test compares.
(function (ns) {
  "use strict";

  const ALPHA = 0.05; // of intervals
  const EXPECTED_MIN = -Math.log(0.01); // ticks: where there are none the chance is 1 %
  const Q_MAX = 0.01;
  const NEAR = 2.57; // standard errors: what is nearer has a chance, and a q, above Q_MAX
  const TICKS_MIN = 8; // of both sides together, to be tested
  const FLOOR = 0.005; // of a side: what takes more of either is told apart from the rest
  const REPLICATES = 20; // of a run, up to twice as many less one
  const GROWTH_CHANCE = 0.01; // that a variance which does not grow is taken for one that does
  const CHANCE_LIKELY = 1.5; // such a ratio has a larger chance than that, of 100 parts even
  const CENTRE_ERRORS = 4; // a centre nearer to 1 may be noise
  const NO_CENTRE = {centre: 1, error: 0};
  const MARKS = [1.10, 1.25, 1.5, 2.0];

  const T_LEAST = 1.95; // of intervals, whatever their degrees of freedom
  const UNCHANGED = 0, UNDETERMINED = 1, RARE = 2, SLOWER = 3, FASTER = 7, NEW = 11, REMOVED = 12;

  // Benjamini-Hochberg: the largest of some chances whose q is no more than Q_MAX, if any. All that
  // are no more than Q_MAX must be among them: no other can be. weights: for how many findings each
  // counts; all: of everything that was tested.
  function largestFound(chances, weights, all) {
    const order = chances.map((_, i) => i).sort((a, b) => chances[a] - chances[b]);
    let below = 0, found;

    for (const i of order) {
      below += weights[i];
      if (chances[i] * all <= Q_MAX * below)
        found = chances[i];
    }
    return found;
  }

  // --- replicates ----------------------------------------------------------------------------

  // How the sides were made comparable, which also says why one block may have more than another.
  function normalization(active) {
    return active.state.baseRange ? "second" : active.report.meta.diff?.normalize ?? "second";
  }

  function blockTime(run, block) {
    const start = block * run.block_ns, end = start + run.block_ns, last = run.duration_ns ?? 0;

    return block + 1 === run.blocks && last > start && last < end ? last - start : end - start;
  }

  // Ticks of each slot, all threads.
  function slotTicks({meta, rows}) {
    const ticks = new Float64Array(Math.max(meta.runs.length, 1) * meta.blocks);
    for (let i = 0; i < rows.count; i++)
      ticks[rows.slot[i]] += rows.ticks[i];
    return ticks;
  }

  // Blocks of a run that count for a side.
  function blocksOf(report, sides, r, side) {
    const {meta} = report, used = meta.runs[r].blocks ?? meta.blocks;
    const list = [];
    for (let block = 0; block < used; block++)
      if (sides[r * meta.blocks + block] & 1 << side)
        list.push(block);
    return list;
  }

  // Neighbours are joined: bursts reach over the ends of blocks. A short rest goes with the last.
  // times: groups of so many times the usual length.
  function groupBlocks(run, blocks, times = 1) {
    const size = Math.max(Math.floor(blocks.length / REPLICATES), 1) * times, groups = [];
    for (let i = 0, end; i < blocks.length; i = end) {
      end = i + size;
      const rest = blocks.slice(end).reduce((sum, b) => sum + blockTime(run, b), 0);
      if (rest < size * run.block_ns / 2)
        end = blocks.length;
      groups.push(blocks.slice(i, end));
    }
    return groups;
  }

  function exposureOf(run, blocks, isWholeRun, normalize, ticks, first) {
    if (normalize === "share")
      return blocks.reduce((sum, b) => sum + ticks[first + b], 0);
    if (isWholeRun && normalize === "absolute")
      return 1;
    if (isWholeRun && normalize === "work")
      return run.work ?? 0;
    return blocks.reduce((sum, b) => sum + blockTime(run, b), 0);
  }

  // {by, sides: for each side [{slots, exposure, pair}...]}: exposures add up to 1. Runs where a
  // side has several, else the blocks of those that have times; pair: the block of twice the length
  // that it is of.
  function findReplicates(active) {
    const {report, state} = active, {meta} = report;
    const slots = ns.slotSides(report, state), normalize = normalization(active);
    const ticks = normalize === "share" ? slotTicks(report) : null;
    const runsOf = [0, 1].map((side) => meta.runs.map((_, r) => r)
      .filter((r) => blocksOf(report, slots, r, side).length));
    const hasRuns = !state.baseRange && runsOf.some((runs) => runs.length > 1);
    const hasBlocks = meta.runs.some((run) => run.block_ns && (run.blocks ?? meta.blocks) > 1);
    const isPresumed = meta.diff?.dispersion === "presumed" && !state.range && !state.baseRange;
    const by = hasRuns ? "runs" : isPresumed ? "presumed" : hasBlocks ? "blocks" : "poisson";
    const sides = [0, 1].map((side) => {
      const list = [];
      for (const r of by === "poisson" ? [] : runsOf[side]) {
        const blocks = blocksOf(report, slots, r, side), run = meta.runs[r];
        const pairs = groupBlocks(run, blocks, 2);
        for (const group of by === "blocks" ? groupBlocks(run, blocks) : [blocks]) {
          const exposure = exposureOf(run, group, by !== "blocks", normalize, ticks, r * meta.blocks);
          if (exposure > 0)
            list.push({slots: group.map((b) => r * meta.blocks + b), exposure,
              pair: pairs.findIndex((pair) => pair.includes(group[0]))});
        }
      }
      const sum = list.reduce((all, {exposure}) => all + exposure, 0);
      return list.map((one) => ({...one, exposure: one.exposure / sum}));
    });
    return {by, sides};
  }

  // {df, share, pairs, pairDf}: replicates less one; the sum of the squares of their shares; the
  // share of each pair, pairs less one, 0 where there are none.
  function describeSide(list, by) {
    const pairs = [];

    for (const {exposure, pair} of by === "blocks" ? list : [])
      pairs[pair] = (pairs[pair] ?? 0) + exposure;
    return {df: Math.max(list.length - 1, 0), pairs, pairDf: Math.max(pairs.length - 1, 0),
      share: list.reduce((sum, {exposure}) => sum + exposure * exposure, 0)};
  }

  // --- dispersion ----------------------------------------------------------------------------

  // Things that are counted: base and current ticks of each, and how they scatter. The first `many`
  // of tested are those with ticks enough to tell. growth: null: of runs there is none.
  function newKind(base, current, hasGrowth) {
    return {base, current, phi: new Float64Array(base.length),
      growth: hasGrowth ? new Float32Array(base.length) : null,
      tested: new Uint32Array(base.length), many: 0};
  }

  // [slots, ticks, nodeOf]: rows in order of their nodes. nodeOf: row -> node of the tree, -1:
  // it is not shown. Those of the plain tree by function are in order as they stand.
  function rowsByNode({report, map, state, tree}) {
    const {rows: {count, site, slot, ticks}, sites: {node}} = report;
    const passes = ns.passingRows(report, state), byLine = state.by === "line";
    const nodeOf = (row) => {
      const source = byLine ? site[row] : node[site[row]];
      return passes(row) ? map ? map[source] : source : -1;
    };
    if (!map)
      return [slot, ticks, nodeOf];
    const ends = new Uint32Array(tree.count + 1), nodes = new Int32Array(count);
    const slots = slot.slice(), weights = ticks.slice();
    let sum = 0;

    for (let row = 0; row < count; row++)
      ends[nodeOf(row) + 1]++;
    for (let i = 0; i <= tree.count; i++)
      ends[i] = sum += ends[i];
    for (let row = 0; row < count; row++) {
      const own = nodeOf(row), at = --ends[own + 1];
      nodes[at] = own;
      slots[at] = slot[row];
      weights[at] = ticks[row];
    }
    return [slots, weights, (row) => nodes[row]];
  }

  // For the nodes of the tree from the last to the first, each when its turn comes: adds its own
  // ticks to `sums`, by replicate, and sets their bits in `used`, from `bits` on.
  function ownTicks(active, sides, words, sums, used) {
    const [slot, ticks, nodeOf] = rowsByNode(active);
    const replicates = sides.map((list) => { // by slot; some are of none
      const of = [];
      list.forEach(({slots}, r) => slots.forEach((at) => {
        of[at] = r;
      }));
      return of;
    });
    let row = slot.length - 1;

    return (node, bits) => {
      for (; row >= 0; row--) {
        const at = nodeOf(row);
        if (at >= 0 && at !== node)
          return;
        for (let side = 0; side < 2 && at >= 0; side++) {
          const r = replicates[side][slot[row]];
          if (r === undefined)
            continue;
          sums[side * sides[0].length + r] += ticks[row];
          used[bits + side * words + (r >> 5)] |= 1 << (r & 31);
        }
      }
    };
  }

  // [1 for each node that is not inside another of its function, number of levels]
  function outline({count, func, depth, end}, functionCount) {
    const isOutermost = new Uint8Array(count), inside = new Uint32Array(functionCount);
    let levels = 1;

    for (let i = 1; i < count; i++) {
      levels = Math.max(levels, depth[i] + 1);
      if (i < inside[func[i]])
        continue;
      isOutermost[i] = 1;
      inside[func[i]] = end[i];
    }
    return [isOutermost, levels];
  }

  // What blocks miss the mean by is what pairs of them miss it by, and what the two of each pair
  // differ by. Independent blocks have as much of both, for each degree of freedom. What is steadier
  // than chance, 1, is taken for chance.
  function growthOf(fine, coarse, df, coarseDf, parts) {
    if (!(coarseDf > 0) || !(df > coarseDf))
      return 1;
    const ofPairs = coarse / coarseDf, f = ofPairs / Math.max((fine - coarse) / (df - coarseDf), 1);

    if (f < CHANCE_LIKELY || ns.fisherBeyond(f, coarseDf, df - coarseDf) > GROWTH_CHANCE)
      return 1;
    return Math.min(Math.max((ofPairs / Math.max(fine / df, 1)) ** Math.log2(parts), 1), parts);
  }

  // Squares, by side: sums of ticks^2 / exposure over its replicates; less the side's ticks such a
  // sum is that of (x - m)^2 / m. pairSquares: the same of its pairs.
  function setPhi(kind, i, squares, pairSquares, sides) {
    const b = kind.base[i], c = kind.current[i], [base, current] = sides;
    const chi = (of) => (base.df && b ? Math.max(of[0] / b - b, 0) : 0) +
      (current.df && c ? Math.max(of[1] / c - c, 0) : 0);
    const fine = chi(squares), own = degrees(sides, b, c);

    if (own > 0)
      kind.phi[i] = fine / own;
    if (kind.growth)
      kind.growth[i] = b + c < TICKS_MIN ? 1 : growthOf(fine, chi(pairSquares), own,
        (b ? base.pairDf : 0) + (c ? current.pairDf : 0), Math.max(base.df, current.df) + 1);
    if (b + c >= TICKS_MIN)
      kind.tested[kind.many++] = i;
  }

  // By function, then side: [squares, squares of pairs]. sums: by function and replicate.
  function squaresOf(sums, sides, functions) {
    let k = 0;

    return Array.from({length: functions}, () => {
      const squares = [0, 0], pairSquares = [0, 0];

      sides.forEach(({list, pairs}, side) => {
        const ofPair = new Float64Array(pairs.length);
        for (const {exposure, pair} of list) {
          const ticks = sums[k++];
          squares[side] += ticks * ticks / exposure;
          if (pairs.length)
            ofPair[pair] += ticks;
        }
        pairs.forEach((share, p) => {
          pairSquares[side] += ofPair[p] * ofPair[p] / share;
        });
      });
      return [squares, pairSquares];
    });
  }

  // One pass over the tree from its end, so that callees come before their callers: a row of sums
  // by replicate for each level that is open, and a bit for each that is not 0: most nodes have
  // samples in few. Replicates of the current side are numbered after the base's. Returns {self,
  // total}, ticks by function and replicate.
  function addReplicates(active, node, nodeSelf, sides) {
    const {tree: {depth, func, count}, tree, report: {functions}} = active;
    const [isOutermost, levels] = outline(tree, functions.count), lists = sides.map(({list}) => list);
    const weight = Float64Array.from(lists.flat(), ({exposure}) => 1 / exposure);
    const pairOf = Uint8Array.from(lists.flat(), ({pair}) => Math.max(pair, 0));
    const pairWeight = sides.map(({pairs}) => pairs.map((share) => 1 / share));
    const many = weight.length; // replicates
    const words = Math.ceil(Math.max(lists[0].length, lists[1].length) / 32); // of a side
    const sums = new Float64Array((levels + 1) * many), own = new Float64Array(many);
    const ofPair = new Float64Array(32), ownOfPair = new Float64Array(32); // up to 20
    const used = new Uint32Array((levels + 1) * words * 2);
    const self = new Float64Array(functions.count * many), total = self.slice();
    const addOwn = ownTicks(active, lists, words, own, used);
    const squares = [0, 0], selfSquares = [0, 0], pairs = [0, 0], selfPairs = [0, 0];

    for (let i = count - 1; i >= 0; i--) {
      const here = depth[i] * many, below = here + many, f = func[i] * many;

      addOwn(i, (depth[i] + 1) * words * 2);
      for (let side = 0; side < 2; side++) {
        const hasPairs = pairWeight[side].length > 0;
        let ofSelf = 0, of = 0, touched = 0;
        for (let word = 0; word < words; word++) {
          const at = (depth[i] * 2 + side) * words + word;
          const first = side * lists[0].length + word * 32;
          let left = used[at + words * 2];

          used[at] |= left;
          used[at + words * 2] = 0;
          while (left) {
            const bit = 31 - Math.clz32(left), r = first + bit;
            const t = own[r], sum = sums[below + r] + t;

            left ^= 1 << bit;
            own[r] = sums[below + r] = 0;
            sums[here + r] += sum;
            of += sum * sum * weight[r];
            if (hasPairs) {
              ofPair[pairOf[r]] += sum;
              ownOfPair[pairOf[r]] += t;
              touched |= 1 << pairOf[r];
            }
            if (isOutermost[i])
              total[f + r] += sum;
            if (t) {
              self[f + r] += t;
              ofSelf += t * t * weight[r];
            }
          }
        }
        selfSquares[side] = ofSelf;
        squares[side] = of;
        selfPairs[side] = pairs[side] = 0;
        while (touched) {
          const p = 31 - Math.clz32(touched);

          touched ^= 1 << p;
          pairs[side] += ofPair[p] * ofPair[p] * pairWeight[side][p];
          selfPairs[side] += ownOfPair[p] * ownOfPair[p] * pairWeight[side][p];
          ofPair[p] = ownOfPair[p] = 0;
        }
      }
      setPhi(nodeSelf, i, selfSquares, selfPairs, sides);
      setPhi(node, i, squares, pairs, sides);
    }
    self.fill(0, 0, many); // the root is no function
    return {self, total};
  }

  function degrees([base, current], b, c) {
    return (b ? base.df : 0) + (c ? current.df : 0);
  }

  // What of a side's ticks makes its chi^2 larger by tau2: they are their own mean.
  function meanOf(sides, b, c) {
    const [base, current] = sides, own = degrees(sides, b, c);

    if (!own)
      return b * base.share + c * current.share;
    return (b * (base.df ? 1 - base.share : 0) + c * (current.df ? 1 - current.share : 0)) / own;
  }

  function finishKind(kind) {
    kind.tested = kind.tested.slice(0, kind.many);
    return kind;
  }

  // Laws of nodes and of functions, as the program found them: those of what is shown, unless that
  // is a range of time. Of such each thing has its own scatter alone.
  function lawsOf({report, state}) {
    const isRange = state.range || state.baseRange || state.select && ns.selectionOf(report, state).slots;
    const diff = isRange ? null : report.meta.diff;

    return {node: new ns.Noise(diff?.node_noise), func: new ns.Noise(diff?.function_noise)};
  }

  // {by, sides, kinds, laws, self, squares}: sides: describeSide() with their replicates, `list`;
  // kinds: [totals, self times] of all nodes of the active data; laws: of nodes and of functions;
  // self: ticks by function and replicate; squares: what functions scatter by.
  function measureDispersion(active) {
    const {report, current, base} = active, {by, sides: found} = findReplicates(active);
    const sides = found.map((all) => {
      const list = all.length > 1 ? all : []; // one tells nothing
      return {...describeSide(list, by), list, share: describeSide(all, by).share};
    });
    const hasGrowth = by === "blocks";
    const node = newKind(base.total, current.total, hasGrowth);
    const nodeSelf = newKind(base.self, current.self, hasGrowth);
    const {self, total} = addReplicates(active, node, nodeSelf, sides);
    const squares = (sums) => squaresOf(sums, sides, report.functions.count);
    return {by, sides, self, kinds: [finishKind(node), finishKind(nodeSelf)], laws: lawsOf(active),
      presumed: by === "presumed" ? report.meta.diff.presumed : 0,
      squares: {self: squares(self), total: squares(total)}};
  }

  // key: "self" or "total" of each function; table: functionTable() of the active data.
  function functionKind({by, sides, squares}, table, key) {
    const kind = newKind(key === "self" ? table.baseSelf : table.baseTotal, table[key],
      by === "blocks");

    for (let f = 0; f < kind.base.length; f++)
      setPhi(kind, f, ...squares[key][f], sides);
    return finishKind(kind);
  }

  // Variance of the sum over one side of weights[function] times its self ticks, as replicates
  // have it: things that come and go together are seen to. 0 where nothing can be measured.
  function varianceOfSum({sides, self}, side, weights) {
    const {list} = sides[side], many = sides[0].list.length + sides[1].list.length;
    let sum = 0, squares = 0, products = 0, exposures = 0;

    if (!list.length)
      return 0;
    list.forEach(({exposure}, r) => {
      const at = side * sides[0].list.length + r;
      const own = weights.reduce((all, weight, func) => all + weight * self[func * many + at], 0);
      sum += own;
      squares += own * own;
      products += own * exposure;
      exposures += exposure * exposure;
    });
    squares += sum * sum * exposures - 2 * sum * products; // sum (x - exposure * sum)^2
    return Math.max(squares, 0) * list.length / (list.length - 1);
  }

  // --- one thing -----------------------------------------------------------------------------

  // How base and current ticks of one thing compare. law: of its kind; isAlone: the whole has
  // nothing to borrow from.
  class Contrast {
    #sides; #law; #isMeasured; #presumed; #isAlone; #unit; #centreError; #quantiles;
    #phi; #tau2; #degrees; #t;

    constructor({by, sides, presumed}, kind, law, scale, {centre, error}, isAlone = false) {
      Object.assign(this, {kind, scale, b: 0, c: 0});
      this.#sides = sides;
      this.#law = law;
      this.#isMeasured = by === "blocks" || by === "runs";
      this.#presumed = presumed;
      this.#isAlone = isAlone;
      this.#unit = scale * centre;
      this.#centreError = error;
      this.#quantiles = new ns.StudentTable(ALPHA);
    }

    choose(i) {
      const {kind} = this, b = this.b = kind.base[i], c = this.c = kind.current[i];
      this.#phi = 1;
      this.#tau2 = 0;
      this.#degrees = this.#isMeasured ? degrees(this.#sides, b, c) : Infinity;
      if (this.#isMeasured)
        this.#moderate(meanOf(this.#sides, b, c), kind.phi[i], kind.growth?.[i] ?? 1);
      else if (this.#presumed)
        this.#presume(meanOf(this.#sides, b, c));
      this.#t = this.#quantiles.get(this.#degrees);
    }

    // A variance of both sides together, whatever their size, and what is in proportion.
    #presume(mean) {
      this.#phi = Math.max(this.#presumed / Math.max(this.b + this.c, 1), 1);
      this.#tau2 = this.#law.tau2;
      this.#degrees = this.#law.moderate(mean, 0, 0)[1];
    }

    #moderate(mean, own, growth) {
      const law = this.#law;
      let ratio = own;
      if (!this.#isAlone || !this.#degrees)
        [ratio, this.#degrees] = law.moderate(mean, own, this.#degrees);
      const more = ratio / law.ratioAt(mean) * growth;
      if (more * law.ratioAt(mean) > 1) {
        this.#phi = Math.max(more * law.phi, 1);
        this.#tau2 = more * law.tau2;
      }
    }

    ratio() {
      return (this.c + 0.5) / ((this.b + 0.5) * this.#unit);
    }

    // Of the logarithm of the ratio: what counting leaves, and what is off in proportion.
    #countVariance() {
      return this.#phi * (1 / (this.c + 0.5) + 1 / (this.b + 0.5));
    }

    #relativeVariance() {
      return this.#tau2 * (this.#sides[0].share + this.#sides[1].share) + this.#centreError ** 2;
    }

    error() {
      return Math.sqrt(this.#countVariance() + this.#relativeVariance());
    }

    // Half the interval of the logarithm; see log_margin() in user/diff/contrast.c.
    #margin() {
      const relative = this.#t * Math.sqrt(this.#relativeVariance()) / 2;
      return relative < 1
        ? Math.hypot(this.#t * Math.sqrt(this.#countVariance()), 2 * Math.atanh(relative)) : Infinity;
    }

    // Variance of one side's ticks over their number.
    #spread(side, ticks) {
      return this.#phi + this.#tau2 * ticks * this.#sides[side].share;
    }

    // Where a side has no ticks: the most it may have had, and the least of the other.
    #boundedShare(side, ticks) {
      const least = ticks - this.#t * Math.sqrt(this.#spread(side, ticks) * ticks);
      return least > 0 ? least / (-Math.log(ALPHA / 2) * this.#phi) : 0;
    }

    // [low, high] of ratio: 95 %. One side has ticks, or both.
    interval(ratio) {
      const {b, c} = this, unit = this.#unit;
      if (!b)
        return [Math.min(this.#boundedShare(1, c) / unit, ratio), Infinity];
      if (!c)
        return [0, Math.max(1 / (this.#boundedShare(0, b) * unit), ratio)];
      const margin = Math.exp(this.#margin());
      return [ratio / margin, ratio * margin];
    }

    // In standard errors if there is no change. There are ticks.
    distance() {
      const {b, c} = this, unit = this.#unit, mean = (c + unit * b) / 2;
      const variance = this.#phi * (c + unit * unit * b) + mean * mean * this.#relativeVariance();
      return Math.abs(c - unit * b) / Math.sqrt(variance);
    }

    // That counts differ as much without a change.
    chance() {
      return ns.studentTwoSided(this.distance(), this.#degrees);
    }

    // True if the interval is. Most are wider by half, which is cheaper to tell.
    isWithin(mark) {
      if (!this.b || !this.c || this.#t * this.error() >= Math.log(mark))
        return false;
      const [low, high] = this.interval(this.ratio());
      return Math.fround(low) > 1 / mark && Math.fround(high) < mark;
    }

    // isFound: its q is no more than Q_MAX.
    classify(isFound, marks) {
      const found = isFound ? marked(Math.fround(this.ratio()), marks) : UNDETERMINED;
      return found === UNDETERMINED && this.isWithin(marks[0]) ? UNCHANGED : found;
    }

    // Of what is on one side only: whether the other has none by accident.
    absence() {
      const {b, c, scale} = this, expected = c / scale + b * scale;
      return expected <= EXPECTED_MIN * this.#spread(b ? 1 : 0, expected) ? RARE : c ? NEW : REMOVED;
    }
  }

  function isOneSided(b, c) {
    return !b !== !c;
  }

  function marked(ratio, marks) {
    let mark = 0;
    while (mark < marks.length && (ratio >= marks[mark] || ratio <= 1 / marks[mark]))
      mark++;
    return mark ? (ratio > 1 ? SLOWER : FASTER) + mark - 1 : UNDETERMINED;
  }

  // A box with next to all of its time in one callee is that one's finding again: it counts as far
  // as its largest callee leaves something. {node, func}: weights, by node and by function.
  function weigh({tree: {count, parent, func, end}, base, current, scale, report: {functions}}) {
    const node = new Float64Array(count), ofFunction = new Float64Array(functions.count);
    const sums = new Float64Array(functions.count), inside = new Uint32Array(functions.count);
    const ticksOf = (i) => base.total[i] * scale + current.total[i];

    for (let i = 1; i < count; i++)
      node[parent[i]] = Math.max(node[parent[i]], ticksOf(i));
    for (let i = 1; i < count; i++) {
      const ticks = ticksOf(i), left = Math.max(ticks - node[i], 0), f = func[i];

      node[i] = ticks > 0 ? left / ticks : 0;
      if (i < inside[f])
        continue;
      inside[f] = end[i];
      ofFunction[f] += left;
      sums[f] += ticks;
    }
    return {node, func: ofFunction.map((left, f) => (sums[f] > 0 ? left / sums[f] : 0))};
  }

  // Returns contrast with {whole, isFound: 1 for each thing that differs for sure}. whole: the kind
  // of its totals where kind is self times: a self time where there was none is no new thing. The
  // root is no thing. Things that take more than the floor of either side are tested among
  // themselves, and so are the rest. weights: of findings, by thing; null: all alike. ticks: of both
  // sides, all.
  function measureKind(contrast, whole, weights, ticks) {
    const {kind: {tested, base, current}} = contrast;
    const isFound = contrast.isFound = new Uint8Array(whole.base.length);
    const families = [0, 1].map(() => ({things: [], chances: [], weights: [], all: 0, count: 0}));

    for (const thing of tested) {
      if (!thing)
        continue;
      const isLarge = base[thing] > FLOOR * ticks[0] || current[thing] > FLOOR * ticks[1];
      const family = families[Number(isLarge)], weight = weights ? weights[thing] : 1;
      contrast.choose(thing);
      family.all += weight;
      family.count++;
      if (contrast.distance() < NEAR)
        continue;
      family.things.push(thing);
      family.chances.push(contrast.chance());
      family.weights.push(weight);
    }
    const both = families.filter(({count}) => count).length; // the promise is of both together
    for (const {things, chances, weights: own, all} of families) {
      const most = largestFound(chances, own, all * both);
      things.forEach((thing, k) => {
        isFound[thing] = chances[k] <= most;
      });
    }
    contrast.whole = whole;
    return contrast;
  }

  // Most classes are told by the ticks alone, as phi >= PHI_MIN: where the least error, of ticks
  // that are the same on both sides, is too large for an interval within a mark; and where so few
  // are missing that it is no wonder.
  function classesOf(contrast, marks) {
    const {kind: {base, current}, scale, whole, isFound} = contrast;
    const classes = new Uint8Array(base.length);
    const wide = 4 * (T_LEAST / Math.log(marks[0])) ** 2 - 1;

    for (let i = 1; i < classes.length; i++) {
      const b = base[i], c = current[i];
      if (!b && !c)
        continue; // UNCHANGED
      const isAbsent = isOneSided(b, c) && isOneSided(whole.base[i], whole.current[i]);
      classes[i] = isAbsent ? RARE : UNDETERMINED;
      if (isAbsent ? c / scale + b * scale <= EXPECTED_MIN : !isFound[i] && b + c < wide)
        continue;
      contrast.choose(i);
      classes[i] = isAbsent ? contrast.absence() : contrast.classify(isFound[i], marks);
    }
    return classes;
  }

  // Below a path that is surely new everything is new, however rare.
  function inheritAbsence({parent, count}, total, self) {
    for (let i = 1; i < count; i++) {
      const above = parent[i] && total[parent[i]];
      if (total[i] === RARE && above >= NEW)
        total[i] = above;
      if (self[i] === RARE && total[i] >= NEW)
        self[i] = total[i];
    }
  }

  // Where all of the time is a box's own there is one time, and one verdict on it: the total's.
  function uniteVerdicts({tree, current, base}, total, self) {
    for (let i = 0; i < tree.count; i++)
      if (current.self[i] === current.total[i] && base.self[i] === base.total[i])
        self[i] = total[i];
  }

  // What each function says of the centre, by its own ticks: {func, logRatio, error}.
  function centreVotes(dispersion, kind, scale) {
    const contrast = new Contrast(dispersion, kind, dispersion.laws.func, scale, NO_CENTRE);
    const votes = [];

    for (let func = 1; func < kind.base.length; func++) {
      contrast.choose(func);
      const {b, c} = contrast;
      if (b && c && b + c >= TICKS_MIN)
        votes.push({func, logRatio: Math.log(contrast.ratio()), error: contrast.error()});
    }
    return votes.sort((x, y) => x.logRatio - y.logRatio);
  }

  function medianVote(votes) {
    const half = votes.reduce((sum, {error}) => sum + 1 / error, 0) / 2;
    let below = 0, i = 0;

    for (; i + 1 < votes.length && below + 1 / votes[i].error < half; i++)
      below += 1 / votes[i].error;
    return votes[i].logRatio;
  }

  // Of the mean log ratio, weighted by precision.
  function meanVariance(dispersion, funcSelf, votes) {
    const precision = votes.reduce((sum, {error}) => sum + error ** -2, 0);
    const weights = new Float64Array(funcSelf.base.length);
    let sum = 0;

    [funcSelf.base, funcSelf.current].forEach((ticks, side) => {
      for (const {func, error} of votes)
        weights[func] = 1 / (error * error * precision * (ticks[func] + 0.5));
      sum += varianceOfSum(dispersion, side, weights);
    });
    return Math.max(sum, 1 / precision);
  }

  // {centre, error}: what most functions did is no change where the sides are made equal by time
  // or share: the median of their log ratios. The variance of a median is pi / 2 times that of the
  // mean, or less; a median that may be noise itself is no centre.
  function robustCentre(active, dispersion) {
    const kind = functionKind(dispersion, ns.functionTable(active), "self");
    const votes = centreVotes(dispersion, kind, active.scale);
    if (!votes.length)
      return NO_CENTRE;
    const median = medianVote(votes);
    const error = Math.sqrt(Math.PI / 2 * meanVariance(dispersion, kind, votes));
    return {centre: Math.abs(median) > CENTRE_ERRORS * error ? Math.exp(median) : 1, error};
  }

  // Of a differential page as it was written; of two ranges of a recording their own.
  function centreOf(active, dispersion) {
    const {diff} = active.report.meta;
    if (!active.state.baseRange)
      return {centre: diff?.centre ?? 1, error: diff?.centre_error ?? 0};
    return robustCentre(active, dispersion);
  }

  // Everything that does not depend on marks: worked out once, kept with the active data.
  function changes(active) {
    return active.changes ??= measureChanges(active);
  }

  function measureChanges(active) {
    const dispersion = measureDispersion(active), {laws, kinds: [node, nodeSelf]} = dispersion;
    const centre = centreOf(active, dispersion), weights = weigh(active);
    const ticks = [active.base.total[0], active.current.total[0]];
    const contrast = (kind, law) => new Contrast(dispersion, kind, law, active.scale, centre);
    const ofFunctions = (table, key) =>
      contrast(functionKind(dispersion, table, key), laws.func);

    return {
      root: new Contrast(dispersion, node, laws.node, active.scale, NO_CENTRE, true),
      nodes: measureKind(contrast(node, laws.node), node, weights.node, ticks),
      selfs: measureKind(contrast(nodeSelf, laws.node), node, null, ticks),
      functions: (table, key) => {
        const total = ofFunctions(table, "total");
        return measureKind(key === "self" ? ofFunctions(table, key) : total, total.kind,
          key === "self" ? null : weights.func, ticks);
      },
      centre: centre.centre};
  }

  // {ratio, low, high, chance} of the total of one node.
  function measures(active, node) {
    const {root, nodes} = changes(active), contrast = node ? nodes : root;

    contrast.choose(node);
    const {b, c} = contrast;
    if (!b && !c || !node && b && c && normalization(active) === "share") {
      const ratio = c ? 1 : NaN; // of shares the whole of both sides is the same by definition
      return {ratio, low: ratio, high: ratio, chance: NaN};
    }
    const ratio = contrast.ratio(), [low, high] = contrast.interval(ratio);
    return {ratio, low, high, chance: b + c < TICKS_MIN ? NaN : contrast.chance()};
  }

  function classOfRoot(active, marks) {
    const {root} = changes(active), {low, high, chance} = measures(active, 0);

    if (!(low < high)) // nothing is there, or it is the same by definition
      return UNCHANGED;
    return isOneSided(root.b, root.c) ? root.absence() : root.classify(chance <= Q_MAX, marks);
  }

  function marksOf({report}, marks) {
    return marks ?? report.meta.diff?.marks ?? MARKS;
  }

  // What the program found is taken as it stands where nothing has been chosen since.
  function isAsWritten(active, marks) {
    const {report, state} = active;
    return report.classes && !active.map && ns.isWhole(report, state) &&
      String(marks) === String(marksOf(active));
  }

  // How each box changed; active must have a base. marks: ratios > 1, rising; null: as written.
  //   total, self      Uint8Array by node: CLASSES of its total and its self time
  //   measures(node)   {ratio, low, high, chance} of its total: current over scaled base, its 95 %
  //                    interval, the chance to differ as much without a change (NaN: not tested)
  //   centre           what ratios are relative to; the root's is not
  // All but the classes are worked out when asked for.
  function classifyNodes(active, {marks = null} = {}) {
    const wanted = marksOf(active, marks);
    const out = {
      measures: (node) => measures(active, node),
      get centre() { return changes(active).centre; },
    };

    if (isAsWritten(active, wanted)) {
      out.total = active.report.classes.total;
      out.self = active.report.classes.self;
      return out;
    }
    out.total = classesOf(changes(active).nodes, wanted);
    out.total[0] = classOfRoot(active, wanted);
    out.self = classesOf(changes(active).selfs, wanted);
    inheritAbsence(active.tree, out.total, out.self);
    uniteVerdicts(active, out.total, out.self);
    return out;
  }

  // The class of each function's total, or of its self time; active: of the plain shape.
  function classifyFunctions(active, figures, {marks = null, measure = "total"} = {}) {
    return classesOf(changes(active).functions(figures, measure), marksOf(active, marks));
  }

  Object.assign(ns, {MARKS, largestFound, findReplicates, weigh, classify: classifyNodes,
    classifyFunctions});
})(globalThis.pyebpf ??= {});
