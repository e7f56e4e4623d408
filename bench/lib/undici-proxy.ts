/**
 * node:http and undici, and nothing else: what any proxy on this runtime takes at least.
 * Argument: the upstream's port. Prints its own.
 */
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const upstream = new Pool(`http://127.0.0.1:${process.argv[2]}`)
/** Those of one connection are not passed on. */
const HOP_BY_HOP = new Set(['connection', 'host', 'keep-alive', 'transfer-encoding'])
const passed = (headers: http.IncomingHttpHeaders) => (
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)))
)
const server = http.createServer((req, res) => {
  const options = { path: req.url ?? '/', method: req.method as 'POST', headers: passed(req.headers), body: req }
  upstream.stream(options, ({ statusCode, headers }) => res.writeHead(statusCode, passed(headers))).catch(() => res.destroy())
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
