// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a change is worth: scatter of counts, intervals, chances, classes. The formulas are those of
// user/diff (dispersion.c, distribution.c, diff.c), so that a page that filters says what the
// program would say of the same samples; on all samples both say the same, which a test compares.
(function (ns) {
  "use strict";

  const ALPHA = 0.05; // of intervals
  const MISSED_MAX = 0.01; // chance below which what is on one side only is new or removed
  const Q_MAX = 0.01;
  const TICKS_MIN = 8; // of both sides together, to be tested
  const PHI_MIN = 1;
  const REPLICATES = 20; // of a run, up to twice as many less one
  const CENTRE_ERRORS = 4; // a centre nearer to 1 may be noise
  const DF_NORMAL = 1e7; // beyond, t and normal differ by less than rounding
  const VARIANCE_FLOOR = 1e-5; // of the median
  const MARKS = [1.10, 1.25, 1.5, 2.0];

  const UNCHANGED = 0, UNDETERMINED = 1, RARE = 2, SLOWER = 3, FASTER = 7, NEW = 11, REMOVED = 12;

  // --- distributions -------------------------------------------------------------------------

  // Lanczos' approximation, g = 7, n = 9 (Numerical Recipes' form): 15 digits.
  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7];

  function logGamma(x) {
    if (x < 0.5)
      return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
    const t = x + 6.5;
    let sum = LANCZOS[0];
    for (let i = 1; i < LANCZOS.length; i++)
      sum += LANCZOS[i] / (x - 1 + i);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  // x >= 0. Series of erf below 2, above it the continued fraction (NIST DLMF 7.6.2, 7.9.1).
  function erfc(x) {
    if (x < 2) {
      let term = x, sum = x;
      for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
        term *= 2 * x * x / (2 * n + 1);
        sum += term;
      }
      return 1 - 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
    }
    let f = 0;
    for (let n = 60; n > 0; n--)
      f = n / 2 / (x + f);
    return Math.exp(-x * x) / (x + f) / Math.sqrt(Math.PI);
  }

  // Chance that a standard normal variable is further from 0 than z.
  function normalTwoSided(z) {
    return erfc(Math.abs(z) / Math.SQRT2);
  }

  // Continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method.
  function betaFraction(a, b, x) {
    const least = Number.MIN_VALUE * 2 ** 52;
    const safe = (v) => (Math.abs(v) < least ? least : v);
    let c = 1, d = 1 / safe(1 - (a + b) * x / (a + 1)), f = d;

    for (let m = 1; m < 300; m++) {
      let change = 1;
      for (let odd = 0; odd < 2; odd++) {
        const n = a + 2 * m;
        const term = odd ? -(a + m) * (a + b + m) * x / (n * (n + 1))
          : m * (b - m) * x / ((n - 1) * n);
        d = 1 / safe(1 + term * d);
        c = safe(1 + term / c);
        change = c * d;
        f *= change;
      }
      if (Math.abs(change - 1) < Number.EPSILON)
        break;
    }
    return f;
  }

  // Regularized: I_x(a, b); y = 1 - x.
  function incompleteBeta(a, b, x, y) {
    if (x <= 0 || y <= 0)
      return x <= 0 ? 0 : 1;
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) +
      b * Math.log(y));
    if (x < (a + 1) / (a + b + 2))
      return front * betaFraction(a, b, x) / a;
    return 1 - front * betaFraction(b, a, y) / b;
  }

  // Chance that Student's t with df > 0 degrees of freedom is further from 0 than t.
  function studentTwoSided(t, df) {
    const whole = df + t * t;

    return df > DF_NORMAL ? normalTwoSided(t)
      : incompleteBeta(df / 2, 0.5, df / whole, t * t / whole);
  }

  // t > 0 that a chance of `chance` lies beyond, both ends together. It falls with t: halving.
  function studentBeyond(chance, df) {
    let low = 0, high = 1;

    while (studentTwoSided(high, df) > chance && high < 1e300)
      high *= 2;
    while (high - low > high * 2 * Number.EPSILON) {
      const middle = low + (high - low) / 2;
      if (middle <= low || middle >= high)
        break;
      if (studentTwoSided(middle, df) > chance)
        low = middle;
      else
        high = middle;
    }
    return high;
  }

  // x > 0. Recurrence up to 10, then the asymptotic series (NIST DLMF 5.11.2).
  function digamma(x) {
    let sum = 0;
    for (; x < 10; x++)
      sum -= 1 / x;
    const i = 1 / (x * x);
    return sum + Math.log(x) - 1 / (2 * x) -
      i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i * (1 / 240 - i / 132))));
  }

  function trigamma(x) {
    let sum = 0;
    for (; x < 10; x++)
      sum += 1 / (x * x);
    const i = 1 / (x * x);
    return sum + 1 / x + i / 2 +
      i / x * (1 / 6 - i * (1 / 30 - i * (1 / 42 - i * (1 / 30 - i * 5 / 66))));
  }

  function trigammaInverse(y) {
    let low = -40, high = 40; // exponents of e

    while (high - low > 1e-14 * (1 + Math.abs(low))) {
      const middle = (low + high) / 2;
      if (trigamma(Math.exp(middle)) > y)
        low = middle;
      else
        high = middle;
    }
    return Math.exp((low + high) / 2);
  }

  // The common variance {s0, d0} that values (Float64Array, reordered) scatter about: Smyth 2004,
  // section 6.2.
  function variancePrior(values, df) {
    const prior = {s0: 1, d0: Infinity};
    const count = values.length;
    if (!count)
      return prior;
    values.sort();
    const floor = values[count >> 1] * VARIANCE_FLOOR;
    if (!(floor > 0))
      return prior;
    const shift = Math.log(df / 2) - digamma(df / 2);
    let mean = 0, scatter = 0;
    for (let i = 0; i < count; i++) {
      values[i] = Math.log(Math.max(values[i], floor)) + shift;
      mean += values[i] / count;
    }
    for (const value of values)
      scatter += (value - mean) ** 2;
    const excess = count > 1 ? scatter / (count - 1) - trigamma(df / 2) : 0;
    prior.s0 = Math.exp(mean);
    if (excess > 0) {
      prior.d0 = 2 * trigammaInverse(excess);
      prior.s0 = Math.exp(mean + digamma(prior.d0 / 2) - Math.log(prior.d0 / 2));
    }
    return prior;
  }

  function moderated({s0, d0}, value, df) {
    return d0 === Infinity || !(df > 0) ? s0 : (d0 * s0 + df * value) / (d0 + df);
  }

  // Benjamini-Hochberg: chances become q, in place. Equal chances have one q: that of the last.
  function falseDiscoveryRates(p) {
    const sorted = Float64Array.from(p).sort(), count = p.length, q = new Float64Array(count);
    let least = 1;

    for (let i = count - 1; i >= 0; i--)
      q[i] = least = Math.min(least, sorted[i] * count / (i + 1));
    for (let i = 0; i < count; i++) {
      let low = 0, high = count - 1;

      while (low < high) {
        const middle = low + high + 1 >>> 1;

        if (sorted[middle] <= p[i])
          low = middle;
        else
          high = middle - 1;
      }
      p[i] = q[low];
    }
    return p;
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
  function groupBlocks(run, blocks) {
    const size = Math.max(Math.floor(blocks.length / REPLICATES), 1), groups = [];
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

  // {by, sides: for each side [{slots, exposure}...]}: exposures add up to 1. Runs where a side
  // has several, else the blocks of those that have times.
  function findReplicates(active) {
    const {report, state} = active, {meta} = report;
    const slots = ns.slotSides(report, state), ticks = slotTicks(report);
    const normalize = normalization(active);
    const runsOf = [0, 1].map((side) => meta.runs.map((_, r) => r)
      .filter((r) => blocksOf(report, slots, r, side).length));
    const hasRuns = !state.baseRange && runsOf.some((runs) => runs.length > 1);
    const hasBlocks = meta.runs.some((run) => run.block_ns && (run.blocks ?? meta.blocks) > 1);
    const by = hasRuns ? "runs" : hasBlocks ? "blocks" : "poisson";
    const sides = [0, 1].map((side) => {
      const list = [];
      for (const r of by === "poisson" ? [] : runsOf[side]) {
        const blocks = blocksOf(report, slots, r, side), run = meta.runs[r];
        for (const group of by === "runs" ? [blocks] : groupBlocks(run, blocks)) {
          const exposure = exposureOf(run, group, by === "runs", normalize, ticks, r * meta.blocks);
          if (exposure > 0)
            list.push({slots: group.map((b) => r * meta.blocks + b), exposure});
        }
      }
      const sum = list.reduce((all, {exposure}) => all + exposure, 0);
      return list.map(({slots: own, exposure}) => ({slots: own, exposure: exposure / sum}));
    });
    return {by, sides};
  }

  // --- dispersion ----------------------------------------------------------------------------

  // Things that are counted: base and current ticks of each, and how they scatter.
  function newKind(base, current) {
    return {base, current, sides: [base, current], phi: new Float64Array(base.length), prior: null};
  }

  // Ticks of each node, replicate by replicate: those of node i are start[i] .. start[i + 1] - 1 of
  // {replicate, ticks}. Replicates of the current side are numbered after the base's.
  function rowsByNode({report, map, state, tree}, sides) {
    const {rows, sites} = report, byLine = state.by === "line";
    const passes = ns.passingTags(report, state);
    const start = new Uint32Array(tree.count + 1);
    let many = 0;
    const replicateOf = sides.map((list) => {
      const of = [];
      for (const {slots} of list) {
        for (const slot of slots)
          of[slot] = many;
        many++;
      }
      return of;
    });
    const visit = (each) => {
      for (let row = 0; row < rows.count; row++) {
        if (!passes[rows.tag[row]])
          continue;
        const source = byLine ? rows.site[row] : sites.node[rows.site[row]];
        const node = map ? map[source] : source;
        for (let side = 0; node >= 0 && side < 2; side++) {
          const r = replicateOf[side][rows.slot[row]];
          if (r !== undefined)
            each(node, r, rows.ticks[row]);
        }
      }
    };

    visit((node) => {
      start[node + 1]++;
    });
    for (let i = 0; i < tree.count; i++)
      start[i + 1] += start[i];
    const next = start.slice(), all = start[tree.count];
    const replicate = new Uint32Array(all), ticks = new Uint32Array(all);
    visit((node, r, weight) => {
      replicate[next[node]] = r;
      ticks[next[node]++] = weight;
    });
    return {start, replicate, ticks};
  }

  function outermostNodes(tree, functionCount) {
    const is = new Uint8Array(tree.count), inside = new Uint32Array(functionCount);
    for (let i = 1; i < tree.count; i++) {
      if (i < inside[tree.func[i]])
        continue;
      is[i] = 1;
      inside[tree.func[i]] = tree.end[i];
    }
    return is;
  }

  // sum (x - m)^2 / m over the replicates of a side is the sum of these, less the side's ticks.
  function addSquare(phi, all, i, ticks, exposure) {
    phi[i] += ticks * ticks / (all[i] * exposure);
  }

  // By function and replicate.
  function addSquares({phi, sides}, many, ticks, sideOf, exposure) {
    for (let k = 0; k < ticks.length; k++) {
      const r = k % many;
      if (ticks[k])
        addSquare(phi, sides[sideOf[r]], (k - r) / many, ticks[k], exposure[r]);
    }
  }

  // One pass over the tree from its end, so that callees come before their callers: a row of sums
  // by replicate for each level that is open, and a bit for each that is not 0: most nodes have
  // samples in few.
  function addReplicates({tree, report}, kinds, sides, {start, replicate, ticks}) {
    const {depth, func, count} = tree, {node: {phi, sides: all}, nodeSelf, func: total,
      funcSelf} = kinds;
    const exposure = sides.flatMap((list) => list.map((r) => r.exposure)), many = exposure.length;
    const sideOf = sides.flatMap((list, side) => list.map(() => side));
    const isOutermost = outermostNodes(tree, report.functions.count);
    const levels = depth.reduce((a, b) => Math.max(a, b)) + 2, words = (many + 31) >> 5;
    const sums = new Float64Array(levels * many), used = new Uint32Array(levels * words);
    const own = new Float64Array(many);
    const self = new Float64Array(report.functions.count * many), totals = self.slice();

    for (let i = count - 1; i >= 0; i--) {
      const here = depth[i] * many, below = here + many, f = func[i] * many;
      const bits = depth[i] * words, first = start[i], last = start[i + 1];

      for (let k = first; k < last; k++)
        own[replicate[k]] += ticks[k];
      for (let k = first; k < last; k++) {
        const r = replicate[k], t = own[r];
        if (!t)
          continue;
        own[r] = 0;
        addSquare(nodeSelf.phi, nodeSelf.sides[sideOf[r]], i, t, exposure[r]);
        sums[below + r] += t;
        used[bits + words + (r >> 5)] |= 1 << (r & 31);
        if (i > 0) // the root is no function
          self[f + r] += t;
      }
      for (let word = 0; word < words; word++) {
        let left = used[bits + words + word];

        used[bits + words + word] = 0;
        used[bits + word] |= left;
        while (left) {
          const bit = 31 - Math.clz32(left), r = word * 32 + bit, t = sums[below + r];

          left &= ~(1 << bit);
          sums[below + r] = 0;
          sums[here + r] += t;
          addSquare(phi, all[sideOf[r]], i, t, exposure[r]);
          if (isOutermost[i])
            totals[f + r] += t;
        }
      }
    }
    addSquares(total, many, totals, sideOf, exposure);
    addSquares(funcSelf, many, self, sideOf, exposure);
  }

  function degrees(df, base, current) {
    return (base ? df[0] : 0) + (current ? df[1] : 0);
  }

  // The prior comes from things with ticks enough to tell, of as many degrees of freedom as there
  // are.
  function finishKind(kind, df) {
    let values = [], most = 0;

    for (let i = 0; i < kind.base.length; i++) {
      const base = kind.base[i], current = kind.current[i], own = degrees(df, base, current);
      const measured = (df[0] > 0 ? base : 0) + (df[1] > 0 ? current : 0);
      const phi = own > 0 ? Math.max(kind.phi[i] - measured, 0) / own : 0;
      kind.phi[i] = phi;
      if (base + current < TICKS_MIN || own < most || !(own > 0))
        continue;
      if (own > most)
        values = [];
      most = own;
      values.push(phi);
    }
    kind.prior = variancePrior(Float64Array.from(values), most);
  }

  // {by, df, kinds}: of all nodes and functions of the active data.
  function measureDispersion(active) {
    const {report, tree, current, base} = active;
    const table = ns.functionTable(active);
    const kinds = {
      node: newKind(base.total, current.total),
      nodeSelf: newKind(base.self, current.self),
      func: newKind(table.baseTotal, table.total),
      funcSelf: newKind(table.baseSelf, table.self),
    };
    const {by, sides: found} = findReplicates(active);
    const sides = found.map((list) => (list.length > 1 ? list : [])); // one tells nothing
    const df = sides.map((list) => Math.max(list.length - 1, 0));
    const entries = rowsByNode(active, sides);

    if (sides.some((list) => list.length))
      addReplicates(active, kinds, sides, entries);
    for (const kind of Object.values(kinds))
      finishKind(kind, df);
    return {by, df, kinds, sides, entries};
  }

  // Variance of the sum over one side of weights[function] times its self ticks, as replicates
  // have it: things that come and go together are seen to. 0 where nothing can be measured.
  function varianceOfSum({tree}, {sides, entries}, side, weights) {
    const {start, replicate, ticks} = entries, list = sides[side];
    const ticksOf = new Float64Array(sides[0].length + sides[1].length);
    let sum = 0, squares = 0, products = 0, exposures = 0;

    if (!list.length)
      return 0;
    for (let i = 1; i < tree.count; i++)
      for (let k = start[i]; k < start[i + 1]; k++)
        ticksOf[replicate[k]] += ticks[k] * weights[tree.func[i]];
    list.forEach(({exposure}, r) => {
      const own = ticksOf[side * sides[0].length + r];
      sum += own;
      squares += own * own;
      products += own * exposure;
      exposures += exposure * exposure;
    });
    squares += sum * sum * exposures - 2 * sum * products; // sum (x - exposure * sum)^2
    return Math.max(squares, 0) * list.length / (list.length - 1);
  }

  // --- one thing -----------------------------------------------------------------------------

  // How base and current ticks of one thing compare.
  class Contrast {
    constructor({by, df}, kind, scale, {centre, error} = {centre: 1, error: 0}) {
      this.kind = kind;
      this.by = by;
      this.df = df;
      this.scale = scale;
      this.unit = scale * centre;
      this.centreError = error;
      this.dfOf = [0, 1, 2, 3].map((s) => degrees(df, s & 1, s & 2) + kind.prior.d0);
      this.tOf = this.dfOf.map((d) => studentBeyond(ALPHA, d));
    }

    choose(i) {
      const b = this.b = this.kind.base[i], c = this.c = this.kind.current[i];
      const sides = (b ? 1 : 0) | (c ? 2 : 0);
      this.degrees = this.dfOf[sides];
      this.t = this.tOf[sides];
      this.phi = this.by === "poisson" ? PHI_MIN : Math.max(PHI_MIN,
        moderated(this.kind.prior, this.kind.phi[i], degrees(this.df, b, c)));
    }

    ratio() {
      return this.b || this.c ? (this.c + 0.5) / ((this.b + 0.5) * this.unit) : NaN;
    }

    error() {
      return Math.sqrt(this.phi * (1 / (this.c + 0.5) + 1 / (this.b + 0.5)) +
        this.centreError ** 2);
    }

    // Where a side has no ticks: the most it may have had, and the least of the other.
    boundedShare(ticks) {
      const least = ticks - this.t * Math.sqrt(this.phi * ticks);
      return least > 0 ? least / (-Math.log(ALPHA / 2) * this.phi) : 0;
    }

    // [low, high] of ratio: 95 %.
    interval(ratio) {
      const {b, c, unit} = this;
      if (!b && !c)
        return [NaN, NaN];
      if (!b)
        return [Math.min(this.boundedShare(c) / unit, ratio), Infinity];
      if (!c)
        return [0, Math.max(1 / (this.boundedShare(b) * unit), ratio)];
      const margin = Math.exp(this.t * this.error());
      return [ratio / margin, ratio * margin];
    }

    // That counts differ as much without a change.
    chance() {
      const {b, c, unit} = this;
      const variance = this.phi * (c + unit * unit * b) + (unit * b * this.centreError) ** 2;
      return variance > 0 ? studentTwoSided((c - unit * b) / Math.sqrt(variance), this.degrees) : 1;
    }

    // That the side without ticks has none only by accident.
    missed() {
      const {b, c, scale} = this;
      return b && c ? 1 : Math.exp(-(c / scale + b * scale) / this.phi);
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

  function classify({ratio, low, high, q}, marks) {
    if (Number.isNaN(ratio))
      return UNCHANGED;
    const found = q <= Q_MAX ? marked(ratio, marks) : UNDETERMINED;
    return found <= RARE && low > 1 / marks[0] && high < marks[0] ? UNCHANGED : found;
  }

  const BY_MARKS = 255; // no class of its own: the marks decide

  // {ratio, low, high, q, fixed}: an item a thing; fixed: its class where it is on one side only,
  // else BY_MARKS. whole: the kind of its totals where kind is self times: a self time where there
  // was none is no new thing. Things before `first` are not tested.
  function measureKind(dispersion, kind, whole, first, scale, centre) {
    const count = kind.base.length;
    const out = {ratio: new Float32Array(count), low: new Float32Array(count),
      high: new Float32Array(count), q: new Float32Array(count).fill(NaN),
      fixed: new Uint8Array(count).fill(BY_MARKS).fill(UNCHANGED, 0, first)};
    const contrast = new Contrast(dispersion, kind, scale, centre);
    const things = new Uint32Array(count), chances = new Float64Array(count);
    let tested = 0;

    for (let i = first; i < count; i++) {
      contrast.choose(i);
      const {b, c} = contrast, ratio = contrast.ratio();
      out.ratio[i] = ratio;
      [out.low[i], out.high[i]] = contrast.interval(ratio);
      if (isOneSided(b, c) && isOneSided(whole.base[i], whole.current[i]))
        out.fixed[i] = absence(contrast);
      if (b + c < TICKS_MIN)
        continue;
      things[tested] = i;
      chances[tested++] = contrast.chance();
    }
    falseDiscoveryRates(chances.subarray(0, tested)).forEach((q, k) => {
      out.q[things[k]] = q;
    });
    return out;
  }

  function absence(contrast) {
    return contrast.missed() >= MISSED_MAX ? RARE : contrast.c ? NEW : REMOVED;
  }

  function classesOf({ratio, low, high, q, fixed}, marks) {
    return fixed.map((own, i) => (own !== BY_MARKS ? own
      : classify({ratio: ratio[i], low: low[i], high: high[i], q: q[i]}, marks)));
  }

  function isAbsent({base, current}, node) {
    return !base.total[node] || !current.total[node];
  }

  // Below a path that is surely new everything is new, however rare.
  function inheritAbsence(active, total, self) {
    const {tree} = active;

    for (let i = 1; i < tree.count; i++) {
      const p = tree.parent[i];
      if (total[i] === RARE && p > 0 && isAbsent(active, p))
        total[i] = total[p];
      if (self[i] === RARE && total[i] > RARE && isAbsent(active, i))
        self[i] = total[i];
    }
  }

  // What each function says of the centre, by its own ticks: {func, logRatio, error}.
  function centreVotes(dispersion, scale) {
    const kind = dispersion.kinds.funcSelf, contrast = new Contrast(dispersion, kind, scale);
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
  function meanVariance(active, dispersion, votes) {
    const {funcSelf} = dispersion.kinds;
    const precision = votes.reduce((sum, {error}) => sum + error ** -2, 0);
    const weights = new Float64Array(funcSelf.base.length);
    let sum = 0;

    [funcSelf.base, funcSelf.current].forEach((ticks, side) => {
      for (const {func, error} of votes)
        weights[func] = 1 / (error * error * precision * (ticks[func] + 0.5));
      sum += varianceOfSum(active, dispersion, side, weights);
    });
    return Math.max(sum, 1 / precision);
  }

  // {centre, error}: what most functions did is no change where the sides are made equal by time
  // or share: the median of their log ratios. The variance of a median is pi / 2 times that of the
  // mean, or less; a median that may be noise itself is no centre.
  function robustCentre(active, dispersion) {
    const votes = centreVotes(dispersion, active.scale);
    if (!votes.length)
      return {centre: 1, error: 0};
    const median = medianVote(votes);
    const error = Math.sqrt(Math.PI / 2 * meanVariance(active, dispersion, votes));
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
    const {scale} = active, dispersion = measureDispersion(active), {kinds} = dispersion;
    const centre = centreOf(active, dispersion);
    const measure = (kind, whole) => measureKind(dispersion, kind, whole, 1, scale, centre);
    const nodes = measure(kinds.node, kinds.node);
    const total = measureTotal(active, dispersion);

    for (const key of Object.keys(total))
      nodes[key][0] = total[key];
    return {nodes, selfs: measure(kinds.nodeSelf, kinds.node),
      functions: measure(kinds.func, kinds.func), functionSelfs: measure(kinds.funcSelf, kinds.func),
      centre: centre.centre, by: dispersion.by};
  }

  // The whole of both sides, never relative to the centre.
  function measureTotal(active, dispersion) {
    const contrast = new Contrast(dispersion, dispersion.kinds.node, active.scale);
    contrast.choose(0);
    const {b, c} = contrast, ratio = contrast.ratio(), [low, high] = contrast.interval(ratio);

    if (normalization(active) === "share" && b && c)
      return {ratio: 1, low: 1, high: 1, q: NaN, fixed: BY_MARKS}; // by definition
    return {ratio, low, high, q: b + c >= TICKS_MIN ? contrast.chance() : NaN,
      fixed: isOneSided(b, c) ? absence(contrast) : BY_MARKS};
  }

  function isSame(a, b) {
    return a.length === b.length && a.every((v, i) => v === b[i]);
  }

  // What the program found is taken as it stands where nothing has been chosen since.
  function isAsWritten(active, marks) {
    const {report, state} = active;
    return report.classes && !active.map && ns.isWhole(report, state) &&
      isSame(marks, report.meta.diff?.marks ?? MARKS);
  }

  // How each box changed; active must have a base. marks: ratios > 1, rising; null: as written.
  //   total, self           Uint8Array by node: CLASSES of its total and its self time
  //   ratio, low, high, q   of the totals: current over scaled base, its 95 % interval, the share
  //                         of false findings among all as sure; worked out when first asked for
  //   centre                what ratios are relative to; the root's is not
  //   by                    what the scatter was measured by: "runs", "blocks"; "poisson": nothing,
  //                         certainty is overstated
  function classifyNodes(active, {marks = null} = {}) {
    const written = active.report.meta.diff?.marks ?? MARKS, wanted = marks ?? written;
    const out = {
      get ratio() { return changes(active).nodes.ratio; },
      get low() { return changes(active).nodes.low; },
      get high() { return changes(active).nodes.high; },
      get q() { return changes(active).nodes.q; },
      get centre() { return changes(active).centre; },
      get by() { return changes(active).by; },
    };

    if (isAsWritten(active, wanted)) {
      out.total = active.report.classes.total;
      out.self = active.report.classes.self;
      return out;
    }
    out.total = classesOf(changes(active).nodes, wanted);
    out.self = classesOf(changes(active).selfs, wanted);
    inheritAbsence(active, out.total, out.self);
    return out;
  }

  // The class of each function's total, or of its self time; active: of the plain shape.
  function classifyFunctions(active, _figures, {marks = null, measure = "total"} = {}) {
    const wanted = marks ?? active.report.meta.diff?.marks ?? MARKS;
    const {functions, functionSelfs} = changes(active);

    return classesOf(measure === "self" ? functionSelfs : functions, wanted);
  }

  Object.assign(ns, {MARKS, erfc, normalTwoSided, studentTwoSided, studentBeyond, digamma, trigamma,
    trigammaInverse, variancePrior, falseDiscoveryRates, robustCentre, findReplicates, changes,
    classify: classifyNodes, classifyFunctions});
})(globalThis.pyebpf ??= {});
