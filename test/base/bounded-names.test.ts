import t from 'tap'
import { BoundedNames } from '../../src/base/bounded-names.ts'

t.test('each group admits its first names, and refuses new names when it is full', async t => {
  const names = new BoundedNames()
  for (const name of ['a', 'b', 'a']) t.equal(names.admits('project', name, 2), true)
  t.equal(names.admits('project', 'c', 2), false)
  t.equal(names.admits('project', 'b', 2), true)
  t.equal(names.admits('env', 'c', 2), true, 'another group has its own names')
  t.equal(names.admits('project', 'c', 3), true, 'a higher limit applies at once')
  names.keep(new Set(['env']))
  t.equal(names.admits('project', 'd', 1), true, 'a group that was forgotten is empty')
})
