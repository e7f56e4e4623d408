import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { SCHEMA_FILE } from '../../../src/config/json-schema.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { selfSigned } from '../../support/certificate.ts'

const EXAMPLE = new URL('../../../gateway.yaml', import.meta.url)
const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Record<string, unknown>

/** All schemas inside of the schema, each with its JSON pointer. */
function* parts(value: unknown, at = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [at, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* parts(inner, `${at}/${name}`)
}

t.test('the schema is valid in strict mode', async t => {
  t.doesNotThrow(() => new Ajv({ strict: true, allowUnionTypes: true }).compile(schema))
})

t.test('the schema of each object forbids further keys or has a schema for them', async t => {
  for (const [at, part] of parts(schema)) {
    if (part['type'] !== 'object') continue
    t.ok(part['additionalProperties'] === false || typeof part['additionalProperties'] === 'object', at)
  }
})

t.test('every configuration key has a description for editors', async t => {
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

t.test('the title of a schema does not repeat its examples', async t => {
  for (const [at, { title, examples }] of parts(schema)) {
    if (examples !== undefined) t.notMatch(String(title), / such as /, at)
  }
})

t.test('the example loads without a warning', async t => {
  const { warnings, exampleKey: publicKey, config } = loadConfig(EXAMPLE.pathname, {})
  t.strictSame(warnings, [])
  t.type(publicKey, 'string', 'the example has a key for the first request')
  t.ok(config.console, 'the example has a console')
})

t.test('the example names the schema for editors', async t => {
  t.match(readFileSync(EXAMPLE, 'utf8'), /^# yaml-language-server: \$schema=\.\/gateway\.schema\.json\n/)
})

/** Validates the text as an editor does: references to the environment are not expanded. */
function fitsInEditor(t: Test, text: string): void {
  const fits = new Ajv({ allowUnionTypes: true }).compile(schema)
  t.ok(fits(parse(text, { merge: true })), JSON.stringify(fits.errors))
}

t.test('the example with all its commented-out lines enabled is valid', async t => {
  const lines = readFileSync(EXAMPLE, 'utf8').split('\n')
  const isEntry = (line: string): boolean => /^ *# +(- )?([\w."-]+:( |$)|\{ upstream:)/.test(line)
  const full = lines.map(line => (isEntry(line) && !line.includes('$schema') ? line.replace('# ', '') : line))
  t.ok(full.filter((line, at) => line !== lines[at]).length > 40, 'more than 40 lines are enabled')
  const { cert, key } = selfSigned()
  const file = join(t.testdir({ 'cert.pem': cert, 'key.pem': key, 'my-root.pem': cert }), 'gateway.yaml')
  writeFileSync(file, full.join('\n'))
  fitsInEditor(t, full.join('\n'))
  const env = {
    OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'y', GEMINI_API_KEY: 'z', TEAM_A_KEY: 'a-key-that-is-long-enough',
    CONSOLE_PASSWORD: `scrypt:N=16384:r=8:p=1:${'A'.repeat(22)}:${'A'.repeat(43)}`,
  }
  const { config, warnings } = loadConfig(file, env)
  t.strictSame(warnings, [])
  t.strictSame([...config.upstreams.keys()], ['demo', 'openai', 'anthropic', 'gemini', 'local'])
  t.equal(config.server.tls !== null && config.limits !== null && config.ledger?.keep !== null, true)
})

t.test('a reference can replace a value of any type, also in editors', async t => {
  const text = `
server: { workers: "\${N}", max_in_flight: "\${N}", body_limit: "\${N}mb", drain: "\${N}s", reuse_port: "\${ON}" }
console:
  listen: "\${HOST:-127.0.0.1}:8081"
  users: [{ name: ops, password: "\${HASH}", role: "\${ROLE:-admin}" }]
auth: \${AUTH:-keys}
timeouts: { connect: "\${WAIT:-5s}" }
upstreams: { demo: { simulator: "\${ON}", websocket: "\${OFF:-false}", usage: "\${USAGE:-ask}" } }
routes:
  - to: { upstream: demo, weight: "\${N}", prefill: "\${ON}" }
    strategy: \${STRATEGY:-ordered}
    retries: \${N}
    affinity: \${AFFINITY:-key}
    resume: \${RESUME:-off}
models: { demo: { price: { input: "\${PRICE}", tiers: [{ above: "\${N}", output: "\${PRICE}" }] } } }
keys:
  - name: team
    sha256: \${DIGEST}
    limits: { concurrent: "\${N}", budget: { usd: "\${PRICE}", per: "\${PER:-day}" } }
billing: { abandoned: "\${ABANDONED:-none}", assumed_output: "\${N}" }
log: { level: "\${LEVEL:-info}" }
`
  fitsInEditor(t, text)
  const file = join(t.testdir(), 'gateway.yaml')
  writeFileSync(file, text)
  const { config } = loadConfig(file, {
    N: '1', ON: 'true', PRICE: '0.5', DIGEST: 'a'.repeat(64),
    HASH: `scrypt:N=16384:r=8:p=1:${'A'.repeat(22)}:${'A'.repeat(43)}`,
  })
  t.match(config, { server: { maxInFlight: 1, drain: 1000 }, routes: [{ retries: 1, resume: 'off' }] })
})

t.test('text in place of a number is an error in editors unless the text is a reference', async t => {
  const fits = new Ajv({ allowUnionTypes: true }).compile(schema)
  for (const retries of ['1', '$1', '$${N}', 'many', 1.5]) {
    t.notOk(fits({ upstreams: {}, routes: [{ to: 'demo', retries }] }), String(retries))
  }
})
