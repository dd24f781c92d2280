// The verdict: what is wrong, who suffers and what helps, on top of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { small } from "../sample/small.mjs";
import { textsOf, useBrowser, withPage } from "./page.mjs";

useBrowser();

test("a verdict stands on top in place of the finding", async () => {
  const data = small();
  data.verdict = {
    healthy: false,
    lines: [
      { label: "fault", text: "the cable leaf01[7]-spine02[1] runs at 1x QDR" },
      { label: "helps", text: "hot traffic on a lane of its own: they lose nothing" },
      { label: "next", text: "reseat or replace the cable" },
    ],
  };
  await withPage(data, {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".verdict dt"), ["fault", "helps", "next"]);
    assert.equal((await textsOf(page, ".verdict dd"))[1], data.verdict.lines[1].text);
    assert.deepEqual(await textsOf(page, ".verdict dt.bad"), ["fault"]);
    assert.deepEqual(await textsOf(page, "header .summary"), []);
  });
  await withPage(small(), {}, async (page) => {
    assert.deepEqual(await textsOf(page, ".verdict"), []);
    assert.deepEqual(await textsOf(page, "header .summary"), ["Four hosts."]);
  });
});
