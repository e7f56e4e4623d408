import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { PendingEvents } from '../../../src/gateway/alerts/pending-events.ts'
import type { AlertEvent } from '../../../src/gateway/alerts/pending-events.ts'

const log = pino({ level: 'silent' })
const event = (id: string): AlertEvent => ({ id, type: 'circuit.opened', at: '', severity: 'error', subject: null, message: '', data: {} })

t.test('close saves the waiting events, without the oldest above the limit', async t => {
  const file = join(t.testdir(), 'alerts.json')
  const events = new PendingEvents(file, log)
  for (let n = 0; n < 1_003; n++) events.add(event(`e${n}`), n > 0)
  t.equal(events.dropped, 3)
  events.removeFirst()
  events.close()
  events.removeFirst()
  const kept = (JSON.parse(readFileSync(file, 'utf8')) as AlertEvent[]).map(({ id }) => id)
  t.equal(kept.length, 999)
  t.strictSame([kept[0], kept.at(-1)], ['e4', 'e1002'])
  const again = new PendingEvents(file, log)
  t.equal(again.first?.id, 'e4')
  again.close()
})
