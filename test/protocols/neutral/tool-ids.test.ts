import t from 'tap'
import { fittingToolId } from '../../../src/protocols/neutral/tool-ids.ts'

const rule = { pattern: /^[a-zA-Z0-9_-]+$/, maxLength: 40, prefix: 'toolu_' }

t.test('an id that the target accepts is not changed', async t => {
  t.equal(fittingToolId('call_abc-1', rule), 'call_abc-1')
})

t.test('an id that the target refuses is always rewritten to the same id', async t => {
  for (const id of ['functions.get_time:0', 'x'.repeat(41), '']) {
    const fitting = fittingToolId(id, rule)
    t.match(fitting, /^toolu_[0-9a-f]{24}$/)
    t.equal(fittingToolId(id, rule), fitting)
  }
  t.not(fittingToolId('functions.get_time:0', rule), fittingToolId('functions.get_time:1', rule))
})
