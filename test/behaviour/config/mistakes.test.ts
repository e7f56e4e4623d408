import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError, formatProblem } from '../../../src/config/problem.ts'

const SECRET = 'hunter2'

const GOOD = `server:
  listen: 127.0.0.1:0
  drain: 10s
upstreams:
  openai:
    url: https://api.example.com
    auth: { bearer: "${SECRET}" }
  anthropic:
    url: https://example.com
    auth:
      header: x-api-key
      value: ${SECRET}
    headers: { anthropic-version: "2023-06-01", x-other: ${SECRET} }
routes:
  - path: /v1/messages*
    model: &claude claude-*
    to: anthropic
  - { model: [fast, "gpt-*"], to: openai }
keys:
  - name: team-a
    key: ${SECRET}-${SECRET}-${SECRET}
    models: [*claude]
  - { name: team-b, key: "${SECRET}${SECRET}${SECRET}" }
`

/** A typing mistake: an extra, missing or wrong character, or two lines that are joined or cut. */
const slip = fc.record({
  at: fc.nat({ max: GOOD.length }),
  remove: fc.integer({ min: 0, max: 2 }),
  insert: fc.constantFrom(
    '', ' ', '  ', '\t', '\n', ':', ': ', '{', '}', '[', ']', '"', "'", '-', '- ', '#', '*', '&', '!', '|',
    '>', '@', '$', '${', 'x', '0', ',', '?', '%', '<<: ', '---\n',
  ),
})

t.test('property: typing errors neither crash the loader nor reveal a secret', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  fc.assert(fc.property(fc.array(slip, { minLength: 1, maxLength: 2 }), slips => {
    const text = slips.reduce((text, { at, remove, insert }) =>
      text.slice(0, at) + insert + text.slice(at + remove), GOOD)
    // A mistake may cut the secret or move it to the place of a name; such a text is not masked.
    writeFileSync(file, text)
    const told = tell(file)
    if (told.includes(SECRET)) throw new Error(`${text}\n----\n${told}`)
  }), { numRuns: 400 })
})

t.test('a secret is not shown if a typing error joins it to the name of the key', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  const quoted = `name: team-a ke "${SECRET}-${SECRET}-${SECRET}"`
  for (const entry of [quoted, quoted.replaceAll('"', ''), quoted.replace(' "', "'").replace('"', "'")]) {
    writeFileSync(file, GOOD.replace(/ {2}- name: team-a\n.*\n.*\n/, `  - { ${entry} }\n`))
    const told = tell(file)
    t.match(told, 'needs key or sha256')
    t.notMatch(told, SECRET)
  }
})

function tell(file: string): string {
  try {
    return loadConfig(file, {}).warnings.map(problem => formatProblem(problem)).join('\n')
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

t.test('a long list that is not indented gives one error', async t => {
  const file = join(t.testdir(), 'gateway.yaml')
  for (const count of [5_000, 20_000]) {
    const items = Array.from({ length: count }, (_, at) => `{name: k${at}, key: ${SECRET}-${at}},\n`)
    writeFileSync(file, `routes: []\nkeys: [\n${items.join('')}]\n`)
    try {
      loadConfig(file, {})
      t.fail('the file must be rejected')
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      t.match(error.problems, [{ severity: 'error' }])
      t.equal(error.problems.length, 1)
    }
  }
})
