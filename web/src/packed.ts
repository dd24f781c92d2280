/** Unpacks rows of numbers: base64 of deflated little-endian integers (RFC 1951). */
import { inflateSync } from "fflate";

function bytesOf(packed: string, place: string): Uint8Array {
  const text = atob(packed);
  const deflated = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  try {
    return inflateSync(deflated);
  } catch {
    throw new Error(`${place} is not deflated`);
  }
}

function checked(bytes: Uint8Array, size: number, count: number, place: string): DataView {
  if (bytes.length !== size * count) {
    throw new Error(`${place} has ${bytes.length / size} values, not ${count}`);
  }
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Numbers 0..255. */
export function unpackBytes(packed: string, count: number, place: string): Uint8Array {
  const bytes = bytesOf(packed, place);
  checked(bytes, 1, count, place);
  return bytes;
}

/** Numbers 0..65535. */
export function unpackWords(packed: string, count: number, place: string): Uint16Array {
  const view = checked(bytesOf(packed, place), 2, count, place);
  return Uint16Array.from({ length: count }, (_, i) => view.getUint16(2 * i, true));
}

/** Whole numbers; as many as there are. */
export function unpackWhole(packed: string, place: string): Uint32Array {
  const bytes = bytesOf(packed, place);
  const count = Math.floor(bytes.length / 4);
  const view = checked(bytes, 4, count, place);
  return Uint32Array.from({ length: count }, (_, i) => view.getUint32(4 * i, true));
}
