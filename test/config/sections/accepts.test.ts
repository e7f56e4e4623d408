import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const withAccepts = (accepts: string) => `${LEAST}models: { m: { accepts: ${accepts} } }\n`

const CASES: readonly (readonly [what: string, accepts: string, expected: object])[] = [
  ['no rules', '{}', {}],
  ['a field that is set to true', '{ temperature: true }', { temperature: {} }],
  ['a field that is set to false', '{ top_p: false }', { topP: false }],
  ['a range', '{ temperature: { min: 0, max: 1 } }', { temperature: { min: 0, max: 1 } }],
  ['a range of one value', '{ top_k: { min: 5, max: 5 } }', { topK: { min: 5, max: 5 } }],
  ['a single value of a field', '{ temperature: { only: [1] } }', { temperature: { only: [1] } }],
  ['a field that is listed in without', '{ without: [seed] }', { without: ['seed'] }],
  ['both penalties', '{ presence_penalty: { max: 2 }, frequency_penalty: { min: -2 } }', { presencePenalty: { max: 2 }, frequencyPenalty: { min: -2 } }],
  ['rules for the names of tools', '{ tool_name: { length: 64, pattern: "[a-z_-]" } }', { toolName: { length: 64, pattern: '[a-z_-]' } }],
]

for (const [what, accepts, expected] of CASES) {
  t.test(`the rules of a model under accepts are read: ${what}`, async t => {
    t.strictSame(load(t, withAccepts(accepts)).config.models.get('m')?.accepts, expected)
  })
}

t.test('a model without `accepts` has null in place of rules', async t => {
  t.equal(load(t, `${LEAST}models: { m: {} }\n`).config.models.get('m')?.accepts, null)
})

t.test('a range whose min is above its max is an error', async t => {
  t.match(problems(t, withAccepts('{ temperature: { min: 2, max: 1 } }')), [{ severity: 'error', line: 3, message: 'min is above max' }])
})

for (const pattern of ['a-z', '[a-z]+', '[a-z][0-9]', '[z-a]', '[[]', '[a]]']) {
  t.test(`the tool_name pattern ${pattern} is refused because it is not a character class`, async t => {
    const [problem] = problems(t, withAccepts(`{ tool_name: { length: 64, pattern: "${pattern}" } }`))
    t.match(problem, { severity: 'error', message: /class of characters/ })
  })
}
