import { createHmac } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { Webhook } from '../../../src/gateway/alerts/webhook.ts'
import type { AlertEvent } from '../../../src/gateway/alerts/pending-events.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const SECRET = 'a-secret-of-the-webhook'

function event(id: string): AlertEvent {
  return { id, type: 'circuit.opened', at: '2026-11-21T09:30:00.000Z', severity: 'error', subject: 'up', message: 'down', data: {} }
}

interface Delivery {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** @param statuses of the responses, one after another; the last status repeats */
async function start(t: Test, statuses: readonly number[], secret: string | null = SECRET, file: string | null = null) {
  const deliveries: Delivery[] = []
  const waits: number[] = []
  let heard = (): void => {}
  const { url } = await startUpstream(t, async (req, res) => {
    deliveries.push({ headers: req.headers, body: String(await bodyOf(req)) })
    res.writeHead(statuses[deliveries.length - 1] ?? statuses.at(-1) as number, { location: '/other' }).end()
    heard()
  })
  const logged: Record<string, unknown>[] = []
  const webhook = new Webhook({
    config: () => ({ url: `${url}/hook`, headers: { 'x-team': 'ops' }, secret }),
    gateway: 'gw1',
    file,
    clock: {
      ...systemClock,
      setTimeout: (callback, ms) => {
        waits.push(ms)
        return systemClock.setTimeout(callback, 0)
      },
    },
    log: pino({}, { write: (line: string) => {
      logged.push(JSON.parse(line) as Record<string, unknown>)
      heard()
    } }),
  })
  t.teardown(() => webhook.close())
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise<void>(resolve => (heard = resolve))
  }
  return { webhook, deliveries, waits, logged, until }
}

t.test('an event is signed and delivered once', async t => {
  const { webhook, deliveries, until, logged } = await start(t, [204])
  webhook.send(event('e1'))
  webhook.send(event('e2'))
  await until(() => deliveries.length === 2)
  const [{ headers, body } = { headers: {}, body: '' }] = deliveries
  t.strictSame(JSON.parse(body), { ...event('e1'), gateway: 'gw1' })
  t.match(headers, { 'x-team': 'ops', 'content-type': 'application/json', 'webhook-id': 'e1' })
  const signed = createHmac('sha256', SECRET).update(`e1.${String(headers['webhook-timestamp'])}.${body}`).digest('base64')
  t.equal(headers['webhook-signature'], `v1,${signed}`)
  t.equal(deliveries[1]?.headers['webhook-id'], 'e2')
  t.strictSame(logged, [])
})

t.test('without a secret events are not signed; a secret with the prefix whsec_ is decoded from base64', async t => {
  const plain = await start(t, [200], null)
  plain.webhook.send(event('e1'))
  await plain.until(() => plain.deliveries.length === 1)
  t.equal(plain.deliveries[0]?.headers['webhook-signature'], undefined)
  const key = Buffer.from('0123456789abcdef')
  const encoded = await start(t, [200], `whsec_${key.toString('base64')}`)
  encoded.webhook.send(event('e1'))
  await encoded.until(() => encoded.deliveries.length === 1)
  const { headers, body } = encoded.deliveries[0] as Delivery
  const signed = createHmac('sha256', key).update(`e1.${String(headers['webhook-timestamp'])}.${body}`).digest('base64')
  t.equal(headers['webhook-signature'], `v1,${signed}`)
})

t.test('a failed delivery is repeated up to twelve times with the same id and increasing waits', async t => {
  const { webhook, deliveries, waits, logged, until } = await start(t, [503, 429, 200, 500])
  webhook.send(event('e1'))
  await until(() => deliveries.length === 3)
  t.strictSame(deliveries.map(({ headers }) => headers['webhook-id']), ['e1', 'e1', 'e1'])
  t.strictSame(waits, [1_000, 2_000])
  t.match(logged, [{ level: 40, why: 'status 503', event: 'e1' }])
  webhook.send(event('e2'))
  await until(() => logged.some(({ level }) => level === 50))
  t.equal(deliveries.length, 15, 'the second event is delivered twelve times')
  t.equal(Math.max(...waits), 300_000)
})

t.test('a delivery with the response 400 or 302 is not repeated', async t => {
  for (const status of [400, 302]) {
    const { webhook, deliveries, logged, until } = await start(t, [status])
    webhook.send(event('e1'))
    await until(() => logged.length === 1)
    t.match(logged, [{ level: 50, why: `status ${status}`, attempt: 1 }])
    t.equal(deliveries.length, 1)
  }
})

t.test('above 1,000 waiting events the oldest are dropped', async t => {
  const { webhook, deliveries, until } = await start(t, [200])
  for (let n = 0; n < 1_100; n++) webhook.send(event(`e${n}`))
  await until(() => deliveries.at(-1)?.headers['webhook-id'] === 'e1099')
  t.equal(deliveries.length, 1_000)
  t.equal(deliveries[0]?.headers['webhook-id'], 'e0', 'the event in delivery is not dropped')
})

t.test('events that are not delivered are saved and delivered after a restart', async t => {
  const file = join(t.testdir(), 'alerts.json')
  const before = await start(t, [503], SECRET, file)
  before.webhook.send(event('e1'))
  before.webhook.send(event('e2'))
  await before.until(() => before.deliveries.length > 1)
  before.webhook.close()
  t.equal(statSync(file).mode & 0o777, 0o600)
  const after = await start(t, [200], SECRET, file)
  await after.until(() => after.deliveries.length === 2)
  t.strictSame(after.deliveries.map(({ headers }) => headers['webhook-id']), ['e1', 'e2'])
  after.webhook.send(event('e3'))
  await after.until(() => after.deliveries.length === 3)
  while (readFileSync(file, 'utf8') !== '[]') await new Promise(resolve => setImmediate(resolve))
  after.webhook.close()
})

t.test('events are delivered even if their file cannot be read or written', async t => {
  const file = join(t.testdir({ 'alerts.json': 'no JSON' }), 'alerts.json')
  const broken = await start(t, [200], SECRET, file)
  t.match(broken.logged, [{ level: 40, msg: 'saved alerts cannot be read' }])
  const away = await start(t, [200], SECRET, join(t.testdir(), 'none', 'alerts.json'))
  away.webhook.send(event('e1'))
  away.webhook.send(event('e2'))
  await away.until(() => away.deliveries.length === 2 && away.logged.length === 1)
  t.match(away.logged, [{ level: 40, msg: 'waiting alerts cannot be saved: a restart loses them' }])
})
