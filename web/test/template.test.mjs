// The template as a file, without a browser.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
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
