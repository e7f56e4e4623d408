import type * as http from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { startRedis, withoutRedis } from '../../support/redis.ts'
import { sendJson } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

t.test('two workers share the requests per minute of an upstream', async t => {
  const { gateways, limited, spare } = await start(t, '{ requests_per_minute: 10 }')
  const { statuses, allowed } = await measured(10, () => askAll(gateways, 40))
  t.strictSame(statuses, Array(40).fill(200))
  t.ok(limited.requests >= 10 && limited.requests <= allowed, `${limited.requests} requests`)
  t.equal(spare.requests, 40 - limited.requests)
})

t.test('two workers share the concurrency limit of an upstream, and released concurrency is used again', async t => {
  const { gateways, limited, spare } = await start(t, '{ concurrent: 6 }')
  for (let round = 0; round < 3; round++) {
    limited.hold()
    const asking = askAll(gateways, 20)
    await spare.reached(14 * (round + 1))
    t.equal(limited.running, 6)
    limited.release()
    t.strictSame(await asking, Array(20).fill(200))
  }
  t.equal(limited.most, 6)
})

t.test('two workers share the tokens per minute of an upstream', async t => {
  // Each request reserves 110 tokens and a little, and uses 100.
  const { gateways, limited } = await start(t, '{ tokens_per_minute: 1000 }')
  const { allowed } = await measured(10, () => askAll(gateways, 40))
  t.ok(limited.requests >= 8 && limited.requests <= allowed, `${limited.requests} requests`)
})

t.test('two gateways with two workers each share the limits of an upstream', { skip: withoutRedis }, async t => {
  const redis = await startRedis(t)
  const valkey = redis.url(redis.port)
  const { gateways, limited, lines } = await start(t, '{ requests_per_minute: 10 }', ['gw1', 'gw2'].map(instance =>
    `cluster: { instance: ${instance}, valkey: "${valkey}" }`))
  const { statuses, allowed } = await measured(10, () => askAll(gateways, 40))
  t.strictSame(statuses, Array(40).fill(200))
  // On a slow machine Valkey can time out, and then each gateway uses its own share.
  const isLost = lines().some(({ failure }) => failure !== undefined)
  t.ok((limited.requests >= 10 && limited.requests <= allowed) || isLost, `${limited.requests} requests`)
})

t.test('a hedge is sent to a second target that has limits', async t => {
  const slow = await startUpstream(t, req => void bodyOf(req))
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}\n\n')
  }))
  const file = join(t.testdir({ 'gateway.yaml': `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { slow: { url: "${slow.url}" }, limited: { url: "${url}", limits: { concurrent: 3 } } }
routes: [{ to: [slow, limited], hedge: { after: 50ms } }]
keys: [{ name: test, key: ${KEY} }]
` }), 'gateway.yaml')
  const gateway = await listening(t, ['serve', '--config', file])
  const open = () => ask(gateway.base, { model: 'm', stream: true, messages: [] })
  const served = await Promise.all([open(), open(), open()])
  t.strictSame(served.map(({ status }) => status), [200, 200, 200])
  for (const response of served) await response.body?.cancel()
})

interface Counted {
  readonly url: string
  requests: number
  running: number
  /** Maximum number of requests at the same time. */
  most: number
  /** Holds all further responses until `release`. */
  hold(): void
  release(): void
  /** Resolves after the upstream has got `requests` requests. */
  reached(requests: number): Promise<void>
}

async function startCounted(t: Test): Promise<Counted> {
  let held: http.ServerResponse[] | null = null
  let waiting: { readonly requests: number, readonly resolve: () => void } | null = null
  const respond = (res: http.ServerResponse): void => {
    counted.running--
    sendJson(res, 200, { choices: [{ message: { content: 'Hi' } }], usage: { prompt_tokens: 90, completion_tokens: 10 } })
  }
  const { url } = await startUpstream(t, (req, res) => void bodyOf(req).then(() => {
    counted.requests++
    counted.running++
    counted.most = Math.max(counted.most, counted.running)
    if (held === null) respond(res)
    else held.push(res)
    if (waiting !== null && counted.requests >= waiting.requests) waiting.resolve()
  }))
  const counted: Counted = {
    url,
    requests: 0,
    running: 0,
    most: 0,
    hold: () => { held = [] },
    release: () => {
      const responses = held ?? []
      held = null
      for (const res of responses) respond(res)
    },
    reached: async requests => {
      if (counted.requests >= requests) return
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting = { requests, resolve }
      await promise
    },
  }
  return counted
}

/** Gateways with two workers each. @param clusters cluster settings of each gateway */
async function start(t: Test, limits: string, clusters: readonly string[] = ['']) {
  const [limited, spare] = await Promise.all([startCounted(t), startCounted(t)])
  const folder = t.testdir(Object.fromEntries(clusters.map((cluster, n) => [`${n}.yaml`, `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { limited: { url: "${limited.url}", limits: ${limits} }, spare: { url: "${spare.url}" } }
routes: [{ to: [limited, spare], retries: 0 }]
keys: [{ name: test, key: ${KEY} }]
${cluster}
`])))
  const running = await Promise.all(clusters.map((_, n) => listening(t, ['serve', '--config', `${folder}/${n}.yaml`])))
  return { limited, spare, gateways: running.map(({ base }) => base), lines: () => running.flatMap(({ lines }) => lines) }
}

/** @returns the result of `run`, and the number of requests that the limit per minute allowed during its time */
async function measured(perMinute: number, run: () => Promise<number[]>): Promise<{ readonly statuses: number[], readonly allowed: number }> {
  const startedAt = performance.now()
  const statuses = await run()
  return { statuses, allowed: perMinute + Math.ceil((performance.now() - startedAt) * perMinute / 60_000) }
}

/** Sends concurrent requests to the gateways in turn, on new connections to reach all workers. @returns the statuses */
function askAll(gateways: readonly string[], requests: number): Promise<number[]> {
  return Promise.all(Array.from({ length: requests }, async (_, n) => {
    const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }
    const response = await ask(gateways[n % gateways.length] as string, body)
    await response.arrayBuffer()
    return response.status
  }))
}

function ask(gateway: string, body: object): Promise<Response> {
  return fetch(`${gateway}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  })
}
