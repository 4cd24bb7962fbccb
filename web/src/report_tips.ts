// The texts of the report's tooltips: a title, and names with values.

import * as format from './format';
import { FAILED, UNFINISHED, stretchAt } from './report_data';
import type { Bin, Piece } from './report_data';
import type { Scene } from './report_scene';

export type Tip = [string, [string, string][]];

export function taskTip(scene: Scene, task: number): Tip {
  const { tasks, prefixes, inner } = scene.data;
  const from = scene.times.from[task]!;
  const stretch = stretchAt(scene.stretches, from);
  const state = tasks.state[task]!;
  const lines: [string, string][] = [
    ['prefix', prefixes[tasks.prefix[task]!]!.prefix],
    ['worker', scene.names.get(tasks.worker[task]!)!],
    ['start', `${format.clock(from, 0.5)}, ${format.duration((from - scene.whole.from) / 1000)} after the beginning`],
    ['duration', format.duration((scene.times.to[task]! - from) / 1000) + (state === UNFINISHED ? ', cut off' : '')],
  ];
  if (stretch) lines.push(['cluster at', `job ${stretch.job}, dag ${stretch.dag}`]);
  const size = tasks.nbytes[task];
  if (size !== null && size !== undefined) lines.push(['output', format.value(size, 'bytes')]);
  if (state === FAILED) lines.push(['failed', 'yes']);
  for (const i of (scene.innerOf.get(task) ?? []).slice(0, 6)) {
    const tags = Object.entries(inner.tags[i]!).map(([k, v]) => `${k}=${v}`);
    lines.push([inner.name[i]!, [format.duration(inner.duration[i]! / 1e6), ...tags].join(' ')]);
  }
  return [tasks.key[task]!, lines];
}

// `width`: pixels of the range.
export function binTip(scene: Scene, bin: Bin, lane: number, width: number): Tip {
  const { tasks, prefixes } = scene.data;
  const of = new Map<number, number>();
  for (const task of bin.tasks) of.set(tasks.prefix[task]!, (of.get(tasks.prefix[task]!) ?? 0) + 1);
  const most = [...of].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return [
    `${bin.tasks.length} tasks of this pixel`,
    [
      ['worker', scene.names.get(scene.lanes[lane]!.worker)!],
      ['start', format.clock(scene.times.from[bin.tasks[0]!]!, 0.5)],
      ['busy', `${format.value(bin.busy * 100, 'percent')} of ${format.duration((scene.range.to - scene.range.from) / width / 1000)}`],
      ...most.map(([p, n]): [string, string] => [prefixes[p]!.prefix, String(n)]),
    ],
  ];
}

export function pieceTip(piece: Piece): Tip {
  const top = piece.path[0] ?? piece.node;
  const above = piece.path[piece.path.length - 1];
  const lines: [string, string][] = [
    ['time', `${format.duration(piece.node.ms / 1000)}, ${format.value((piece.node.ms / top.ms) * 100, 'percent')} of all`],
    ['count', format.count(piece.node.count)],
  ];
  if (above && above !== top) lines.push([`of ${above.name}`, format.value((piece.node.ms / above.ms) * 100, 'percent')]);
  return [piece.node.name, lines];
}
