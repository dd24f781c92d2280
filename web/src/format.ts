/** Numbers as text: one way to write each kind of quantity on the whole page. */

const THIN = "\u202f";

/** A number with a fixed count of decimals, a true minus sign and groups of three digits. */
export function fixed(value: number, decimals: number): string {
  const [whole = "", fraction] = Math.abs(value).toFixed(decimals).split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN) : whole;
  const sign = value < 0 && Number(value.toFixed(decimals)) !== 0 ? "\u2212" : "";
  return sign + grouped + (fraction ? `.${fraction}` : "");
}

/** Decimals that give the largest of the values four significant digits, three below 1. */
export function decimalsFor(values: number[]): number {
  const largest = Math.max(0, ...values.map(Math.abs));
  if (largest >= 1000 || largest === 0 || values.every(Number.isInteger)) return 0;
  return Math.min(6, 3 - Math.max(0, Math.floor(Math.log10(largest))));
}

/** A share 0..1 in per cent; a share that is not zero never reads as 0. */
export function percent(share: number, decimals = 0): string {
  const least = 0.5 * 10 ** -decimals;
  const value = share * 100;
  if (value > 0 && value < least) return `<${THIN}${(10 ** -decimals).toFixed(decimals)}${THIN}%`;
  return `${fixed(value, decimals)}${THIN}%`;
}

/** A rate in Gb/s with three significant digits. */
export function rate(gbps: number): string {
  const decimals = gbps >= 100 || gbps === 0 ? 0 : gbps >= 10 ? 1 : 2;
  return `${fixed(gbps, decimals)}${THIN}Gb/s`;
}

/** "1 link", "3 links". */
export function count(number: number, noun: string): string {
  const plural = /(s|ch|x)$/.test(noun) ? `${noun}es` : `${noun}s`;
  return `${fixed(number, 0)} ${number === 1 ? noun : plural}`;
}

/** Bytes in KiB or MiB with three significant digits. */
export function bytes(number: number): string {
  const [value, unit] =
    number >= 1 << 20 ? [number / (1 << 20), "MiB"] : [number / 1024, "KiB"];
  const decimals = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  return `${fixed(value, decimals)}${THIN}${unit}`;
}

/** How many times slower: "2.4×"; "starved" where nothing arrives. */
export function times(slowdown: number): string {
  if (!Number.isFinite(slowdown)) return "starved";
  return `${fixed(slowdown, slowdown >= 100 ? 0 : slowdown >= 10 ? 1 : 2)}×`;
}
