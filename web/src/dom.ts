// Elements without a framework.

type Child = Node | string | null | undefined;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | boolean | ((e: never) => void)> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else if (typeof value === 'boolean') element.toggleAttribute(name, value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((c): c is Node | string => c !== null && c !== undefined));
  return element;
}

// Sets a text only if it changes, so that nothing is laid out, or read out, again.
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

// Gives a canvas the resolution of the screen; the context draws in CSS pixels.
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio);
  const hh = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== hh) {
    canvas.width = w;
    canvas.height = hh;
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// A drag along a time axis: [from, to] in CSS pixels during the drag, and at its end.
export function onBrush(
  canvas: HTMLCanvasElement,
  moved: (from: number, to: number) => void,
  ended: (from: number, to: number) => void,
  clicked: (x: number, y: number) => void,
): void {
  let start: number | null = null;
  canvas.addEventListener('pointerdown', (e) => {
    if (e.button !== 0 || e.pointerType === 'touch') return;
    start = e.offsetX;
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', (e) => {
    if (start !== null) moved(Math.min(start, e.offsetX), Math.max(start, e.offsetX));
  });
  const end = (e: PointerEvent) => {
    if (start === null) return;
    const from = start;
    start = null;
    if (Math.abs(e.offsetX - from) >= 4) ended(Math.min(from, e.offsetX), Math.max(from, e.offsetX));
    else clicked(e.offsetX, e.offsetY);
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', () => (start = null));
}

// Scrolls to a section, and gives the keyboard to its canvas.
export function goTo(section: HTMLElement, canvas: HTMLElement): void {
  if (section.hidden) return;
  section.scrollIntoView({ block: 'start' });
  canvas.focus({ preventScroll: true });
}
