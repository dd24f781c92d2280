// Clicks through a report and prints what it shows, as JSON: `node test/read.mjs report.html`.
// tests/test_report.py holds it against the numbers of the run.
import { pathToFileURL } from "node:url";
import { launch, open } from "./chromium.mjs";

const [file] = process.argv.slice(2);
const browser = await launch();
const started = Date.now();
const page = await open(browser, pathToFileURL(file).href, { width: 1280 });
const openedMs = Date.now() - started;
const settle = (ms = 80) => page.run(`new Promise((r) => setTimeout(r, ${ms}))`);
const texts = (selector) =>
  page.run(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(
    (e) => e.innerText.replace(/\\s+/g, " ").trim())`);
const cells = (selector) =>
  page.run(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(
    (row) => [...row.cells].map((cell) => cell.innerText.replace(/\\s+/g, " ").trim()))`);
const press = (selector) => page.run(`document.querySelector(${JSON.stringify(selector)}).click()`);
const glow = () => page.run(`document.querySelectorAll(".glow > *").length`);
const at = async (frame) => {
  await page.run(`(() => {
    const slider = document.querySelector("#time");
    slider.value = ${frame};
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  })()`);
  await settle();
};

const shown = { opened_ms: openedMs, status: (await texts(".status"))[0] };
const table = async (place) => {
  return { head: await cells(`${place} thead tr`), rows: await cells(`${place} tbody tr`) };
};
const opened = async () => {
  const [title] = await texts(".inspector h3");
  return { title, said: await texts(".inspector .said") };
};
shown.headline = await table(".headline");
shown.trees = { whole: await texts(".trees"), lit: await glow() };

await at(0);
shown.first = { trees: await texts(".trees"), lit: await glow(), time: await texts("#time-text") };
await press("#speed-4");
await page.run(`document.querySelector("#time").focus()`);
await page.key(" ");
await settle(600);
shown.playing = { button: await texts("#play"), time: await texts("#time-text") };
await page.key(" ");
shown.paused = { button: await texts("#play"), lit: await glow() };
await press("#whole");

const beside = await page.run(`document.querySelector("#map-beside-1") !== null`);
if (beside) {
  const variants = await page.run(`document.querySelectorAll("[name=map-variant]").length`);
  await press(`#map-beside-${variants - 1}`);
  await settle();
  shown.beside = { titles: await texts(".map-title"), trees: await texts(".trees") };
  await press("#map-beside-none");
}

// The flows of the first variant that are not hot, all of them, with their numbers.
await page.run(`document.querySelector("#sufferers .more")?.click()`);
shown.sufferers = {
  note: (await texts("#sufferers .note"))[0],
  ...(await table("#sufferers")),
};
await page.run(`document.querySelector("#sufferers tbody button").click()`);
await settle();
shown.flow = await opened();
shown.flow.path = await texts(".inspector .path li");

await page.run(`document.querySelector("#worst button.link").click()`);
await settle();
shown.link = await opened();
await page.run(`document.querySelector(".inspector .more")?.click()`);
shown.link.flows = await cells(".inspector .flows tbody tr");
shown.link.charts = await page.run(`document.querySelectorAll(".inspector canvas").length`);
await page.run(`document.querySelector(".trees .link")?.click()`);
await settle();
shown.root = await opened();
shown.worst = await cells("#worst tbody tr");

await page.run(`document.querySelector("#curves .more")?.click()`);
shown.curves = { ...(await table("#curves")), keys: await texts("#curves .curve-keys li") };
shown.curves.charts = await page.run(`document.querySelectorAll("#curves canvas").length`);
shown.requests = page.requests;
shown.problems = page.problems;
await browser.close();
console.log(JSON.stringify(shown));
