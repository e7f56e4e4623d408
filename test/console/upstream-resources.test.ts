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

t.test('the remainder of a limit is the lowest remainder of all workers', async t => {
  const upstream = upstreamOf(t, 'limits: { requests_per_minute: 60, concurrent: 5 }')
  const requests = (remaining: number, resetMs: number) => workerWith({ rateLimits: { requests: { limit: 60, remaining, resetMs }, tokens: null } })
  t.strictSame(limitsOf(upstream, [requests(40, 1000), requests(30, 2000), workerWith({})], 3), { requests: { limit: 60, remaining: 30, reset_ms: 2000 }, tokens: null, concurrent: { limit: 5, running: 3 } })
  t.strictSame(limitsOf(upstream, [], 0)?.requests, { limit: 60, remaining: null, reset_ms: null })
  t.equal(limitsOf(upstreamOf(t, 'websocket: false'), [], 0), null)
})

t.test('a credential of a pool is listed after a worker has reported the state of the credential', async t => {
  const upstream = upstreamOf(t, 'auth: { pool: [{ bearer: sk-1 }, { bearer: { command: [get] } }] }')
  t.strictSame(credentialsOf(upstream, [], NOW), [])
  t.match(credentialsOf(upstream, [withCredentials({}, { fetchedAt: NOW })], NOW), [{ kind: 'static', state: 'ready', fetched_at: null }, { kind: 'command', fetched_at: iso(0) }])
  t.strictSame(credentialsOf(upstreamOf(t, 'websocket: false'), [withCredentials({})], NOW), [])
})

t.test("a client's own credential is ready, although the gateway has none", async t => {
  t.match(credentialsOf(upstreamOf(t, 'auth: { client: true }'), [workerWith({})], NOW), [{ kind: 'client', state: 'ready', fault: null, expires_at: null }])
})

const STATES: readonly (readonly [what: string, states: readonly Partial<CredentialState>[], expected: object])[] = [
  ['the credential works', [{}, {}], { state: 'ready', fault: null, rests_until: null, expires_at: null, rate_limits: null }],
  ['the source of the credential fails', [{}, { fault: 'ENOENT' }], { state: 'unavailable', fault: 'ENOENT' }],
  ['the renewal fails before the expiry', [{ fault: '503', fetchedAt: NOW - 9, expiresAt: NOW + 1 }], { state: 'refresh_failing', fault: '503' }],
  ['the renewal fails after the expiry', [{ fault: '503', fetchedAt: NOW - 9, expiresAt: NOW }], { state: 'unavailable' }],
  ['the renewal fails and the credential does not expire', [{ fault: '503', fetchedAt: NOW - 9 }], { state: 'refresh_failing' }],
  ['the credential rests', [{ rest: { until: NOW + 5, reason: 'rate_limited' } }, { rest: { until: NOW + 9, reason: 'refused' } }], { state: 'refused', rests_until: iso(9) }],
  ['the credential rests and its source fails', [{ fault: 'x', rest: { until: NOW + 5, reason: 'rate_limited' } }], { state: 'rate_limited', fault: 'x' }],
  ['the workers fetched the credential at different times', [{ fetchedAt: NOW + 2, expiresAt: NOW + 9 }, { fetchedAt: NOW + 1, expiresAt: NOW + 10 }, {}], { fetched_at: iso(1), expires_at: iso(9) }],
  [
    'the upstream reported rate limits', [{ rateLimits: { at: NOW, requests: { limit: 9, remaining: 8 }, tokens: null } }, { rateLimits: { at: NOW + 1, requests: { limit: 9, remaining: 7 }, tokens: null } }],
    { rate_limits: { at: iso(1), requests: { limit: 9, remaining: 7 }, tokens: null } },
  ],
]

for (const [what, states, expected] of STATES) {
  t.test(`the state of a credential is derived from its workers: ${what}`, async t => {
    t.match(credentialsOf(upstreamOf(t, 'auth: { bearer: sk-1 }'), states.map(state => withCredentials(state)), NOW), [expected])
  })
}
