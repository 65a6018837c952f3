// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What comparisons need of statistics, and the law by which counts scatter. The formulas are those
// of user/diff/distribution.c and noise.c, but for those by which the program finds the law.
(function (ns) {
  "use strict";

  const DF_NORMAL = 1e7; // beyond, t and normal differ by less than rounding
  const STUDENT_STEPS = 256;
  const OUTSIDE_MIN = 5; // what one in five things reaches is no outlier
  const LEAST = 1e-6; // of information: never divided by less

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

  // x > 0. Recurrence up to 10, then the asymptotic series (NIST DLMF 5.11.2), differentiated.
  function trigamma(x) {
    let sum = 0;
    for (; x < 10; x++)
      sum += 1 / (x * x);
    const i = 1 / (x * x);
    return sum + 1 / x + i / 2 +
      i / x * (1 / 6 - i * (1 / 30 - i * (1 / 42 - i * (1 / 30 - i * 5 / 66))));
  }

  // Of the few degrees of freedom that there are.
  const trigammas = new Map();

  function trigammaOf(x) {
    let found = trigammas.get(x);

    if (found === undefined)
      trigammas.set(x, found = trigamma(x));
    return found;
  }

  // Chance that the ratio of two mean squares, of df over `below` degrees of freedom, is beyond f:
  // Wilson and Hilferty 1931.
  function fisherBeyond(f, df, below) {
    const root = Math.cbrt(f), own = 2 / (9 * df), other = 2 / (9 * below);
    const z = ((1 - other) * root - (1 - own)) / Math.sqrt(other * root * root + own);

    return z < 0 ? 1 - erfc(-z / Math.SQRT2) / 2 : erfc(z / Math.SQRT2) / 2;
  }

  // t that a chance of `chance` lies beyond, both ends together, for many degrees of freedom >= 1.
  class StudentTable {
    constructor(chance) {
      this.chance = chance;
      this.steps = new Float64Array(STUDENT_STEPS + 1);
    }

    step(i) {
      return this.steps[i] ||= studentBeyond(this.chance, i ? STUDENT_STEPS / i : Infinity);
    }

    get(df) {
      const at = STUDENT_STEPS / Math.max(df, 1), i = Math.floor(at), low = this.step(i);

      return at > i ? low * (this.step(i + 1) / low) ** (at - i) : low;
    }
  }

  // --- the law -------------------------------------------------------------------------------

  // How counts scatter: of mean m they have the variance phi m + tau2 m^2. numbers: as the program
  // found them, see user/diff/noise.h; without any nothing is known.
  class Noise {
    constructor(numbers = [1, 0, 0, 0, 0, 0, 0, 1]) {
      this.numbers = numbers;
      [this.phi, this.tau2] = numbers;
    }

    ratioAt(mean) {
      return this.phi + this.tau2 * mean;
    }

    // [variance over mean by the law and by the thing itself, of df degrees of freedom; those of
    // both]. The law counts for what is known of it at that mean, but for what the thing told.
    moderate(mean, ratio, df) {
      const [, tau2, ofPhi, ofBoth, ofTau2, phiVaries, tauVaries, alike] = this.numbers;
      const law = this.ratioAt(mean), share = tau2 * mean / law;
      const determinant = ofPhi * ofTau2 - ofBoth * ofBoth;
      const variance = (ofTau2 - 2 * mean * ofBoth + mean * mean * ofPhi) / (law * law);
      const all = determinant > 0 ? determinant / (Math.max(variance, LEAST) * alike) : 0;
      const own = df > 0 ? 1 / trigammaOf(df / 2) : 0;
      const off = 1 / Math.max(all - own, LEAST) + share * share * tauVaries +
        (1 - share) * (1 - share) * phiVaries;
      let known = (1 + Math.sqrt(1 + 2 * off)) / off;

      if (df > 0 && ratio > law)
        known *= Math.min(1, OUTSIDE_MIN * fisherBeyond(ratio / law, df, known));
      return [(known * law + df * ratio) / (known + df), Math.max(known + df, 1)];
    }
  }

  Object.assign(ns, {erfc, normalTwoSided, studentTwoSided, studentBeyond, trigamma, fisherBeyond,
    StudentTable, Noise});
})(globalThis.pyebpf ??= {});
