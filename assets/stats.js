// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What a change is worth: scatter of counts, intervals, chances, classes. The formulas are those of
// user/diff (dispersion.c, distribution.c, diff.c), so that a page that filters says what the
// program would say of the same samples; on all samples both say the same, which a test compares.
(function (ns) {
  "use strict";

  const ALPHA = 0.05; // of intervals
  const EXPECTED_MIN = -Math.log(0.01); // ticks: where there are none the chance is 1 %
  const Q_MAX = 0.01;
  const NEAR = 2.57; // standard errors: what is nearer has a chance, and a q, above Q_MAX
  const TICKS_MIN = 8; // of both sides together, to be tested
  const PHI_MIN = 1;
  const REPLICATES = 20; // of a run, up to twice as many less one
  const CENTRE_ERRORS = 4; // a centre nearer to 1 may be noise
  const DF_NORMAL = 1e7; // beyond, t and normal differ by less than rounding
  const VARIANCE_FLOOR = 1e-5; // of the median
  const NO_CENTRE = {centre: 1, error: 0};
  const MARKS = [1.10, 1.25, 1.5, 2.0];

  const T_LEAST = 1.95; // of intervals, whatever their degrees of freedom
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

  // The k-th least of values, which are reordered about it (Hoare's FIND).
  function select(values, k) {
    for (let from = 0, to = values.length - 1; from < to;) {
      const pivot = values[k];
      let low = from, high = to;
      while (low <= high) {
        while (values[low] < pivot)
          low++;
        while (values[high] > pivot)
          high--;
        if (low <= high) {
          const value = values[low];
          values[low++] = values[high];
          values[high--] = value;
        }
      }
      if (high < k)
        from = low;
      if (low > k)
        to = high;
    }
    return values[k];
  }

  // The common variance {s0, d0} that values (Float64Array, overwritten) scatter about: Smyth 2004,
  // section 6.2.
  function variancePrior(values, df) {
    const prior = {s0: 1, d0: Infinity};
    const count = values.length;
    if (!count)
      return prior;
    const floor = select(values, count >> 1) * VARIANCE_FLOOR;
    if (!(floor > 0))
      return prior;
    const shift = Math.log(df / 2) - digamma(df / 2);
    let mean = 0, scatter = 0;
    for (let i = 0; i < count; i++) {
      values[i] = Math.log(Math.max(values[i], floor)) + shift;
      mean += values[i] / count;
    }
    for (let i = 0; i < count; i++)
      scatter += (values[i] - mean) ** 2;
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

  // Benjamini-Hochberg: the largest of some chances whose q is no more than Q_MAX, if any. All of
  // count that are no more than Q_MAX must be among them: no other can be.
  function largestFound(chances, count) {
    const sorted = Float64Array.from(chances).sort();
    let i = sorted.length;

    while (i > 0 && sorted[i - 1] * count / i > Q_MAX)
      i--;
    return sorted[i - 1];
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
    const slots = ns.slotSides(report, state), normalize = normalization(active);
    const ticks = normalize === "share" ? slotTicks(report) : null;
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

  // Things that are counted: base and current ticks of each, and how they scatter. The first `many`
  // of tested are those with ticks enough to tell. See finishKind().
  function newKind(base, current) {
    return {base, current, phi: new Float64Array(base.length),
      tested: new Uint32Array(base.length), many: 0};
  }

  // [slots, ticks, nodeOf]: rows in order of their nodes. nodeOf: row -> node of the tree, -1:
  // it is not shown. Those of the plain tree by function are in order as they stand.
  function rowsByNode({report, map, state, tree}) {
    const {rows: {count, site, tag, slot, ticks}, sites: {node}} = report;
    const passes = ns.passingTags(report, state), byLine = state.by === "line";
    const nodeOf = (row) => {
      const source = byLine ? site[row] : node[site[row]];
      return passes[tag[row]] ? map ? map[source] : source : -1;
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

  // Squares: sums of ticks^2 / exposure over the replicates of a side; less the side's ticks such a
  // sum is that of (x - m)^2 / m.
  function setPhi(kind, i, squares, df) {
    const b = kind.base[i], c = kind.current[i], own = degrees(df, b, c);
    const sum = (df[0] && b ? squares[0] / b - b : 0) + (df[1] && c ? squares[1] / c - c : 0);

    if (own > 0)
      kind.phi[i] = Math.max(sum, 0) / own;
    if (b + c >= TICKS_MIN)
      kind.tested[kind.many++] = i;
  }

  // By function, then side. sums: by function and replicate.
  function squaresOf(sums, sides, functions) {
    let k = 0;

    return Array.from({length: functions}, () => sides.map((list) =>
      list.reduce((sum, {exposure}) => sum + sums[k++] ** 2 / exposure, 0)));
  }

  // One pass over the tree from its end, so that callees come before their callers: a row of sums
  // by replicate for each level that is open, and a bit for each that is not 0: most nodes have
  // samples in few. Replicates of the current side are numbered after the base's. Returns {self,
  // total}, ticks by function and replicate.
  function addReplicates(active, node, nodeSelf, sides, df) {
    const {tree: {depth, func, count}, tree, report: {functions}} = active;
    const [isOutermost, levels] = outline(tree, functions.count);
    const weight = Float64Array.from(sides.flat(), ({exposure}) => 1 / exposure);
    const many = weight.length; // replicates
    const words = Math.ceil(Math.max(sides[0].length, sides[1].length) / 32); // of a side
    const sums = new Float64Array((levels + 1) * many), own = new Float64Array(many);
    const used = new Uint32Array((levels + 1) * words * 2);
    const self = new Float64Array(functions.count * many), total = self.slice();
    const addOwn = ownTicks(active, sides, words, own, used);
    const selfSquares = [0, 0], squares = [0, 0];

    for (let i = count - 1; i >= 0; i--) {
      const here = depth[i] * many, below = here + many, f = func[i] * many;

      addOwn(i, (depth[i] + 1) * words * 2);
      for (let side = 0; side < 2; side++) {
        let ofSelf = 0, of = 0;
        for (let word = 0; word < words; word++) {
          const at = (depth[i] * 2 + side) * words + word;
          const first = side * sides[0].length + word * 32;
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
      }
      setPhi(nodeSelf, i, selfSquares, df);
      setPhi(node, i, squares, df);
    }
    self.fill(0, 0, many); // the root is no function
    return {self, total};
  }

  function degrees(df, base, current) {
    return (base ? df[0] : 0) + (current ? df[1] : 0);
  }

  // The prior comes from what is tested, of as many degrees of freedom as there are.
  function finishKind(kind, df) {
    const {base, current, phi} = kind, tested = kind.tested = kind.tested.slice(0, kind.many);
    const values = new Float64Array(tested.length);
    let most = 0, many = 0;

    for (const i of tested) {
      const own = degrees(df, base[i], current[i]);
      if (own < most)
        continue;
      if (own > most)
        many = 0;
      most = own;
      values[many++] = phi[i];
    }
    kind.prior = variancePrior(values.subarray(0, many), most);
    return kind;
  }

  // {df, sides, kinds, self, squares}: kinds: [totals, self times] of all nodes of the active
  // data; self: ticks by function and replicate; squares: what functions scatter by.
  function measureDispersion(active) {
    const {report, current, base} = active, {sides: found} = findReplicates(active);
    const sides = found.map((list) => (list.length > 1 ? list : [])); // one tells nothing
    const df = sides.map((list) => Math.max(list.length - 1, 0));
    const node = newKind(base.total, current.total), nodeSelf = newKind(base.self, current.self);
    const {self, total} = addReplicates(active, node, nodeSelf, sides, df);
    const squares = (sums) => squaresOf(sums, sides, report.functions.count);

    return {df, sides, kinds: [finishKind(node, df), finishKind(nodeSelf, df)], self,
      squares: {self: squares(self), total: squares(total)}};
  }

  // key: "self" or "total" of each function; table: functionTable() of the active data.
  function functionKind({df, squares}, table, key) {
    const kind = newKind(key === "self" ? table.baseSelf : table.baseTotal, table[key]);

    for (let f = 0; f < kind.base.length; f++)
      setPhi(kind, f, squares[key][f], df);
    return finishKind(kind, df);
  }

  // Variance of the sum over one side of weights[function] times its self ticks, as replicates
  // have it: things that come and go together are seen to. 0 where nothing can be measured.
  function varianceOfSum({sides, self}, side, weights) {
    const list = sides[side], many = sides[0].length + sides[1].length;
    let sum = 0, squares = 0, products = 0, exposures = 0;

    if (!list.length)
      return 0;
    list.forEach(({exposure}, r) => {
      const at = side * sides[0].length + r;
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

  // How base and current ticks of one thing compare.
  class Contrast {
    constructor(df, kind, scale, {centre, error}) {
      this.kind = kind;
      this.df = df;
      this.scale = scale;
      this.unit = scale * centre;
      this.centreError = error;
      this.tOf = [0, 1, 2, 3].map((sides) =>
        studentBeyond(ALPHA, degrees(df, sides & 1, sides & 2) + kind.prior.d0));
    }

    choose(i) {
      const {base, current, phi, prior} = this.kind, b = this.b = base[i], c = this.c = current[i];
      const own = degrees(this.df, b, c);
      this.degrees = own + prior.d0;
      this.t = this.tOf[(b ? 1 : 0) | (c ? 2 : 0)];
      this.phi = Math.max(PHI_MIN, moderated(prior, phi[i], own));
    }

    ratio() {
      return (this.c + 0.5) / ((this.b + 0.5) * this.unit);
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

    // [low, high] of ratio: 95 %. One side has ticks, or both.
    interval(ratio) {
      const {b, c, unit} = this;
      if (!b)
        return [Math.min(this.boundedShare(c) / unit, ratio), Infinity];
      if (!c)
        return [0, Math.max(1 / (this.boundedShare(b) * unit), ratio)];
      const margin = Math.exp(this.t * this.error());
      return [ratio / margin, ratio * margin];
    }

    // In standard errors. There are ticks.
    distance() {
      const {b, c, unit} = this;
      const variance = this.phi * (c + unit * unit * b) + (unit * b * this.centreError) ** 2;
      return Math.abs(c - unit * b) / Math.sqrt(variance);
    }

    // That counts differ as much without a change.
    chance() {
      return studentTwoSided(this.distance(), this.degrees);
    }

    // True if the interval is. Most are wider by half, which is cheaper to tell.
    isWithin(mark) {
      if (!this.b || !this.c || this.t * this.error() >= Math.log(mark))
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
      const {b, c, scale} = this;
      return c / scale + b * scale <= EXPECTED_MIN * this.phi ? RARE : c ? NEW : REMOVED;
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

  // Returns contrast with {whole, isFound: 1 for each thing that differs for sure}. whole: the kind
  // of its totals where kind is self times: a self time where there was none is no new thing. The
  // root is no thing.
  function measureKind(contrast, whole) {
    const isFound = contrast.isFound = new Uint8Array(whole.base.length), {tested} = contrast.kind;
    const things = [], chances = [];

    for (const thing of tested) {
      contrast.choose(thing);
      if (!thing || contrast.distance() < NEAR)
        continue;
      things.push(thing);
      chances.push(contrast.chance());
    }
    const most = largestFound(chances, tested.length - tested.includes(0));
    things.forEach((thing, k) => {
      isFound[thing] = chances[k] <= most;
    });
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
  function centreVotes({df}, kind, scale) {
    const contrast = new Contrast(df, kind, scale, NO_CENTRE);
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
    const dispersion = measureDispersion(active), {df, squares} = dispersion;
    const [node, nodeSelf] = dispersion.kinds;
    const centre = centreOf(active, dispersion);
    const contrast = (kind, of = centre) => new Contrast(df, kind, active.scale, of);
    const functions = (table, key) => functionKind({df, squares}, table, key);

    return {root: contrast(node, NO_CENTRE), // never relative to the centre
      nodes: measureKind(contrast(node), node), selfs: measureKind(contrast(nodeSelf), node),
      functions: (table, key) => {
        const total = functions(table, "total");
        return measureKind(contrast(key === "self" ? functions(table, key) : total), total);
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

  Object.assign(ns, {MARKS, erfc, normalTwoSided, studentTwoSided, studentBeyond, digamma, trigamma,
    trigammaInverse, largestFound, findReplicates, classify: classifyNodes, classifyFunctions});
})(globalThis.pyebpf ??= {});
