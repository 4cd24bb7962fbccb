// The order of the charts: the user's metrics first, then groups of built-in ones by their source.
// A group shows its most important metrics; a click, or a search, shows the rest.

import type { Metric } from './source';

export interface Group {
  id: string;
  title: string;
  metrics: Metric[]; // the important ones first
  shown: number; // number of the important ones
}

const GROUPS: { id: string; title: string; sources: string[]; first: string[] }[] = [
  {
    id: 'cpu',
    title: 'CPU',
    sources: ['load', 'cpu', 'frequency', 'interrupts'],
    first: ['cpu_percent', 'cpu_core_max_percent', 'load_1m', 'pressure_cpu_some_percent'],
  },
  {
    id: 'memory',
    title: 'Memory',
    sources: ['memory', 'vmstat'],
    first: ['memory_used_bytes', 'memory_used_percent', 'pressure_memory_some_percent', 'page_faults_major_total'],
  },
  {
    id: 'gpu',
    title: 'GPU',
    sources: ['gpu'],
    first: [
      'gpu_utilization_percent',
      'gpu_memory_used_bytes',
      'gpu_power_watts',
      'gpu_temperature_celsius',
      'gpu_sm_active_percent',
      'gpu_sm_clock_hertz',
    ],
  },
  {
    id: 'network',
    title: 'Network',
    sources: ['network', 'infiniband', 'slingshot'],
    first: [
      'network_receive_bytes_total',
      'network_transmit_bytes_total',
      'infiniband_receive_bytes_total',
      'infiniband_transmit_bytes_total',
      'slingshot_receive_bytes_total',
      'slingshot_transmit_bytes_total',
    ],
  },
  {
    id: 'disk',
    title: 'Disk and file systems',
    sources: ['disk', 'filesystem', 'lustre', 'nfs'],
    first: [
      'disk_read_bytes_total',
      'disk_written_bytes_total',
      'filesystem_used_percent',
      'pressure_io_some_percent',
      'lustre_read_bytes_total',
      'lustre_written_bytes_total',
      'nfs_read_bytes_total',
      'nfs_written_bytes_total',
    ],
  },
  {
    id: 'energy',
    title: 'Energy and heat',
    sources: ['energy', 'temperature', 'fan'],
    first: ['power_watts', 'energy_joules_total', 'temperature_celsius'],
  },
  {
    id: 'processes',
    title: 'Processes',
    sources: ['processes', 'cgroup'],
    first: ['job_cpu_seconds_total', 'job_resident_bytes', 'process_cpu_seconds_total', 'process_resident_bytes'],
  },
  {
    id: 'sonde',
    title: 'sonde itself',
    sources: ['sonde'],
    first: ['sonde_points_total', 'sonde_dropped_total', 'sonde_agent_cpu_seconds_total', 'sonde_agent_memory_bytes'],
  },
];
const OTHER = { id: 'other', title: 'Other', sources: [] as string[], first: [] as string[] };

export const CUSTOM = 'custom';

function groupOf(metric: Metric): (typeof GROUPS)[number] {
  if (metric.source === 'pressure')
    return GROUPS.find((g) => g.id === (metric.name.includes('_cpu_') ? 'cpu' : metric.name.includes('_io_') ? 'disk' : 'memory'))!;
  return GROUPS.find((g) => g.sources.includes(metric.source!)) ?? OTHER;
}

export function groups(metrics: Metric[]): Group[] {
  const custom = metrics.filter((m) => !m.source);
  const all: Group[] = [{ id: CUSTOM, title: 'Your metrics', metrics: custom, shown: custom.length }];
  for (const g of [...GROUPS, OTHER]) {
    const own = metrics.filter((m) => m.source && groupOf(m) === g);
    const rank = (m: Metric) => (g.first.includes(m.name) ? g.first.indexOf(m.name) : g.first.length);
    own.sort((a, b) => rank(a) - rank(b));
    const first = own.filter((m) => g.first.includes(m.name)).length;
    if (own.length) all.push({ id: g.id, title: g.title, metrics: own, shown: first || Math.min(4, own.length) });
  }
  return all;
}

// True if every word is part of the name, the group or the help, ignoring case.
export function matches(metric: Metric, group: string, text: string): boolean {
  const where = `${metric.name} ${group} ${metric.help}`.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => where.includes(word));
}
