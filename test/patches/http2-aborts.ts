/**
 * A separate process, because a fault would block it forever: requests with bodies
 * that do not fit into the window of the upstream are aborted at various moments.
 */
import { once } from 'node:events'
import * as http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createTransport } from '../../src/proxy/upstream/transport.ts'
import type { Controller } from '../../src/proxy/upstream/transport.ts'
import { selfSigned } from '../support/certificate.ts'

const ROUNDS = 300
const TOGETHER = 6
const body = Buffer.alloc(1024 * 1024)
const server = http2.createSecureServer({ ...selfSigned(), settings: { maxConcurrentStreams: 3 } })
server.on('sessionError', () => {})
server.on('stream', (stream: http2.ServerHttp2Stream) => {
  stream.on('error', () => {})
  stream.respond({ ':status': 200 })
  void setTimeout(Math.random() * 10).then(() => stream.end('ok'))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
const transport = createTransport({
  origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
  socketPath: null, connectTimeout: 30_000, ca: null,
})
const headers = ['content-length', String(body.length)]

function send(): Promise<void> {
  return new Promise(resolve => {
    let controller: Controller | null = null
    transport.send({ method: 'POST', path: '/', headers, body }, {
      onRequestStart: given => {
        controller = given
      },
      onResponseStart: () => {},
      onResponseEnd: () => resolve(),
      onResponseError: () => resolve(),
    })
    if (Math.random() < 0.4) {
      void setTimeout(Math.random() * 12).then(() => controller?.abort(new Error('nobody wants it any more')))
    }
  })
}

const all: Promise<void>[] = []
for (let round = 0; round < ROUNDS; round++) {
  for (let n = 0; n < TOGETHER; n++) all.push(send())
  await setTimeout(Math.random() * 5)
}
await Promise.all(all)
process.exit(0)
