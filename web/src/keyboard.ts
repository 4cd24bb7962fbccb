// The keys of the page, and the list of them.

import { h } from './dom';

export const KEYS: [string, string][] = [
  ['/', 'search the metrics'],
  ['j k', 'next and previous chart'],
  ['h l', 'earlier, later'],
  ['+ -', 'zoom in and out'],
  ['0', 'the whole run'],
  ['space', 'pause, go on'],
  ['n p', 'next and previous finding or annotation'],
  ['g', 'nodes'],
  ['s', 'spans'],
  ['c', 'compare two runs'],
  ['e', 'export the visible charts'],
  ['← → ↑ ↓', 'move the cross-hair of a chart, or choose among nodes and spans; Enter selects'],
  ['a', 'annotate at the cross-hair'],
  ['t', 'dark or light'],
  ['?', 'this list'],
];

export class KeyList {
  readonly element = h('dialog', { 'aria-label': 'keys' });

  constructor() {
    this.element.append(
      h('h2', {}, 'Keys'),
      h('dl', {}, ...KEYS.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])),
      h('p', {}, 'Drag over a chart to zoom all of them. A click on a node filters to it; a click on a span shows it alone, with the peak and mean of every chart.'),
      h('form', { method: 'dialog', submit: () => undefined }, h('button', { type: 'button', click: () => this.element.close() }, 'close')),
    );
  }
}

// Calls the action of a key, unless a field uses it. `escape` gets the focused field, if any.
export function onKeys(actions: Record<string, () => void>, escape: (field: HTMLElement | null) => void): void {
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
    const target = e.target as HTMLElement;
    const typing = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (e.key === 'Escape') {
      escape(typing ? target : null);
      return;
    }
    if (typing || (e.key === ' ' && target instanceof HTMLButtonElement)) return;
    const action = actions[e.key];
    if (!action) return;
    e.preventDefault();
    action();
  });
}
