// Reads application/vnd.sonde.columns (docs/http.md, "In bulk"): series with their points, in
// columns.

export interface Column {
  query: number;
  metric: string;
  kind: 'gauge' | 'counter' | '';
  unit: string;
  tags: Record<string, string>;
  sourceSeries: number;
  t: Float64Array; // milliseconds since the epoch
  v: Float64Array; // NaN: no value
}

const MAGIC = 'sonde c2';
const KINDS = ['', 'gauge', 'counter'] as const;

export function readColumns(buffer: ArrayBuffer): Column[] {
  const view = new DataView(buffer);
  const utf8 = new TextDecoder();
  const text = (at: number, size: number) => utf8.decode(new Uint8Array(buffer, at, size));
  const u64 = (at: number) => Number(view.getBigUint64(at, true));
  if (buffer.byteLength < 16 || text(0, 8) !== MAGIC) throw new Error('the answer has an unknown format');
  const all: Column[] = [];
  let at = 8;
  let times = new Float64Array(0);
  for (;;) {
    if (at + 8 > buffer.byteLength) throw new Error('the answer was cut');
    const size = u64(at);
    at += 8;
    if (size === 0) break;
    const column = readDescription(new Uint8Array(buffer, at, size), utf8);
    at += Math.ceil(size / 8) * 8;
    const word = view.getBigUint64(at, true);
    const n = Number(word & 0x7fffffffffffffffn);
    at += 8;
    if (!(word >> 63n)) {
      times = new Float64Array(n);
      for (let i = 0; i < n; i++) times[i] = milliseconds(view.getBigInt64(at + 8 * i, true));
      at += 8 * n;
    }
    // All numbers begin at multiples of 8, and browsers run on little-endian processors only.
    const v = new Float64Array(buffer, at, n);
    at += 8 * n;
    all.push({ ...column, t: times, v });
  }
  return all;
}

// Nanoseconds to milliseconds: the whole part and the fraction separately, because a double has 53
// bits.
export function milliseconds(ns: bigint): number {
  return Number(ns / 1000000n) + Number(ns % 1000000n) / 1e6;
}

// The same for a number from JSON: its last digits are lost (a double has 53 bits), so it is
// rounded to a microsecond. Otherwise, an instant that is a multiple of a bucket could fall into
// the previous bucket.
export function millisecondsOfNumber(ns: number): number {
  return Math.round(ns / 1e3) / 1e3;
}

function readDescription(bytes: Uint8Array, utf8: TextDecoder): Omit<Column, 't' | 'v'> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('the answer was cut');
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  const text = () => {
    const size = varint();
    at += size;
    return utf8.decode(bytes.subarray(at - size, at));
  };
  const query = varint();
  const metric = text();
  const kind = KINDS[bytes[at++] ?? 0] ?? '';
  const unit = text();
  const tags: Record<string, string> = {};
  for (let n = varint(); n > 0; n--) {
    const key = text();
    tags[key] = text();
  }
  for (let n = varint(); n > 0; n--) text(); // aggregate tags
  return { query, metric, kind, unit, tags, sourceSeries: varint() };
}
