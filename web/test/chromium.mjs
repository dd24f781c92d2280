// A headless Chromium driven over its debugging pipe, without any package in between.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--hide-scrollbars",
  "--no-first-run",
  "--disable-background-networking",
  "--remote-debugging-pipe",
];

/** Starts the browser; `close()` ends it and removes its profile. */
export async function launch(binary = process.env.CHROMIUM ?? "chromium") {
  const profile = await mkdtemp(join(tmpdir(), "clearlane-web-"));
  const stdio = ["ignore", "ignore", "ignore", "pipe", "pipe"];
  const child = spawn(binary, [...FLAGS, `--user-data-dir=${profile}`], { stdio });
  const waiting = new Map();
  const listeners = [];
  let [last, rest] = [0, ""];
  const fail = (why) => {
    for (const { reject } of waiting.values()) reject(new Error(why));
    waiting.clear();
  };
  child.on("error", (error) => fail(`cannot start ${binary}: ${error.message}`));
  child.on("exit", (code) => fail(`the browser ended with code ${code}`));
  child.stdio[3].on("error", (error) => fail(`the browser's pipe broke: ${error.message}`));
  child.stdio[4].setEncoding("utf8");
  child.stdio[4].on("data", (chunk) => {
    const messages = (rest + chunk).split("\0");
    rest = messages.pop() ?? "";
    for (const message of messages.map((text) => JSON.parse(text))) {
      if (message.id === undefined) {
        for (const listener of listeners) listener(message);
        continue;
      }
      const { resolve, reject } = waiting.get(message.id) ?? {};
      waiting.delete(message.id);
      if (message.error) reject?.(new Error(message.error.message));
      else resolve?.(message.result);
    }
  });
  const send = (method, params = {}, sessionId = undefined) => {
    last += 1;
    const id = last;
    child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
  const close = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await send("Browser.close").catch(() => child.kill());
    await ended;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { send, listeners, close };
}

/** Opens a page in a window of a size and colour scheme and waits until it says it is built. */
export async function open(browser, url, options = {}) {
  const { width = 1280, height = 900, scheme = "light", script = true } = options;
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const attached = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params) => browser.send(method, params, attached.sessionId);
  const page = { requests: [], problems: [] };
  browser.listeners.push(({ sessionId, method, params }) => {
    if (sessionId !== attached.sessionId) return;
    if (method === "Network.requestWillBeSent") page.requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") page.problems.push(params.exceptionDetails);
    if (method === "Log.entryAdded") page.problems.push(params.entry);
  });
  for (const domain of ["Network", "Runtime", "Log", "Page"]) await send(`${domain}.enable`);
  const metrics = { width, height, deviceScaleFactor: 1, mobile: false };
  await send("Emulation.setDeviceMetricsOverride", metrics);
  const features = [{ name: "prefers-color-scheme", value: scheme }];
  await send("Emulation.setEmulatedMedia", { features });
  await send("Emulation.setScriptExecutionDisabled", { value: !script });
  await send("Page.navigate", { url });
  page.run = async (expression) => {
    const asked = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await send("Runtime.evaluate", asked);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? "failed");
    return result.value;
  };
  page.key = async (key) => {
    await send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key });
    await send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key });
  };
  page.move = (x, y) => send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
  page.screenshot = async (selector = "html") => {
    const box = await page.run(`(() => {
      const { x, y, width, height } = document.querySelector("${selector}").getBoundingClientRect();
      return { x: x + scrollX, y: y + scrollY, width, height };
    })()`);
    const clip = { ...box, scale: 1 };
    const shot = await send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
    return Buffer.from(shot.data, "base64");
  };
  page.close = () => browser.send("Target.closeTarget", { targetId });
  if (!script) {
    await until(page, "document.readyState === 'complete' && location.protocol === 'file:'");
    return page;
  }
  await until(page, "document.documentElement?.dataset.ready !== undefined");
  // Two frames more, so that everything that waits for its size is drawn.
  await page.run("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))");
  return page;
}

async function until(page, condition) {
  const deadline = Date.now() + 20_000;
  while (!(await page.run(condition).catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`never came true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
