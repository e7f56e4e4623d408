import { availableParallelism } from 'node:os'
import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const serverOf = (t: Parameters<typeof load>[0], server: string) => load(t, `${LEAST}server: ${server}\n`).config.server

t.test('by default a server listens on localhost only', async t => {
  const { server, console, docs } = load(t, LEAST).config
  t.match(server, {
    listen: { host: '127.0.0.1', port: 8080 }, reusePort: false, workers: 1, tls: null, bodyLimit: 67_108_864, bodyMemory: 536_870_912, maxInFlight: 10_000,
    maxConnections: 20_000, idle: 620_000, hosts: [], revealUpstream: false, trustedProxies: [], drain: 1_800_000, drainDelay: 0,
  })
  t.equal(console, null)
  t.equal(docs, null)
})

t.test('body_memory defaults to eight times body_limit', async t => {
  t.match(serverOf(t, '{ body_limit: 1kb }'), { bodyLimit: 1024, bodyMemory: 8192 })
  t.match(serverOf(t, '{ body_limit: 1kb, body_memory: 1kb }'), { bodyMemory: 1024 })
})

t.test('names of hosts are lowercased, and workers: auto is the number of cores', async t => {
  t.match(serverOf(t, '{ hosts: [Gateway.Example.COM] }'), { hosts: ['gateway.example.com'] })
  t.match(serverOf(t, '{ workers: auto }'), { workers: availableParallelism() })
})

const PROBLEMS: readonly (readonly [what: string, text: string, expected: object])[] = [
  ['less memory than one body needs', 'server: { body_limit: 2kb, body_memory: 1kb }', { line: 3, column: 41, message: /body_memory must be at least server.body_limit/ }],
  ['a body limit above the memory', 'server: { body_memory: 1kb }', { line: 3, column: 24, message: /body_memory must be at least/ }],
  ['workers and a shared port', 'server: { workers: 2, reuse_port: true }', { message: /cannot be combined/ }],
  ['a proxy that is no address', 'server: { trusted_proxies: [10.0.0.0/8, example.com] }', { column: 41, message: /neither an IP address nor a CIDR block/ }],
  ['two listeners at the same address', 'server: { listen: ":9090" }\nconsole: { listen: "127.0.0.1:9090" }', { line: 4, message: /^console.listen and server.listen are both on / }],
  ['another listener at the default address of the server', 'docs: { listen: "127.0.0.1:8080" }', { line: 3, message: /^docs.listen and server.listen are both on / }],
  ['metrics at the address of the console', 'console: { listen: ":9091" }\ntelemetry: { prometheus: { listen: ":9091" } }', { line: 4, message: /^telemetry.prometheus.listen and console.listen are both on / }],
]

for (const [what, text, expected] of PROBLEMS) {
  t.test(`listeners with ${what} are refused`, async t => {
    t.match(problems(t, `${LEAST}${text}\n`).filter(({ severity }) => severity === 'error'), [expected])
  })
}

t.test('reuse_port is valid with one worker, and several listeners can have port 0', async t => {
  t.match(serverOf(t, '{ workers: 1, reuse_port: true }'), { workers: 1, reusePort: true })
  const { config } = load(t, `${LEAST}server: { listen: ":0" }\nconsole: { listen: "127.0.0.1:0" }\ndocs: { listen: "127.0.0.1:8081" }\n`)
  t.match(config.docs, { listen: { host: '127.0.0.1', port: 8081 } })
})
