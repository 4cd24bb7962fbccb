// Colours for drawing on canvases; the style sheet's variables define them for both themes.

export interface Theme {
  dark: boolean;
  text: string;
  quiet: string;
  grid: string;
  accent: string;
  alarm: string;
  ground: string;
  series: string[];
  font: string;
}

const KEY = 'sonde-theme';

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: get('dark') === '1',
    text: get('text'),
    quiet: get('quiet'),
    grid: get('grid'),
    accent: get('accent'),
    alarm: get('alarm'),
    ground: get('ground'),
    series: Array.from({ length: 8 }, (_, i) => get(`series-${i}`)),
    font: `11px ${get('sans')}`,
  };
}

export function applyStored(): void {
  const stored = storage()?.getItem(KEY);
  if (stored === 'dark' || stored === 'light') document.documentElement.dataset.theme = stored;
}

export function toggle(): void {
  const next = readTheme().dark ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  storage()?.setItem(KEY, next);
}

function storage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null; // the browser refused: the theme is not saved
  }
}

// viridis in 17 steps; colours in between are interpolated. Light themes begin at its bright end.
const VIRIDIS = [
  0x440154, 0x48186a, 0x472d7b, 0x424086, 0x3b528b, 0x33638d, 0x2c728e, 0x26828e, 0x21918c, 0x1fa088, 0x28ae80,
  0x3fbc73, 0x5ec962, 0x84d44b, 0xaddc30, 0xd8e219, 0xfde725,
];

// 256 colours as 0xAABBGGRR, the memory layout of ImageData.
export function heatColours(dark: boolean): Uint32Array {
  const all = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = ((dark ? i : 255 - i) / 255) * (VIRIDIS.length - 1);
    const a = VIRIDIS[Math.floor(at)]!;
    const b = VIRIDIS[Math.min(VIRIDIS.length - 1, Math.floor(at) + 1)]!;
    const mix = (shift: number) => {
      const x = (a >> shift) & 255;
      return Math.round(x + (((b >> shift) & 255) - x) * (at % 1));
    };
    all[i] = ((255 << 24) | (mix(0) << 16) | (mix(8) << 8) | mix(16)) >>> 0;
  }
  return all;
}
