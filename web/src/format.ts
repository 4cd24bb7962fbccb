// Numbers and times for people: three significant digits, a unit, local time.

export const MISSING = '–';

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const SMALL = ['', 'm', 'µ', 'n'];

// Three significant digits without an exponent, as 0.123, 1.23, 12.3, 123.
function digits(value: number): string {
  const size = Math.abs(value);
  const text = size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function scaled(value: number, step: number, names: string[], unit: string): string {
  let power = 0;
  // 999.6 would be rounded to 1000, so it becomes 1 of the next unit.
  while (Math.abs(value) >= step * 0.9995 && power + 1 < names.length) {
    value /= step;
    power++;
  }
  const name = names[power] + unit;
  return name ? `${digits(value)} ${name}` : digits(value);
}

function plain(value: number, unit: string): string {
  const size = Math.abs(value);
  if (size >= 1000 * 0.9995) return size < 1e18 ? scaled(value, 1000, DECIMAL, unit) : exponent(value, unit);
  const divided = unit === 's' || unit === 'W' || unit === 'J'; // units with milli and micro
  if (size === 0 || size >= (divided ? 0.9995 : 0.01)) return unit ? `${digits(value)} ${unit}` : digits(value);
  if (!divided) return size >= 0.0001 ? `${Number(value.toPrecision(3))}${unit ? ` ${unit}` : ''}` : exponent(value, unit);
  let power = 0;
  while (Math.abs(value) < 0.9995 && power + 1 < SMALL.length) {
    value *= 1000;
    power++;
  }
  return `${digits(value)} ${SMALL[power]}${unit}`;
}

function exponent(value: number, unit: string): string {
  return value.toExponential(2).replace('e+', 'e') + (unit ? ` ${unit}` : '');
}

// A duration: 350 µs, 12.3 ms, 4.5 s, 3 min 20 s, 2 h 05 min, 3 d 4 h.
export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  if (size < 59.95) return plain(seconds, 's');
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

export function value(v: number | null | undefined, unit: string): string {
  if (v === null || v === undefined || Number.isNaN(v)) return MISSING;
  if (!Number.isFinite(v)) return v > 0 ? '∞' : '-∞';
  if (unit === 'bytes') return scaled(v, 1024, BINARY, 'B');
  if (unit === 'bytes/s') return scaled(v, 1024, BINARY, 'B/s');
  if (unit === 'megabytes') return scaled(v * 1e6, 1024, BINARY, 'B');
  if (unit === 'percent') return `${digits(v)} %`;
  if (unit === 'seconds') return duration(v);
  if (unit === 'celsius') return `${digits(v)} °C`;
  if (unit === '/s' || unit === 's/s') return Math.abs(v) >= 999.5 ? scaled(v, 1000, DECIMAL, unit) : `${plain(v, '')} ${unit}`;
  return plain(v, UNITS[unit] ?? unit);
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
