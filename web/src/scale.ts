// Ticks of axes: round numbers and round times, few enough to read.

const STEPS_MS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3,
  30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 172800e3,
  604800e3,
];

// The step between ticks such that at most `most` of them fit.
export function timeStep(widthMs: number, most: number): number {
  return STEPS_MS.find((step) => widthMs / step <= most) ?? Math.ceil(widthMs / most / 604800e3) * 604800e3;
}

// Round local times in [from, to]; hours and days count from local midnight. `plain`: times since a
// start.
export function timeTicks(from: number, to: number, most: number, plain = false): { step: number; ticks: number[] } {
  const step = timeStep(to - from, most);
  const shift = step >= 3600e3 && !plain ? new Date(from).getTimezoneOffset() * 60e3 : 0;
  const ticks: number[] = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to; t += step) ticks.push(t);
  return { step, ticks };
}

// A round range that contains [low, high], and its ticks. Bytes use powers of two. A constant value
// gets a range around it; a range without negative values starts at 0 unless that would flatten it.
export function valueScale(low: number, high: number, most: number, binary = false): { low: number; high: number; ticks: number[] } {
  if (!(low <= high)) return { low: 0, high: 1, ticks: [0, 1] };
  if (low >= 0 && low <= high * 0.6) low = 0;
  else if (high <= 0 && high >= low * 0.6) high = 0;
  if (high - low <= Math.max(Math.abs(high), Math.abs(low)) * 1e-9) {
    const around = Math.abs(high) * 0.05 || 1;
    low = low === 0 ? 0 : low - around;
    high += around;
  }
  const raw = (high - low) / most;
  const step = binary && raw >= 1 ? 2 ** Math.ceil(Math.log2(raw)) : roundStep(raw);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const ticks: number[] = [];
  for (let i = first; i <= last; i++) ticks.push(i * step);
  return { low: first * step, high: last * step, ticks };
}

function roundStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const rest = raw / power;
  return (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10) * power;
}
