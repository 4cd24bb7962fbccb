// Records a run of two hours on two nodes with four GPUs each, and makes its report, for
// test_report.mjs and screenshots.mjs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { record } from './harness.mjs';

const GIB = 2 ** 30;
const START = Date.UTC(2026, 10, 20, 9, 15); // in ms
const SECONDS = 7200;
const EVERY = 10;

// Records a host. Rank 5 is slow, GPU 3 of n2 stops after an hour, the memory of n1 grows, and each
// step spends a third of its time on loading.
async function recordHost(folder, number) {
  const host = `n${number + 1}`;
  await record(path.join(folder, `${host}.sonde`), 'train-17', host, (w) => {
    w.metric('loss', 'gauge', '', 'Of the training set.');
    for (const [name, kind, unit] of [['cpu_percent', 'gauge', 'percent'], ['cpu_count', 'gauge', ''], ['job_cpu_seconds_total', 'counter', 'seconds'], ['job_resident_bytes', 'gauge', 'bytes'],
      ['memory_used_bytes', 'gauge', 'bytes'], ['memory_total_bytes', 'gauge', 'bytes'], ['cgroup_memory_limit_bytes', 'gauge', 'bytes'], ['gpu_utilization_percent', 'gauge', 'percent'],
      ['gpu_memory_used_bytes', 'gauge', 'bytes'], ['gpu_memory_total_bytes', 'gauge', 'bytes'], ['gpu_power_watts', 'gauge', 'watts'], ['energy_joules_total', 'counter', 'joules'],
      ['network_receive_bytes_total', 'counter', 'bytes'], ['network_transmit_bytes_total', 'counter', 'bytes'], ['disk_read_bytes_total', 'counter', 'bytes']])
      w.metric(name, kind, unit, 'Of the node.');
    for (let s = 0; s < SECONDS; s += EVERY) {
      const t = START + 1000 * s;
      const wave = (k) => Math.sin(s / 37 + k) + Math.sin(s / 11 + 3 * k) / 2;
      w.point('cpu_percent', { host }, t, 31 + 4 * wave(number));
      w.point('cpu_count', { host }, t, 64);
      w.point('job_cpu_seconds_total', { host }, t, 19 * s);
      w.point('job_resident_bytes', { host }, t, (38 + (number ? 0 : (60 * s) / SECONDS)) * GIB);
      w.point('memory_used_bytes', { host }, t, (60 + (number ? 0 : (60 * s) / SECONDS)) * GIB);
      w.point('memory_total_bytes', { host }, t, 512 * GIB);
      w.point('cgroup_memory_limit_bytes', { host }, t, 480 * GIB);
      w.point('energy_joules_total', { host, zone: 'package-0' }, t, 240 * s);
      w.point('network_receive_bytes_total', { host, interface: 'hsn0' }, t, 2e9 * s - 2e10 * Math.cos(s / 37 + number));
      w.point('network_transmit_bytes_total', { host, interface: 'hsn0' }, t, 2e9 * s);
      w.point('disk_read_bytes_total', { host, device: 'nvme0n1' }, t, 3e8 * s);
      for (let gpu = 0; gpu < 4; gpu++) {
        const rank = 4 * number + gpu;
        const busy = !(rank === 7 && s >= SECONDS / 2);
        w.point('gpu_utilization_percent', { host, gpu }, t, busy ? 62 + 9 * wave(rank) : 0);
        w.point('gpu_memory_used_bytes', { host, gpu }, t, 61 * GIB);
        w.point('gpu_memory_total_bytes', { host, gpu }, t, 80 * GIB);
        w.point('gpu_power_watts', { host, gpu }, t, busy ? 480 + 40 * wave(rank) : 90);
        w.point('loss', { host, rank }, t, 2.3 * Math.exp(-s / 2500) + 0.2 + 0.02 * wave(rank));
      }
    }
    for (let rank = 4 * number; rank < 4 * number + 4; rank++)
      for (let step = 0; step < SECONDS / 30; step++) {
        const from = START + 30e3 * step;
        const length = 21e3 + 900 * Math.sin(step + rank) + (rank === 5 ? 7e3 : 0);
        const id = 1 + rank * 100000 + 2 * step;
        w.span(id, 0, from, from + length, { host, rank }, 'step');
        w.span(id + 1, id, from, from + length / 3, { host, rank }, 'load batch');
      }
  });
}

// Writes FOLDER/train-17 and its report; returns the path of the report.
export async function runReport(folder) {
  const run = path.join(folder, 'train-17');
  mkdirSync(run);
  for (const number of [0, 1]) await recordHost(run, number);
  const ns = (ms) => BigInt(ms) * 1000000n;
  const text = JSON.stringify({ format: 'sonde run 1', job: 'train-17', host: 'n1', command: 'python train.py --model large --lr 0.0003', level: 3, rate: 10, start_ns: 'START', end_ns: 'END', exit_code: 0,
    about: { name: 'large, second try', tags: { lr: '0.0003' }, nodes: 2, directory: '/home/ada/train', git: { commit: '8c8d4a9912345678', branch: 'main' } } });
  writeFileSync(path.join(run, 'run.json'), text.replace('"START"', `${ns(START)}`).replace('"END"', `${ns(START + 1000 * SECONDS)}`), { mode: 0o600 });
  const out = path.join(folder, 'report.html');
  execFileSync(process.env.SONDE, ['report', '--co2', '380', '-o', out, 'train-17'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, TZ: 'UTC' } });
  return out;
}
