import t from 'tap'
import type { Upstream } from '../../src/config/types.ts'
import type { WorkerUpstream } from '../../src/console/state/workers.ts'
import { credentialsOf, limitsOf } from '../../src/console/upstream-resources.ts'
import { CONSTANT } from '../../src/upstreams/credentials/credential-state.ts'
import type { CredentialState } from '../../src/upstreams/credentials/credential-state.ts'
import { LEAST, load } from '../behaviour/config/loading.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const iso = (ms: number) => new Date(NOW + ms).toISOString()

function upstreamOf(t: Parameters<typeof load>[0], more: string): Upstream {
  const upstream = load(t, `${LEAST.replace('simulator: true', `url: "http://127.0.0.1:1", ${more}`)}auth: open\n`).config.upstreams.get('demo')
  if (upstream === undefined) throw new Error('no upstream')
  return upstream
}

const workerWith = (more: Partial<WorkerUpstream>): WorkerUpstream => ({ name: 'demo', rateLimits: { requests: null, tokens: null }, credentials: [], ...more })
const withCredentials = (...credentials: Partial<CredentialState>[]) => workerWith({ credentials: credentials.map(each => ({ ...CONSTANT, ...each })) })

t.test('the remaining limit is the lowest that a worker reports', async t => {
  const upstream = upstreamOf(t, 'limits: { requests_per_minute: 60, concurrent: 5 }')
  const requests = (remaining: number, resetMs: number) => workerWith({ rateLimits: { requests: { limit: 60, remaining, resetMs }, tokens: null } })
  t.strictSame(limitsOf(upstream, [requests(40, 1000), requests(30, 2000), workerWith({})], 3), { requests: { limit: 60, remaining: 30, reset_ms: 2000 }, tokens: null, concurrent: { limit: 5, running: 3 } })
  t.strictSame(limitsOf(upstream, [], 0)?.requests, { limit: 60, remaining: null, reset_ms: null })
  t.equal(limitsOf(upstreamOf(t, 'websocket: false'), [], 0), null)
})

t.test('each credential of a pool has its own state, once a worker reports it', async t => {
  const upstream = upstreamOf(t, 'auth: { pool: [{ bearer: sk-1 }, { bearer: { command: [get] } }] }')
  t.strictSame(credentialsOf(upstream, [], NOW), [])
  t.match(credentialsOf(upstream, [withCredentials({}, { fetchedAt: NOW })], NOW), [{ kind: 'static', state: 'ready', fetched_at: null }, { kind: 'command', fetched_at: iso(0) }])
  t.strictSame(credentialsOf(upstreamOf(t, 'websocket: false'), [withCredentials({})], NOW), [])
})

t.test("a client's own credential is ready, although the gateway has none", async t => {
  t.match(credentialsOf(upstreamOf(t, 'auth: { client: true }'), [workerWith({})], NOW), [{ kind: 'client', state: 'ready', fault: null, expires_at: null }])
})

const STATES: readonly (readonly [what: string, states: readonly Partial<CredentialState>[], expected: object])[] = [
  ['it works', [{}, {}], { state: 'ready', fault: null, rests_until: null, expires_at: null, rate_limits: null }],
  ['its source fails', [{}, { fault: 'ENOENT' }], { state: 'unavailable', fault: 'ENOENT' }],
  ['only its renewal fails', [{ fault: '503', fetchedAt: NOW - 9, expiresAt: NOW + 1 }], { state: 'refresh_failing', fault: '503' }],
  ['it has expired', [{ fault: '503', fetchedAt: NOW - 9, expiresAt: NOW }], { state: 'unavailable' }],
  ['it does not expire', [{ fault: '503', fetchedAt: NOW - 9 }], { state: 'refresh_failing' }],
  ['it rests', [{ rest: { until: NOW + 5, reason: 'rate_limited' } }, { rest: { until: NOW + 9, reason: 'refused' } }], { state: 'refused', rests_until: iso(9) }],
  ['it rests and fails', [{ fault: 'x', rest: { until: NOW + 5, reason: 'rate_limited' } }], { state: 'rate_limited', fault: 'x' }],
  ['workers fetched it at different times', [{ fetchedAt: NOW + 2, expiresAt: NOW + 9 }, { fetchedAt: NOW + 1, expiresAt: NOW + 10 }, {}], { fetched_at: iso(1), expires_at: iso(9) }],
  [
    'its rate limits were reported', [{ rateLimits: { at: NOW, requests: { limit: 9, remaining: 8 }, tokens: null } }, { rateLimits: { at: NOW + 1, requests: { limit: 9, remaining: 7 }, tokens: null } }],
    { rate_limits: { at: iso(1), requests: { limit: 9, remaining: 7 }, tokens: null } },
  ],
]

for (const [what, states, expected] of STATES) {
  t.test(`the state of a credential: ${what}`, async t => {
    t.match(credentialsOf(upstreamOf(t, 'auth: { bearer: sk-1 }'), states.map(state => withCredentials(state)), NOW), [expected])
  })
}
