// The template as a file, without a browser.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { test } from "node:test";
import { PLACEHOLDER, TEMPLATE_BYTES_MAX, template } from "../build.mjs";
import { SAMPLES, text } from "../sample/make.mjs";

const file = await readFile(new URL("../dist/report.html", import.meta.url), "utf8");

test("the data placeholder is there once, as the text of its script element", () => {
  const element = `<script type="application/json" id="data">${PLACEHOLDER}</script>`;
  assert.equal(file.split(PLACEHOLDER).length, 2);
  assert.ok(file.includes(element));
});

test("the template is small and built the same way twice", async () => {
  assert.ok(Buffer.byteLength(file) <= TEMPLATE_BYTES_MAX);
  assert.equal(await template(), file);
});

test("nothing in the template points outside", () => {
  const addresses = file.match(/\b(?:https?|wss?|ftp):\/\/[^\s"'`)]+/g) ?? [];
  assert.deepEqual([...new Set(addresses)], ["http://www.w3.org/2000/svg"]);
  assert.doesNotMatch(file, /<(?:link|img|iframe|object|embed)\b/);
  assert.doesNotMatch(file, /\burl\(|@import|\bimport\(|\bfetch\(|XMLHttpRequest|sendBeacon/);
});

for (const [name, make] of Object.entries(SAMPLES)) {
  test(`sample/${name}.json is what sample/make.mjs makes`, async () => {
    const kept = await readFile(new URL(`../sample/${name}.json`, import.meta.url), "utf8");
    assert.equal(kept, text(make()), "run `npm run sample`");
  });
}

test("sources keep to 100 columns and 400 lines", async () => {
  for (const folder of ["../src/", "../sample/", "../test/"]) {
    const names = await readdir(new URL(folder, import.meta.url));
    for (const name of names.filter((name) => !name.endsWith(".json"))) {
      const source = await readFile(new URL(folder + name, import.meta.url), "utf8");
      const lines = source.split("\n");
      assert.ok(lines.length <= 400, `${name} has ${lines.length} lines`);
      const long = lines.findIndex((line) => [...line].length > 100);
      assert.equal(long, -1, `${name}:${long + 1} is longer than 100 columns`);
    }
  }
});
