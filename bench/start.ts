/**
 * From the start of the process to its first answered request, ledger and key
 * included, and the CPU that it took, all threads together.
 *
 *   node bench/start.ts [times]
 */
import { endAfter, median, printHeading, spread } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { cpuSeconds, memory, pause, startGateway, startScript } from './lib/subjects.ts'

const times = Number(process.argv[2] ?? 10)
endAfter(60 + times * 15)
// Each start leaves two.
process.setMaxListeners(20 + 2 * times)
const upstream = await startScript('upstream', 'upstream.ts')
const took: number[] = []
const cpu: number[] = []
const idle: number[] = []
for (let i = 0; i < times; i++) {
  const began = performance.now()
  const gateway = await startGateway(upstream.port)
  await closedLoop(gateway.port, requestLoad(), 1, 0)
  took.push(performance.now() - began)
  if (gateway.pid !== null) cpu.push(cpuSeconds(gateway.pid) * 1000)
  await pause(7_000)
  if (gateway.pid !== null) idle.push(memory(gateway.pid, 'VmRSS'))
  gateway.stop()
}
upstream.stop()
printHeading(`${times} starts`)
console.log(`start to first response: ${spread(took, 0)} ms (target 500), ${spread(cpu, 0)} ms of CPU; ` +
  `memory seven seconds later: ${spread(idle, 0)} MB`)
process.exitCode = median(took) > 500 ? 1 : 0
