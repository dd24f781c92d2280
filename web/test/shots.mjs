// Screenshots of every sample for the eye: `node test/shots.mjs FOLDER` after a build.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { large, SAMPLES } from "../sample/make.mjs";
import { launch, open } from "./chromium.mjs";
import { folder } from "./pages.mjs";

const out = process.argv[2] ?? "shots";
await mkdir(out, { recursive: true });
const pages = await folder();
const browser = await launch();
for (const [name, make] of Object.entries({ ...SAMPLES, large })) {
  const url = await pages.put(name, make());
  for (const scheme of ["light", "dark"]) {
    for (const width of [1280, 700]) {
      const page = await open(browser, url, { width, scheme });
      await writeFile(join(out, `${name}-${scheme}-${width}.png`), await page.screenshot());
      await page.close();
    }
  }
}
await browser.close();
await pages.remove();
