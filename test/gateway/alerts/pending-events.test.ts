import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { PendingEvents } from '../../../src/gateway/alerts/pending-events.ts'
import type { AlertEvent } from '../../../src/gateway/alerts/pending-events.ts'

const log = pino({ level: 'silent' })
const event = (id: string): AlertEvent => ({ id, type: 'circuit.opened', at: '', severity: 'error', subject: null, message: '', data: {} })

t.test('close saves the latest 1,000 of the waiting events', async t => {
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

t.test('a save that is running at close does not overwrite the file that close saves', async t => {
  const directory = t.testdir()
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) await new Promise(resolve => setImmediate(resolve))
  }
  const lost: number[] = []
  for (let before = 0; before < 80; before++) {
    const file = join(directory, `alerts-${before}.json`)
    const events = new PendingEvents(file, log)
    events.add(event('e1'), false)
    events.add(event('e2'), false)
    await turns(before)
    events.close()
    await turns(80)
    if ((JSON.parse(readFileSync(file, 'utf8')) as AlertEvent[]).length < 2) lost.push(before)
  }
  t.strictSame(lost, [])
})
