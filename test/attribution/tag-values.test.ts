import t from 'tap'
import { OTHER, TagValues } from '../../src/attribution/tag-values.ts'

t.test('each tag keeps its first values, and further ones count as other', async t => {
  const values = new TagValues()
  for (const value of ['a', 'b', 'a']) t.equal(values.bounded('project', value, 2), value)
  t.equal(values.bounded('project', 'c', 2), OTHER)
  t.equal(values.bounded('project', 'b', 2), 'b')
  t.equal(values.bounded('env', 'c', 2), 'c', 'another tag has its own values')
  t.equal(values.bounded('project', 'c', 3), 'c', 'a higher limit applies at once')
  values.keep(new Map([['env', null]]))
  t.equal(values.bounded('project', 'd', 1), 'd', 'a tag that was removed starts anew')
})
