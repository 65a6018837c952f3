// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The packages that the browser's tests need, as package-lock.json pins them, fetched once:
// playwright-core is the last that runs on Debian 12's Node. By itself: fetches them.
"use strict";
const {execFileSync} = require("node:child_process");
const {createHash} = require("node:crypto");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const LISTS = ["package.json", "package-lock.json"];

// Their folder, which appears whole or not at all. Throws with what npm says.
function packageFolder() {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache");
  const lists = LISTS.map((name) => fs.readFileSync(path.join(__dirname, name)));
  const digest = createHash("sha256").update(Buffer.concat(lists)).digest("hex").slice(0, 16);
  const folder = path.join(cache, "pyebpf", `browser-${digest}`);

  if (!fs.existsSync(folder)) {
    fs.mkdirSync(path.dirname(folder), {recursive: true});
    const fresh = fs.mkdtempSync(`${folder}.new-`);

    try {
      LISTS.forEach((name, i) => fs.writeFileSync(path.join(fresh, name), lists[i]));
      execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        {cwd: fresh, stdio: ["ignore", "ignore", "inherit"], timeout: 180000});
      fs.renameSync(fresh, folder);
    } catch (error) {
      fs.rmSync(fresh, {recursive: true, force: true});
      if (!fs.existsSync(folder)) // else another was faster
        throw error;
    }
  }
  return path.join(folder, "node_modules");
}

module.exports = {packageFolder};

if (require.main === module)
  console.log(packageFolder());
