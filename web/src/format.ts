// Numbers and times for people: three significant digits, a unit, local time.

export const MISSING = '–';

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const SMALL = ['', 'm', 'µ', 'n'];

// Three significant digits, and `more`, without an exponent, as 0.123, 1.23, 12.3, 123.
function digits(value: number, more: number): string {
  const size = Math.abs(value);
  const text = value.toFixed((size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2) + more);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function scaled(value: number, step: number, names: string[], unit: string, more = 0): string {
  let power = 0;
  // 999.6 would be rounded to 1000, so it becomes 1 of the next unit.
  while (Math.abs(value) >= step * 0.9995 && power + 1 < names.length) {
    value /= step;
    power++;
  }
  const name = names[power] + unit;
  return name ? `${digits(value, more)} ${name}` : digits(value, more);
}

function plain(value: number, unit: string, more = 0): string {
  const size = Math.abs(value);
  if (size >= 1000 * 0.9995) return size < 1e18 ? scaled(value, 1000, DECIMAL, unit, more) : exponent(value, unit);
  const divided = unit === 's' || unit === 'W' || unit === 'J'; // units with milli and micro
  if (size === 0 || size >= (divided ? 0.9995 : 0.01)) return unit ? `${digits(value, more)} ${unit}` : digits(value, more);
  if (!divided) return size >= 0.0001 ? `${Number(value.toPrecision(3 + more))}${unit ? ` ${unit}` : ''}` : exponent(value, unit);
  let power = 0;
  while (Math.abs(value) < 0.9995 && power + 1 < SMALL.length) {
    value *= 1000;
    power++;
  }
  return `${digits(value, more)} ${SMALL[power]}${unit}`;
}

function exponent(value: number, unit: string): string {
  return value.toExponential(2).replace('e+', 'e') + (unit ? ` ${unit}` : '');
}

// A duration: 350 µs, 12.3 ms, 4.5 s, 3 min 20 s, 2 h 05 min, 3 d 4 h.
export function duration(seconds: number, more = 0): string {
  const size = Math.abs(seconds);
  if (size < 59.95) return plain(seconds, 's', more);
  const sign = seconds < 0 ? '-' : '';
  const whole = Math.round(size);
  const pad = (n: number) => String(n).padStart(2, '0');
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  if (whole < 86400) return `${sign}${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
  return `${sign}${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const UNITS: Record<string, string> = {
  watts: 'W',
  joules: 'J',
  celsius: '°C',
  hertz: 'Hz',
  rpm: 'rpm',
};

// The unit of a counter's rate; processor seconds per second are a number of processors.
export function rateUnit(unit: string): string {
  if (unit === 'joules') return 'watts';
  if (unit === 'seconds') return 's/s';
  return unit ? `${unit}/s` : '/s';
}

// `more`: digits beyond the third.
export function value(v: number | null | undefined, unit: string, more = 0): string {
  if (v === null || v === undefined || Number.isNaN(v)) return MISSING;
  if (!Number.isFinite(v)) return v > 0 ? '∞' : '-∞';
  if (unit === 'bytes') return scaled(v, 1024, BINARY, 'B', more);
  if (unit === 'bytes/s') return scaled(v, 1024, BINARY, 'B/s', more);
  if (unit === 'megabytes') return scaled(v * 1e6, 1024, BINARY, 'B', more);
  if (unit === 'percent') return `${digits(v, more)} %`;
  if (unit === 'seconds') return duration(v, more);
  if (unit === 'celsius') return `${digits(v, more)} °C`;
  if (unit === '/s' || unit === 's/s') return Math.abs(v) >= 999.5 ? scaled(v, 1000, DECIMAL, unit, more) : `${plain(v, '', more)} ${unit}`;
  return plain(v, UNITS[unit] ?? unit, more);
}

// The labels of an axis: with as many digits as they need to differ.
export function ticks(values: number[], unit: string): string[] {
  const texts = (more: number) => values.map((v) => value(v, unit, more));
  const enough = [0, 1, 2, 3, 4, 5, 6].find((more) => new Set(texts(more)).size === values.length);
  return texts(enough ?? 0);
}

export function count(n: number): string {
  return n < 10000 ? String(Math.round(n)) : scaled(n, 1000, DECIMAL, '');
}

// "14:03:05", with the decimals of a second that a step of `stepMs` needs; with the date if `day`.
export function clock(ms: number, stepMs = 1000, day = false): string {
  const d = new Date(ms);
  const pad = (n: number, width = 2) => String(n).padStart(width, '0');
  let text = `${pad(d.getHours())}:${pad(d.getMinutes())}`;
  if (stepMs < 60000) text += `:${pad(d.getSeconds())}`;
  if (stepMs < 1000) text += `.${pad(d.getMilliseconds(), 3)}`;
  if (stepMs < 1) text += pad(Math.floor((ms - Math.floor(ms)) * 1000), 3);
  return day ? `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${text}` : text;
}

// A time since the start: "+3:05", "+1:02:03", "+2 d 04:00"; with the decimals that the step needs.
export function elapsed(ms: number, stepMs = 1000): string {
  const sign = ms < 0 ? '-' : '+';
  const decimals = stepMs >= 1000 ? 0 : stepMs >= 1 ? 3 : 6;
  const unit = 10 ** decimals;
  const size = Math.round((Math.abs(ms) / 1000) * unit) / unit;
  const pad = (n: number) => String(n).padStart(2, '0');
  const days = Math.floor(size / 86400);
  const hours = Math.floor((size % 86400) / 3600);
  const minutes = Math.floor((size % 3600) / 60);
  if (days) return `${sign}${days} d ${pad(hours)}:${pad(minutes)}`;
  const seconds = (size % 60).toFixed(decimals).padStart(decimals ? decimals + 3 : 2, '0');
  return `${sign}${hours ? `${hours}:${pad(minutes)}` : minutes}:${seconds}`;
}

export function dayOf(ms: number): string {
  const d = new Date(ms);
  return `${d.getFullYear()}-${String(d.getMonth() + 1).padStart(2, '0')}-${String(d.getDate()).padStart(2, '0')}`;
}
