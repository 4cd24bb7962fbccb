// The view: range, filter, search, and whether it follows the clock. It is completely in the
// address after '#', so that a copied link shows the same.

export interface Range {
  from: number; // milliseconds since the epoch
  to: number;
}

export interface View {
  range: Range | null; // null: the last `last` seconds, or everything
  last: number; // seconds; 0: from the start
  filter: Record<string, string>; // tags that every series must have
  search: string;
  runs: string[]; // two compared jobs; or none
  heat: string; // the heat map's metric; '': the default
  heatSort: 'name' | 'mean' | 'last' | 'deviation';
  heatHidden: boolean; // only the title of the heat map is shown
  heatGroups: string[] | null; // the open groups of nodes; null: each node has a row
}

export const EMPTY: View = { range: null, last: 0, filter: {}, search: '', runs: [], heat: '', heatSort: 'name', heatHidden: false, heatGroups: null };
export const LASTS: [number, string][] = [
  [60, '1 min'],
  [300, '5 min'],
  [900, '15 min'],
  [3600, '1 h'],
  [21600, '6 h'],
  [86400, '24 h'],
  [0, 'everything'],
];
const SORTS = ['name', 'mean', 'last', 'deviation'] as const;

// "host=a,rank=3" ↔ tags. Parts without a key are left out.
export function parseFilter(text: string): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const part of text.split(',')) {
    const at = part.indexOf('=');
    const key = part.slice(0, at).trim();
    const value = part.slice(at + 1).trim();
    if (at > 0 && key && value) tags[key] = value;
  }
  return tags;
}

export function filterText(tags: Record<string, string>): string {
  return Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

export function toHash(view: View): string {
  const p = new URLSearchParams();
  if (view.range) {
    p.set('from', String(view.range.from));
    p.set('to', String(view.range.to));
  } else if (view.last) p.set('last', String(view.last));
  if (Object.keys(view.filter).length) p.set('filter', filterText(view.filter));
  if (view.search) p.set('search', view.search);
  for (const job of view.runs) p.append('run', job);
  if (view.heat) p.set('heat', view.heat);
  if (view.heatSort !== 'name') p.set('sort', view.heatSort);
  if (view.heatHidden) p.set('nodes', 'hidden');
  if (view.heatGroups) p.set('groups', view.heatGroups.join(' '));
  const text = p.toString();
  return text ? `#${text}` : '';
}

export function fromHash(hash: string): View {
  const p = new URLSearchParams(hash.replace(/^#/, ''));
  const from = Number(p.get('from') ?? NaN);
  const to = Number(p.get('to') ?? NaN);
  const last = Number(p.get('last') ?? 0);
  const sort = p.get('sort') as View['heatSort'];
  return {
    range: Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : null,
    last: Number.isFinite(last) && last > 0 ? last : 0,
    filter: parseFilter(p.get('filter') ?? ''),
    search: p.get('search') ?? '',
    runs: p.getAll('run').slice(0, 2),
    heat: p.get('heat') ?? '',
    heatSort: SORTS.includes(sort) ? sort : 'name',
    heatHidden: p.get('nodes') === 'hidden',
    heatGroups: p.get('groups')?.split(' ').filter(Boolean) ?? null,
  };
}

export const RANGE_MIN_MS = 0.02; // 20 µs

// The range zoomed around `at` (0…1 of the range) by a factor, clamped to the whole.
export function zoomed(range: Range, factor: number, at: number, whole: Range): Range {
  const width = Math.max(RANGE_MIN_MS, (range.to - range.from) * factor);
  const from = range.from + (range.to - range.from - width) * at;
  return within({ from, to: from + width }, whole);
}

export function panned(range: Range, share: number, whole: Range): Range {
  const by = (range.to - range.from) * share;
  return within({ from: range.from + by, to: range.to + by }, whole);
}

// The range moved, and if necessary cut, to lie in `whole`.
export function within(range: Range, whole: Range): Range {
  const width = range.to - range.from;
  if (width >= whole.to - whole.from) return { ...whole };
  if (range.from < whole.from) return { from: whole.from, to: whole.from + width };
  if (range.to > whole.to) return { from: whole.to - width, to: whole.to };
  return range;
}
