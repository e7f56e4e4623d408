import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const KEYS = 'keys: [{ name: a, key: sk-0123456789abcdef, group: research }]\n'

t.test('the chain of a group has the group and its ancestors, in that order', async t => {
  const { config } = load(t, `${LEAST}groups:
  research: { parent: company, models: ["gpt-*"], limits: { requests_per_minute: 600 } }
  company: { limits: { budget: { usd: 5000, per: month } } }
${KEYS}`)
  t.match(config.keys, [{ group: 'research' }])
  t.strictSame(config.groups.get('research')?.chain.map(({ name }) => name), ['research', 'company'])
  t.match(config.groups.get('research')?.chain, [
    { parent: 'company', models: ['gpt-*'], limits: { requestsPerMinute: 600, budget: null } },
    { parent: null, models: null, limits: { budget: { usd: '5000', per: 'month' } } },
  ])
})

t.test('errors about unknown groups and cycles have line and column', async t => {
  t.match(problems(t, `${LEAST}groups: { resaerch: {} }\n${KEYS}`), [
    { severity: 'error', line: 4, column: Number, message: 'there is no group "research"; did you mean "resaerch"?' },
  ])
  t.match(problems(t, `${LEAST}groups:\n  a: { parent: b }\n`), [{ severity: 'error', line: 4, column: 16, message: /no group "b"/ }])
  t.match(problems(t, `${LEAST}groups:\n  a: { parent: a }\n`), [{ severity: 'error', line: 4, column: 16, message: /a -> a/ }])
  t.match(problems(t, `${LEAST}groups:\n  z: { parent: a }\n  a: { parent: b }\n  b: { parent: c }\n  c: { parent: a }\n`), [
    { severity: 'error', line: 5, column: 16, message: 'a group cannot be its own parent: a -> b -> c -> a' },
  ], 'a cycle is reported once, and groups outside of the cycle get no error')
  t.match(problems(t, `${LEAST}groups:\n  a: { limits: { models: { m: { concurrent: 1 } } } }\n`), [{ severity: 'error', message: /models/ }])
})
