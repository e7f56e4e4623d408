/**
 * http-proxy-3 alone, on its native path with kept-alive connections.
 * Argument: the upstream's port. Prints its own.
 */
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { createProxyServer } from 'http-proxy-3'

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity })
const proxy = createProxyServer({ target: `http://127.0.0.1:${process.argv[2]}`, agent })
proxy.on('error', () => {})
const server = http.createServer((req, res) => proxy.web(req, res))
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
