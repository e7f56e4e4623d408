import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CGROUP_ROOT = '/sys/fs/cgroup'
/** The kernel's own: with turns of a tenth, what others leave in the caches costs three times as much. */
const PERIOD_US = 100_000

/** Who is kept, and in which group. */
const limitedProcesses: { pid: number, root: string, group: string }[] = []

/**
 * Keeps a process, with all its threads, to a share of one core, until this one ends: as if it had a
 * core of its own that much slower, whatever others do on the machine's. By a control group of Linux,
 * of version 1 or 2.
 *
 * @throws Error where this user may make no control groups, or the kernel gives them no quota
 */
export function limitCpu(pid: number, share: number): void {
  const isSecond = existsSync(join(CGROUP_ROOT, 'cgroup.controllers'))
  const root = isSecond ? CGROUP_ROOT : join(CGROUP_ROOT, 'cpu')
  const group = join(root, `bench-${pid}`)
  const quota = Math.round(share * PERIOD_US)
  if (isSecond) writeFileSync(join(root, 'cgroup.subtree_control'), '+cpu')
  mkdirSync(group)
  if (limitedProcesses.push({ pid, root, group }) === 1) process.once('exit', releaseAll)
  if (isSecond) {
    writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_US}`)
  } else {
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US))
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quota))
  }
  writeFileSync(join(group, 'cgroup.procs'), String(pid))
}

function releaseAll(): void {
  for (const { pid, root, group } of limitedProcesses) {
    // A group goes only when nobody is in it.
    if (existsSync(`/proc/${pid}`)) writeFileSync(join(root, 'cgroup.procs'), String(pid))
    rmdirSync(group)
  }
}
