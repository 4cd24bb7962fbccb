// Groups of nodes by their names, so that a heat map of 1,000 nodes can be read: n00100 to n00199
// are n001‥. A group is one row, the mean of its nodes; an open group has the rows of its nodes
// below it.

import { sorted, type Row } from './heatmap';
import { compareNatural } from './lines';
import type { View } from './model';

const GROUPS_MAX = 40;
const DIGITS_MAX = 9; // of a number in a host name

// The name of the group: the last number without its last digits.
function nameOf(host: string, digits: number): string {
  const found = /^(.*?)(\d+)(\D*)$/.exec(host);
  if (!found) return host;
  const [, before, number, after] = found as unknown as [string, string, string, string];
  return `${before}${number.slice(0, Math.max(0, number.length - digits))}‥${after}`;
}

// Each group and its nodes; of as few digits as give at most GROUPS_MAX groups. Nodes without a
// number are groups alone.
export function groupsOf(hosts: string[]): Map<string, string[]> {
  for (let digits = 1; ; digits++) {
    const groups = new Map<string, string[]>();
    for (const host of hosts) {
      const name = nameOf(host, digits);
      groups.set(name, [...(groups.get(name) ?? []), host]);
    }
    if (groups.size <= GROUPS_MAX || digits === DIGITS_MAX) return groups;
  }
}

// Whether the nodes form several groups, and groups at least halve the number of rows.
export function groupable(hosts: string[]): boolean {
  const { size } = groupsOf(hosts);
  return size > 1 && size <= hosts.length / 2;
}

// The mean of the nodes, bucket by bucket; a node without a value does not count.
function meanRow(name: string, members: Row[]): Row {
  const at = new Map<number, { sum: number; n: number }>();
  for (const row of members)
    row.t.forEach((t, i) => {
      const v = row.v[i]!;
      if (Number.isNaN(v)) return;
      const bucket = at.get(t) ?? { sum: 0, n: 0 };
      bucket.sum += v;
      bucket.n++;
      at.set(t, bucket);
    });
  const t = [...at.keys()].sort((a, b) => a - b);
  const v = t.map((time) => at.get(time)!.sum / at.get(time)!.n);
  return { host: name, t, v, mean: v.reduce((sum, x) => sum + x, 0) / v.length, last: v[v.length - 1] ?? NaN };
}

// The rows of groups, in their order; `open` names those whose nodes are shown.
export function groupedRows(all: Row[], by: View['heatSort'], open: string[]): Row[] {
  const byHost = new Map(all.map((row) => [row.host, row]));
  const rows: Row[] = [];
  const found: Row[] = [];
  for (const [name, hosts] of groupsOf(all.map((row) => row.host).sort(compareNatural))) {
    const members = hosts.map((host) => byHost.get(host)!);
    found.push(members.length === 1 ? members[0]! : { ...meanRow(name, members), members });
  }
  for (const row of sorted(found, by)) {
    const opened = row.members && open.includes(row.host);
    rows.push(opened ? { ...row, open: true } : row);
    if (opened) rows.push(...sorted(row.members!, by));
  }
  return rows;
}
