import t from 'tap'
import { withReports } from '../../console/reports/filled.ts'
import { openBooks, priced } from '../billing/books.ts'
import { figuresOf } from './figures-of.ts'

const YAML = `upstreams: { demo: { simulator: true } }
routes:
  - { path: /v1/*, model: "sim*", to: demo }
keys: [{ name: team-a, key: a-key-that-is-long-enough }, { name: team-b, key: another-key-that-is-long }]
${priced('sim')}`

t.test('requests, usage and cost in the reports equal the traffic of the gateway', async t => {
  const books = await openBooks(t, YAML)
  const ask = async (key: string, model: string) => {
    const response = await fetch(`${books.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Say something.' }] }),
    })
    await response.text()
    return response.headers.get('x-gateway-request-id') ?? ''
  }
  const first = await ask('a-key-that-is-long-enough', 'sim')
  await ask('another-key-that-is-long', 'sim')
  await ask('another-key-that-is-long', 'sim,status=503')
  const refused = await ask('another-key-that-is-long', 'nothing-like-it')
  const rows = [...(await books.close()).values()]
  t.equal(rows.length, 4)
  await withReports(books.file, async reports => {
    const panel = await reports.panel({}, null)
    t.strictSame(panel.now.figures, figuresOf(rows))
    const billing = await reports.billing({ by: 'key' }, null)
    t.strictSame(new Map(billing.groups.map(({ name, figures }) => [name, figures])), new Map(
      ['team-a', 'team-b'].map(name => [name, figuresOf(rows.filter(({ key }) => key === name))])))
    const { stories: [story] } = await reports.requestDetails(first, null)
    t.match(story?.route, /^routes\[0\], line \d+: path \/v1\/\*, model sim\* -> demo \(ordered\)$/)
    t.match((await reports.requestDetails(refused, null)).stories, [{ route: null, row: { end: 'refused' } }])
  }, { now: () => Date.now() })
})
