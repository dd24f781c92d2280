// Fills the template as crates/lab does, into a folder that is removed afterwards.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PLACEHOLDER } from "../build.mjs";

/** The page with results in it; `<` never appears inside the data. */
export function filled(template, data) {
  const json = (typeof data === "string" ? data : JSON.stringify(data)).replaceAll("<", "\\u003c");
  return template.replace(PLACEHOLDER, () => json);
}

/** A folder of pages; `put` writes one and returns its address. */
export async function folder() {
  const path = await mkdtemp(join(tmpdir(), "clearlane-pages-"));
  const template = await readFile(new URL("../dist/report.html", import.meta.url), "utf8");
  const put = async (name, data) => {
    const file = join(path, `${name}.html`);
    await writeFile(file, filled(template, data));
    return pathToFileURL(file).href;
  };
  return { template, put, remove: () => rm(path, { recursive: true, force: true }) };
}
