import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'

function routes(t: Test, text: string) {
  const upstreams = 'upstreams: { a: { simulator: true }, b: { simulator: true, health: { path: /ok } } }'
  const file = `${t.testdir({ 'gateway.yaml': `${upstreams}\nauth: open\nroutes:\n${text}\n` })}/gateway.yaml`
  return loadConfig(file, {}).config.routes
}

t.test('the default of retries is the number of targets after the first', t => {
  const found = routes(
    t, '  - { model: x, to: a }\n  - { model: y, to: [a, b, a] }\n  - { to: [a, b], retries: 0 }',
  )
  t.strictSame(found.map(route => route.retries), [0, 2, 0])
  t.end()
})

t.test('optional features of a route are off by default', t => {
  t.match(routes(t, '  - { to: a }')[0], {
    strategy: 'ordered', affinity: null, on: { contextLength: null, contentFilter: null }, resume: 'off', hedgeAfter: null, fit: false,
    targets: [{ prefill: false, weight: 1, upstream: { health: null } }],
  })
  t.end()
})

t.test('affinity, fallback targets, prefill and health checks are read', t => {
  const found = routes(t, `
  - { model: x, to: [a, { upstream: b, prefill: true }], affinity: key, resume: continue, hedge: { after: 1500ms } }
  - { model: y, to: a, affinity: "header:X-Session-Id",
      on: { context_length: b, content_filter: { upstream: a, model: m } } }
`)
  t.match(found[0], {
    affinity: { by: 'key' }, resume: 'continue', hedgeAfter: 1500,
    targets: [{ prefill: false }, { prefill: true, upstream: { health: { path: '/ok', every: 10_000 } } }],
  })
  t.match(found[1], {
    affinity: { by: 'header', name: 'x-session-id' },
    on: {
      contextLength: { upstream: { name: 'b' }, model: null },
      contentFilter: { upstream: { name: 'a' }, model: 'm' },
    },
  })
  t.end()
})

t.test('each route has a summary of one line for the ledger', t => {
  const found = routes(t, `
  - { path: /v1/*, model: "gpt-*", to: a }
  - { model: [m1, m2, m3, m4, m5, m6, m7], to: [a, { upstream: b, model: own }], strategy: weighted }
  - { to: b }
`)
  const [{ line = 0 } = {}] = found
  t.strictSame(found.map(route => route.text), [
    `routes[0], line ${line}: path /v1/*, model gpt-* -> a (ordered)`,
    `routes[1], line ${line + 1}: model m1 | m2 | m3 | m4 | m5 and 2 more -> a | b: own (weighted)`,
    `routes[2], line ${line + 2}: everything -> b (ordered)`,
  ])
  t.end()
})
