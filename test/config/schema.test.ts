import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { SCHEMA_FILE } from '../../src/config/json-schema.ts'
import { selfSigned } from '../support/certificate.ts'

const EXAMPLE = new URL('../../gateway.yaml', import.meta.url)
const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Record<string, unknown>

/** Every schema inside the schema, with its place. */
function* parts(value: unknown, at = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [at, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* parts(inner, `${at}/${name}`)
}

t.test('is a valid schema in strict mode', async t => {
  t.doesNotThrow(() => new Ajv({ strict: true, allowUnionTypes: true }).compile(schema))
})

t.test('every map is closed, or says what its entries are', async t => {
  for (const [at, part] of parts(schema)) {
    if (part['type'] !== 'object') continue
    t.ok(part['additionalProperties'] === false || typeof part['additionalProperties'] === 'object', at)
  }
})

t.test('every key that an operator can write is described for editors', async t => {
  for (const [at, part] of parts(schema)) {
    const properties = part['properties']
    if (part['type'] !== 'object' || typeof properties !== 'object' || /tiers|service_price/.test(at)) continue
    for (const [name, property] of Object.entries(properties as Record<string, Record<string, string>>)) {
      const target = property['$ref']?.split('/').at(-1) ?? ''
      const named = (schema['definitions'] as Record<string, Record<string, string>>)[target]
      t.ok(property['description'] ?? named?.['description'], `${at}/${name}`)
    }
  }
})

t.test('the example loads without a warning', async t => {
  const { warnings, publicKey, config } = loadConfig(EXAMPLE.pathname, {})
  t.strictSame(warnings, [])
  t.type(publicKey, 'string', 'it has a key to try it with')
  t.ok(config.console, 'and a console')
})

t.test('the example names the schema for editors', async t => {
  t.match(readFileSync(EXAMPLE, 'utf8'), /^# yaml-language-server: \$schema=\.\/gateway\.schema\.json\n/)
})

t.test('each line that the example has commented out is right too', async t => {
  const lines = readFileSync(EXAMPLE, 'utf8').split('\n')
  const isEntry = (line: string): boolean => /^ *# +(- )?([\w."-]+:( |$)|\{ upstream:)/.test(line)
  const full = lines.map(line => (isEntry(line) && !line.includes('$schema') ? line.replace('# ', '') : line))
  t.ok(full.filter((line, at) => line !== lines[at]).length > 40, 'they were found')
  const { cert, key } = selfSigned()
  const file = join(t.testdir({ 'cert.pem': cert, 'key.pem': key, 'my-root.pem': cert }), 'gateway.yaml')
  writeFileSync(file, full.join('\n'))
  const env = {
    OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'y', GEMINI_API_KEY: 'z', TEAM_A_KEY: 'a-key-that-is-long-enough',
    CONSOLE_PASSWORD: `scrypt:N=16384:r=8:p=1:${'A'.repeat(22)}:${'A'.repeat(43)}`,
  }
  const { config, warnings } = loadConfig(file, env)
  t.strictSame(warnings, [])
  t.strictSame([...config.upstreams.keys()], ['demo', 'openai', 'anthropic', 'gemini', 'local'])
  t.equal(config.server.tls !== null && config.limits !== null && config.ledger?.keep !== null, true)
})
