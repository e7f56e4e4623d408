import t from 'tap'
import { LEAST, load } from '../behaviour/config/loading.ts'
import { configChanges } from '../../src/config/changes.ts'

t.test('configChanges lists the names of added, changed and removed parts', async t => {
  const config = (rest = '') => load(t, `${LEAST}\n${rest}`).config
  const models = 'models: { a: { price: { input: 1, output: 2 } }, b: { price: { input: 1, output: 2 } } }\n'
  t.strictSame(configChanges(config(models), config(`# a comment\n${models}`)), [])
  t.strictSame(configChanges(config(models), config('models: { b: { price: { input: 1, output: 3 } }, c: { price: { input: 1, output: 2 } } }\n')), [
    'models.a: removed', 'models.b: changed', 'models.c: added',
  ])
  const keys = configChanges(config('limits: { concurrent: 1 }\n'), config('keys: [{ name: new, key: sk-0123456789abcdef }]\n'))
  t.ok(keys.includes('keys.new: added'))
  t.ok(keys.includes('limits: changed'))
  t.notMatch(JSON.stringify(keys), 'sk-0123')
})
