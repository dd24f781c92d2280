// What tests of the page share: a browser, a folder of pages, reading and pointing.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { launch, open } from "./chromium.mjs";
import { folder } from "./pages.mjs";

let browser;
let pages;

/** Starts the browser before the tests of a file and ends it after them. */
export function useBrowser() {
  before(async () => {
    pages = await folder();
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    await pages?.remove();
  });
}

/** Opens a page for a test, and checks at its end that the page had no problem. */
export async function withPage(data, options, body) {
  const page = await open(browser, await pages.put("page", data), options);
  try {
    await body(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.close();
  }
}

/** Waits until the page has drawn what it was asked for. */
export const settle = (page) => page.run("new Promise((r) => setTimeout(r, 60))");

/** Text of the first element. */
export const textOf = (page, selector) =>
  page.run(`(() => {
    const element = document.querySelector("${selector}");
    return element.innerText ?? element.textContent;
  })()`);

/** Texts of all elements. */
export const textsOf = (page, selector) =>
  page.run(`[...document.querySelectorAll("${selector}")].map((e) => e.innerText.trim())`);

/** Texts of all elements of a drawing. */
export const textsOfSvg = (page, selector) =>
  page.run(`[...document.querySelectorAll("${selector}")].map((e) => e.textContent)`);

/** Presses an element. */
export const press = (page, selector) => page.run(`document.querySelector("${selector}").click()`);
