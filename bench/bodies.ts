/**
 * Ten bodies of 20 MB at once, as requests with images are: the longest stall of
 * the gateway's event loop, and the most memory it held.
 *
 *   node bench/bodies.ts [bodies] [megabytes]
 */
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { endAfter, printHeading } from './lib/figures.ts'
import { closedLoop, requestLoad } from './lib/load.ts'
import { KEY } from './lib/gateway-yaml.ts'
import { memory, pause, startGateway, startScript } from './lib/subjects.ts'

const bodies = Number(process.argv[2] ?? 10)
const megabytes = Number(process.argv[3] ?? 20)
endAfter(120)

const upstream = http.createServer((req, res) => {
  let bytes = 0
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  req.on('end', () => res.end(JSON.stringify({ bytes })))
}).listen(0, '127.0.0.1')
await new Promise(resolve => upstream.once('listening', resolve))
const warm = await startScript('upstream', 'upstream.ts')
const gateway = await startGateway((upstream.address() as AddressInfo).port, {
  nodeArgs: ['--import', join(import.meta.dirname, 'lib/loop-delay.mjs')],
})
const pid = gateway.pid as number

const image = 'A'.repeat(megabytes * 1024 * 1024)
const body = Buffer.from(JSON.stringify({
  model: 'm',
  messages: [
    { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }] },
  ],
}))
const post = () => new Promise<void>((resolve, reject) => {
  const req = http.request({
    port: gateway.port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST', agent: false,
    headers: {
      authorization: `Bearer ${KEY}`, 'content-type': 'application/json', 'content-length': body.length,
    },
  }, res => {
    res.on('error', reject)
    res.resume().on('end', () => {
      if (res.statusCode === 200) resolve()
      else reject(new Error(`status ${res.statusCode}`))
    })
  })
  req.on('error', reject)
  req.end(body)
})

await closedLoop(gateway.port, requestLoad(), 4, 1_000)
await pause(500)
const before = memory(pid, 'VmRSS')
process.kill(pid, 'SIGUSR2')
const began = performance.now()
await Promise.all(Array.from({ length: bodies }, post))
const took = performance.now() - began
process.kill(pid, 'SIGUSR2')
await pause(200)
printHeading(`${bodies} bodies of ${megabytes} MB ` +
  `at once: all answered after ${took.toFixed(0)} ms; memory ${before.toFixed(0)} MB before, at most ` +
  `${memory(pid, 'VmHWM').toFixed(0)} MB ` +
  `(${((memory(pid, 'VmHWM') - before) / (bodies * megabytes)).toFixed(2)} x the bodies)`)
gateway.stop()
warm.stop()
upstream.close()
