import t from 'tap'
import { ERRORS } from '../../../src/base/errors.ts'
import type { RequestDetails } from '../../../src/console/api/logs.ts'
import { adviceFor } from '../../../src/console/web/src/pages/request/advice.ts'
import { explainLink, headline, upstreamRole } from '../../../src/console/web/src/pages/request/headline.ts'
import { ticks, timelineOf } from '../../../src/console/web/src/pages/request/timeline.ts'
import { knownEndpoints } from '../../../src/protocols/classify-path.ts'

function request(row: Partial<RequestDetails['row']>, attempts: Partial<RequestDetails['attempts'][number]>[] = [],
  running = false): RequestDetails {
  return {
    row: { end: 'complete', error: null, first_byte_ms: null, duration_ms: 100, ...row } as RequestDetails['row'],
    running,
    attempts: attempts.map(attempt =>
      ({ outcome: 'ok', at_ms: null, ms: 1, ...attempt }) as RequestDetails['attempts'][number]),
  } as RequestDetails
}

t.test('the timeline has a bar for each attempt and for each wait between attempts', async t => {
  const { bars, span } = timelineOf(request({ first_byte_ms: 60, duration_ms: 200 }, [
    { at_ms: 5, ms: 10, outcome: 'upstream_reset' }, { at_ms: 50, ms: 150 },
  ]), 0)
  t.strictSame(bars.map(({ kind, from, to, failed }) => [kind, from, to, failed]), [
    ['gateway', 0, 5, false],
    ['attempt', 5, 15, true],
    ['waiting', 15, 50, false],
    ['attempt', 50, 200, false],
    ['response', 60, 200, false],
  ])
  t.equal(span, 200)
})

t.test('a refused request has a single bar and no attempt', async t => {
  const { bars } = timelineOf(request({ end: 'refused', error: 'rate_limited', duration_ms: 0.4 }), 0)
  t.match(bars, [{ kind: 'gateway', from: 0, to: 0.4, failed: true }])
})

t.test('the headline says whether a cost is unknown because of the price or of the usage', async t => {
  const unknown = request({ cost_usd: null })
  t.match(headline({ ...unknown, price_version: null }, 0), 'no price for this model')
  t.match(
    headline({ ...unknown, price_version: 'config' }, 0), 'part of the usage is unknown or has no price',
  )
})

t.test('the label of the upstream says whether the upstream was tried and responded', async t => {
  t.equal(upstreamRole(request({ end: 'refused', upstream: 'sim' })), 'Upstream (not reached)')
  t.equal(upstreamRole(request({ end: 'refused', upstream: null })), 'Upstream')
  t.equal(
    upstreamRole(request({ upstream: 'sim' }, [{ outcome: 'upstream_unreachable', status: null }])),
    'Last tried',
  )
  t.equal(
    upstreamRole(request({ upstream: 'sim' }, [{ outcome: 'error_answer', status: 503 }])), 'Served by',
  )
  t.equal(upstreamRole(request({ upstream: 'sim' }, [{ status: 200 }])), 'Served by')
})

t.test('a request to a known endpoint links to the explanation of its route', async t => {
  for (const { path, endpoint } of knownEndpoints()) {
    if (endpoint.ownResponse !== null) continue
    const { row } = request({ endpoint: endpoint.name, model: 'm', key: null })
    const query = new URL(explainLink(row) ?? '/', 'http://console').searchParams
    t.equal(query.get('path'), path.replace('{model}', 'm'))
  }
})

t.test('an attempt without a start time starts at the end of the previous attempt', async t => {
  const { bars } = timelineOf(request({}, [{ ms: 10, outcome: 'upstream_reset' }, { ms: 20 }]), 0)
  t.match(bars.filter(({ kind }) => kind === 'attempt'), [{ from: 0, to: 10 }, { from: 10, to: 30 }])
})

t.test('the bars of a running request end at the current time', async t => {
  const { bars, span } =
    timelineOf(request({ first_byte_ms: 50, duration_ms: null }, [{ at_ms: 2, ms: 0 }], true), 4000)
  t.match(bars.slice(-2),
    [{ kind: 'attempt', to: 4000, open: true, failed: false }, { kind: 'response', to: 4000, open: true }])
  t.equal(span, 4000)
})

t.test('the time scale has three to six lines at round numbers', async t => {
  t.strictSame(ticks(1000), [0, 200, 400, 600, 800, 1000])
  t.strictSame(ticks(7321), [0, 2000, 4000, 6000])
  t.strictSame(ticks(1), [0, 0.2, 0.4, 0.6, 0.8, 1])
  for (const span of [1, 3.3, 17, 999, 1_800_000]) t.ok(ticks(span).length <= 6 && ticks(span).length >= 3,
    `${span} ms`)
})

t.test('each error has advice; a complete request has no advice', async t => {
  for (const error of Object.keys(ERRORS)) t.ok(adviceFor({ end: 'error', error })?.text, error)
  t.equal(adviceFor({ end: 'complete', error: null }), null)
  t.match(adviceFor({ end: 'error', error: null })?.text, /unchanged/)
})
