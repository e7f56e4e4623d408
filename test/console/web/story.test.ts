import t from 'tap'
import { ERRORS } from '../../../src/base/errors.ts'
import type { RequestDetails } from '../../../src/console/api/logs.ts'
import { adviceFor } from '../../../src/console/web/src/pages/story/advice.ts'
import { explainLink, headline, upstreamRole } from '../../../src/console/web/src/pages/story/headline.ts'
import { ticks, timelineOf } from '../../../src/console/web/src/pages/story/timeline.ts'
import { knownEndpoints } from '../../../src/protocols/endpoint.ts'

function story(row: Partial<RequestDetails['row']>, attempts: Partial<RequestDetails['attempts'][number]>[] = [],
  running = false): RequestDetails {
  return {
    row: { end: 'complete', error: null, first_byte_ms: null, duration_ms: 100, ...row } as RequestDetails['row'],
    running,
    attempts: attempts.map(attempt =>
      ({ outcome: 'ok', at_ms: null, ms: 1, ...attempt }) as RequestDetails['attempts'][number]),
  } as RequestDetails
}

t.test('each attempt has its bar, and so has the time between two', async t => {
  const { bars, span } = timelineOf(story({ first_byte_ms: 60, duration_ms: 200 }, [
    { at_ms: 5, ms: 10, outcome: 'upstream_reset' }, { at_ms: 50, ms: 150 },
  ]), 0)
  t.strictSame(bars.map(({ kind, from, to, failed }) => [kind, from, to, failed]), [
    ['gateway', 0, 5, false],
    ['attempt', 5, 15, true],
    ['waiting', 15, 50, false],
    ['attempt', 50, 200, false],
    ['answer', 60, 200, false],
  ])
  t.equal(span, 200)
})

t.test('what was refused has no attempt, and says so in one bar', async t => {
  const { bars } = timelineOf(story({ end: 'refused', error: 'rate_limited', duration_ms: 0.4 }), 0)
  t.match(bars, [{ kind: 'gateway', from: 0, to: 0.4, failed: true }])
})

t.test('a use that is not known is told from a price that is not', async t => {
  const unknown = story({ cost_usd: null })
  t.match(headline({ ...unknown, price_version: null }, 0), 'there is no price for what was used')
  t.match(
    headline({ ...unknown, price_version: 'config' }, 0), 'not all that was used is known, or has a price',
  )
})

t.test('an upstream that heard nothing of a request is not said to have answered it', async t => {
  t.equal(upstreamRole(story({ end: 'refused', upstream: 'sim' })), 'Would have gone to')
  t.equal(upstreamRole(story({ end: 'refused', upstream: null })), 'Upstream')
  t.equal(
    upstreamRole(story({ upstream: 'sim' }, [{ outcome: 'upstream_unreachable', status: null }])),
    'Last asked',
  )
  t.equal(
    upstreamRole(story({ upstream: 'sim' }, [{ outcome: 'error_answer', status: 503 }])), 'Answered by',
  )
  t.equal(upstreamRole(story({ upstream: 'sim' }, [{ status: 200 }])), 'Answered by')
})

t.test('where a request to an endpoint with a name goes is explained', async t => {
  for (const { path, endpoint } of knownEndpoints()) {
    if (endpoint.ownResponse !== null) continue
    const { row } = story({ endpoint: endpoint.name, model: 'm', key: null })
    const query = new URL(explainLink(row) ?? '/', 'http://console').searchParams
    t.equal(query.get('path'), path.replace('{model}', 'm'))
  }
})

t.test('an attempt of which nobody knows when it began follows the one before', async t => {
  const { bars } = timelineOf(story({}, [{ ms: 10, outcome: 'upstream_reset' }, { ms: 20 }]), 0)
  t.match(bars.filter(({ kind }) => kind === 'attempt'), [{ from: 0, to: 10 }, { from: 10, to: 30 }])
})

t.test('what is still running ends at the present', async t => {
  const { bars, span } =
    timelineOf(story({ first_byte_ms: 50, duration_ms: null }, [{ at_ms: 2, ms: 0 }], true), 4000)
  t.match(bars.slice(-2),
    [{ kind: 'attempt', to: 4000, open: true, failed: false }, { kind: 'answer', to: 4000, open: true }])
  t.equal(span, 4000)
})

t.test('the scale has a few round lines', async t => {
  t.strictSame(ticks(1000), [0, 200, 400, 600, 800, 1000])
  t.strictSame(ticks(7321), [0, 2000, 4000, 6000])
  t.strictSame(ticks(1), [0, 0.2, 0.4, 0.6, 0.8, 1])
  for (const span of [1, 3.3, 17, 999, 1_800_000]) t.ok(ticks(span).length <= 6 && ticks(span).length >= 3,
    `${span} ms`)
})

t.test('there is advice for every error, and none where nothing is wrong', async t => {
  for (const error of Object.keys(ERRORS)) t.ok(adviceFor({ end: 'error', error })?.text, error)
  t.equal(adviceFor({ end: 'complete', error: null }), null)
  t.match(adviceFor({ end: 'error', error: null })?.text, /unchanged/)
})
