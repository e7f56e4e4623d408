/**
 * What telemetry costs: CPU per request with Prometheus, with traces of one request in a hundred, and with traces of
 * all, each compared with a gateway without telemetry; then a scrape, and how long it holds up the
 * event loop.
 *
 *   node bench/telemetry.ts [rounds] [seconds]
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { endAfter, printTable, spread } from './lib/figures.ts'
import { printCpuExcess } from './lib/paired-rounds.ts'
import { KEY } from './lib/gateway-yaml.ts'
import { startGateway, startScript } from './lib/subjects.ts'
import type { StartedGateway } from './lib/subjects.ts'

const rounds = Number(process.argv[2] ?? 12)
const seconds = Number(process.argv[3] ?? 1)
const SCRAPE_INTERVAL = 1_000
const SCRAPES = 20
/** As many as one route shows: with the buckets of their histograms some 3,700 series. */
const MODELS = 190

endAfter(180 + 3 * 4 * rounds * (seconds + 1))
const upstream = await startScript('upstream', 'upstream.ts')
const collector = createServer((req, res) => {
  req.resume().once('end', () => res.setHeader('content-type', 'application/x-protobuf').end())
})
await once(collector.listen(0, '127.0.0.1'), 'listening')
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
const traces = (sample: number) => `telemetry: { otlp: { endpoint: "${endpoint}", metrics: false, sample: ${sample} } }`
const PROMETHEUS = 'telemetry: { prometheus: { listen: 127.0.0.1:0 } }'

for (const [name, extra] of [
  ['Prometheus, scraped each second', PROMETHEUS],
  ['traces, sample 0.01', traces(0.01)],
  ['traces, sample 1', traces(1)],
] as const) {
  const bare = await startGateway(upstream.port, { name: 'without telemetry' })
  const measured = await startGateway(upstream.port, { name, extra })
  const url = metricsUrl(measured)
  const scraping = url === null ? null : setInterval(() => void scrape(url), SCRAPE_INTERVAL)
  await printCpuExcess([bare, measured], rounds, seconds)
  if (scraping !== null) clearInterval(scraping)
  bare.stop()
  measured.stop()
}

const gateway = await startGateway(upstream.port, {
  extra: PROMETHEUS, nodeArgs: ['--import', join(import.meta.dirname, 'lib/loop-delay.mjs')],
})
await Promise.all(Array.from({ length: MODELS }, (_, n) => ask(gateway, `m-${n}`)))
const url = metricsUrl(gateway) ?? ''
for (let n = 0; n < SCRAPES; n++) await scrape(url)
const text = await scrape(url)
process.kill(gateway.pid as number, 'SIGUSR2')
const times: number[] = []
for (let n = 0; n < SCRAPES; n++) {
  const start = performance.now()
  await scrape(url)
  times.push(performance.now() - start)
}
// Its line on standard error: the longest stall.
process.kill(gateway.pid as number, 'SIGUSR2')
const series = text.split('\n').filter(line => line !== '' && !line.startsWith('#')).length
printTable(['', 'ms'], [[`a scrape of ${series} series`, spread(times)]])
await scrape(url)
gateway.stop()
collector.close()
process.exit(0)

function metricsUrl({ log }: StartedGateway): string | null {
  const base = /"metrics":"([^"]+)"/.exec(readFileSync(log, 'utf8'))?.[1]
  return base === undefined ? null : `${base}/metrics`
}

async function scrape(address: string): Promise<string> {
  return (await fetch(address)).text()
}

async function ask({ port }: StartedGateway, model: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, messages: [] }),
  })
  await response.arrayBuffer()
}
