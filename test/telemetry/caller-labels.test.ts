import t from 'tap'
import { CallerLabels } from '../../src/telemetry/caller-labels.ts'

t.test('a thousand callers of an issuer become labels, and keys always do', async t => {
  const labels = new CallerLabels()
  t.equal(labels.labelOf('corp:alice'), 'corp:alice', 'a key, without issuers')
  labels.configure(['corp', 'other'])
  const made = new Set(Array.from({ length: 20_000 }, (_, n) => labels.labelOf(`corp:${n}`)))
  t.equal(made.size, 1_001)
  t.ok(made.has('corp:other'))
  t.equal(labels.labelOf('corp:0'), 'corp:0', 'a label stays')
  t.equal(labels.labelOf('other:a'), 'other:a')
  t.strictSame([labels.labelOf('team-a'), labels.labelOf('console:ops'), labels.labelOf(null)], ['team-a', 'console:ops', null])
  labels.configure(['corp'])
  t.equal(labels.labelOf('corp:20001'), 'corp:other')
})
