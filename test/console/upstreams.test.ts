import t from 'tap'
import type { Test } from 'tap'
import { sendJson, startTokenServer } from '../support/token-server.ts'
import { bodyOf, startUpstream } from '../support/upstream.ts'
import { chat, PASSWORD, startConsole, YAML } from '../behaviour/console/console.ts'

interface Details {
  readonly upstream: { readonly health: string }
  readonly circuits: readonly { readonly model: string, readonly since: string, readonly first: object, readonly last: object }[]
  readonly changes: readonly { readonly state: string, readonly first: { readonly reason: string, readonly request_id: string } }[]
  readonly report: { readonly outcomes: Readonly<Record<string, number>> }
}

t.test('the console shows the time at which an upstream went down, and the first failure', async t => {
  let isDown = true
  let failures = 0
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    const error = `{"error":{"type":"${failures++ === 0 ? 'first_fault' : 'overloaded'}"}}`
    res.writeHead(isDown ? 503 : 200, { 'content-type': 'application/json' }).end(isDown ? error : '{"choices":[]}')
  })
  const console = await startConsole(t, YAML.replace('sim: { simulator: true }', `sim: { url: "${url}" }`)
    .replace('sim }, { model: "other*", to: sim }', 'sim, retries: 0 }'))
  const admin = await console.login({ name: 'ops', password: PASSWORD })
  const details = async () => {
    console.clock.advance(Date.now() + 1 - console.clock.wall())
    return (await admin.ask('/upstreams/sim')).json as Details
  }
  t.match(await details(), { upstream: { health: 'unknown' }, circuits: [], changes: [] })

  const first = (await chat(console)).headers.get('x-gateway-request-id') as string
  for (let n = 0; n < 3; n++) await chat(console)
  const down = await details()
  t.match(down, {
    upstream: { health: 'down' },
    circuits: [{
      model: 'demo', circuit: 'open', failures: 4,
      first: { reason: 'status 503 first_fault', request_id: first }, last: { reason: 'status 503 overloaded' },
    }],
    changes: [{ state: 'open', worker: 0, model: 'demo', first: { request_id: first } }],
    credential_failure: null,
  })
  t.ok(Math.abs(Date.parse(down.circuits[0]?.since ?? '') - Date.now()) < 60_000)

  isDown = false
  // The only target has an open circuit, and is tried nevertheless.
  while ((await details()).circuits.length > 0) await chat(console)
  t.match((await details()).changes, [{ state: 'open' }, { state: 'closed', first: { request_id: first } }])
  t.equal((await admin.ask('/upstreams/nothing')).status, 404)
  const holder = await console.login({ key: 'sk-second-0123456789abcdef' })
  t.equal((await holder.ask('/upstreams/sim')).status, 403)
})

interface Resources {
  readonly limits: Readonly<Record<'requests' | 'tokens' | 'concurrent', Readonly<Record<string, number>>>>
  readonly credentials: readonly Readonly<Record<'kind' | 'state' | 'fault' | 'rests_until' | 'fetched_at' | 'expires_at', string | null>>[]
}

/** The page of an upstream after some requests. @param upstream its keys in the configuration */
async function resourcesAfter(t: Test, requests: number, upstream: string) {
  const gateway = await startConsole(t, YAML.replace('sim: { simulator: true }', `sim: { ${upstream} }`)
    .replace('sim }, { model: "other*", to: sim }', 'sim, retries: 0 }'))
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const look = async () => (await admin.ask('/upstreams/sim')).json as Resources
  for (let n = 0; n < requests; n++) await chat(gateway)
  return { gateway, look }
}

t.test('the console shows each limit of an upstream and its remainder', async t => {
  const held = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  let requests = 0
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    if (++requests === 3) {
      asked.resolve()
      await held.promise
    }
    sendJson(res, 200, { choices: [], usage: { prompt_tokens: 90, completion_tokens: 10 } })
  })
  const { gateway, look } = await resourcesAfter(
    t, 2, `url: "${url}", limits: { requests_per_minute: 3, tokens_per_minute: 8000, concurrent: 4 }`,
  )
  const third = chat(gateway)
  await asked.promise
  const { limits, credentials } = await look()
  t.match(limits, { requests: { limit: 3 }, tokens: { limit: 8_000 }, concurrent: { limit: 4, running: 1 } })
  // Requests and tokens drain from the buckets: one request in 20 s, its tokens in 16 s.
  for (const { remaining = Infinity, limit = 0, reset_ms: reset = 0 } of [limits.requests, limits.tokens]) {
    t.ok(remaining < limit && reset > 0, `${remaining} of ${limit}, ${reset} ms`)
  }
  t.strictSame(credentials, [])
  held.resolve()
  await third
})

t.test('an upstream without limits and credentials shows neither', async t => {
  const { look } = await resourcesAfter(t, 1, 'simulator: true')
  t.match(await look(), { limits: null, credentials: [] })
})

t.test('each credential of a pool shows the end of its rest and its remaining rate limits', async t => {
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    const { authorization } = req.headers
    if (authorization === 'Bearer sk-two') return sendJson(res, 401, { error: { message: 'bad key' } })
    if (authorization === 'Bearer sk-three') {
      res.setHeader('retry-after', '60')
      return sendJson(res, 429, {})
    }
    res.setHeader('x-ratelimit-limit-requests', '100').setHeader('x-ratelimit-remaining-requests', '40')
    return sendJson(res, 200, { choices: [] })
  })
  const { look } = await resourcesAfter(t, 3, `url: "${url}", auth: { pool: [{ bearer: sk-one }, { bearer: sk-two }, { bearer: sk-three }] }`)
  const { credentials } = await look()
  t.match(credentials, [
    { kind: 'static', state: 'ready', fault: null, rests_until: null, fetched_at: null, expires_at: null, rate_limits: { requests: { limit: 100, remaining: 40 }, tokens: null } },
    { kind: 'static', state: 'refused' },
    { kind: 'static', state: 'rate_limited' },
  ])
  for (const [at, ms] of [[1, 30_000], [2, 60_000]] as const) {
    const left = Date.parse(credentials[at]?.rests_until ?? '') - Date.now()
    t.ok(left > ms - 20_000 && left <= ms, `${left} ms`)
  }
})

t.test('the console shows when a token was fetched, when the token expires and why its token server fails', async t => {
  const tokens = await startTokenServer(t)
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.setHeader('x-ratelimit-limit-tokens', '1000').setHeader('x-ratelimit-remaining-tokens', '990')
    sendJson(res, 200, { choices: [] })
  })
  const oauth2 = `url: "${url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: secret } }`
  const { look } = await resourcesAfter(t, 1, oauth2)
  const [fetched] = (await look()).credentials
  t.match(fetched, { kind: 'oauth2', state: 'ready', rate_limits: { tokens: { limit: 1000, remaining: 990 } } })
  const lifetime = Date.parse(fetched?.expires_at ?? '') - Date.parse(fetched?.fetched_at ?? '')
  t.equal(lifetime, 3_600_000)
  t.ok(Math.abs(Date.parse(fetched?.fetched_at ?? '') - Date.now()) < 60_000)

  tokens.fault = res => sendJson(res, 401, { error: 'invalid_client' })
  const { look: lookAgain } = await resourcesAfter(t, 1, oauth2)
  t.match(await lookAgain(), {
    credentials: [{ state: 'unavailable', fault: 'the token server responded 401 (invalid_client)', fetched_at: null }],
    credential_failure: { reason: 'the token server responded 401 (invalid_client)' },
  })
})
