// Bundles src/ into dist/report.html: one file, one data placeholder, no request to anywhere.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** What crates/lab replaces by the results. */
export const PLACEHOLDER = "__CLEARLANE_DATA__";
/** Largest template that is accepted, bytes. */
export const TEMPLATE_BYTES_MAX = 300_000;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

async function bundle(entry) {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome111", "firefox115", "safari16"],
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
  return result.outputFiles[0].text.trim();
}

const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The template as text. */
export async function template() {
  const script = (await bundle("src/main.ts")).replaceAll("</script", "<\\/script");
  const style = await bundle("src/style.css");
  const license = await readFile(here("node_modules/uplot/LICENSE"), "utf8");
  const page = await readFile(here("src/page.html"), "utf8");
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}`;
  const parts = {
    POLICY: policy,
    LICENSE: `Line charts: uPlot.\n${license.trim()}`,
    STYLE: style,
    SCRIPT: script,
  };
  const text = page.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
  if (text.split(PLACEHOLDER).length !== 2) {
    throw new Error(`the template needs ${PLACEHOLDER} exactly once`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > TEMPLATE_BYTES_MAX) {
    throw new Error(`the template has ${bytes} bytes, more than ${TEMPLATE_BYTES_MAX}`);
  }
  return text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = await template();
  await mkdir(here("dist"), { recursive: true });
  await writeFile(here("dist/report.html"), text);
  console.log(`dist/report.html: ${Buffer.byteLength(text)} bytes`);
}
