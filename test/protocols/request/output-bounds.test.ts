import fc from 'fast-check'
import t from 'tap'
import { jsonInspection } from '../../../src/protocols/request/inspect.ts'
import { MAX_TOKENS } from '../../../src/protocols/request/output-bounds.ts'
import { estimateRequest, maxOutputTokens } from '../../../src/protocols/request/request-estimate.ts'
import { generatedTokens } from '../../support/lenient-server.ts'
import type { Leniency } from '../../support/lenient-server.ts'
import { endpointNamed } from '../endpoint-named.ts'

const ASSUMED = 4096
const ENDPOINTS = {
  chat: 'chat.completions', completions: 'completions', responses: 'responses', messages: 'messages', generate: 'generate.content',
}

const SERVER: fc.Arbitrary<Leniency> = fc.record({
  anyName: fc.boolean(), wins: fc.constantFrom('first', 'last'), numbers: fc.constantFrom('python', 'float', 'strict'),
})
const VALUE = fc.oneof(
  fc.nat(100_000).map(String), fc.nat(100_000).map(value => `"${value}"`), fc.nat(1000).map(value => `"${value}_000"`),
  fc.constantFrom('null', '0', '-1', '1e5', '10.5', '"1e5"', '"12.7 tokens"', 'true', '" 77 "', '"+9"'),
)
const NAME = fc.constantFrom('max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens', 'candidateCount', 'candidate_count', 'n', 'best_of')
  .chain(name => fc.constantFrom(name, name.toUpperCase(), name.replaceAll('_', ''), name.replace('_', ''), name.replaceAll('_', '-'), name.replace('a', '\\u0061')))
const MEMBER = fc.tuple(NAME, VALUE).map(([name, value]) => `"${name}":${value}`)
const OBJECT = fc.array(MEMBER, { maxLength: 4 }).map(members => `{${members.join(',')}}`)
const NESTED = fc.tuple(fc.constantFrom('generationConfig', 'generation_config', 'GenerationConfig', 'extra_body'), OBJECT)
  .map(([name, object]) => `"${name}":${object}`)
const REQUEST = fc.array(fc.oneof(MEMBER, NESTED), { maxLength: 5 }).map(members => `{${members.join(',')}}`)

/** Requests whose reservation was too small. */
const EXAMPLES: [keyof typeof ENDPOINTS, string, Leniency][] = [
  ['completions', '{"max_completion_tokens":1}', { anyName: false, wins: 'first', numbers: 'python' }],
  ['generate', '{"generationConfig":{"max_output_tokens":1},"generationConfig":{}}', { anyName: false, wins: 'last', numbers: 'python' }],
  ['generate', '{"generationConfig":{"maxOutputTokens":1},"generation_config":null}', { anyName: true, wins: 'last', numbers: 'python' }],
  ['generate', '{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":0}}', { anyName: true, wins: 'last', numbers: 'python' }],
  ['messages', '{"max_tokens":1,"MAX_TOKENS":null}', { anyName: true, wins: 'last', numbers: 'python' }],
  ['messages', '{"max_tokens":1,"extra_body":{"max_tokens":0}}', { anyName: false, wins: 'last', numbers: 'python' }],
  ['generate', '{"generationConfig":{"maxOutputTokens":1},"extra_body":{"generationConfig":{}}}', { anyName: false, wins: 'last', numbers: 'python' }],
  ['chat', '{"max_completion_tokens":0,"max_tokens":1}', { anyName: false, wins: 'first', numbers: 'strict' }],
]

t.test('property: no server generates more output than is reserved', async () => {
  fc.assert(fc.property(fc.constantFrom(...Object.keys(ENDPOINTS) as (keyof typeof ENDPOINTS)[]), REQUEST, SERVER, (protocol, text, server) => {
    const bytes = Buffer.from(text)
    const scan = jsonInspection()
    scan.push(bytes)
    const json = scan.end()
    const { output } = estimateRequest(endpointNamed(ENDPOINTS[protocol]), bytes, json.ok ? json : null)
    if (output === null) return false
    return maxOutputTokens(output, ASSUMED) >= Math.min(MAX_TOKENS, generatedTokens(protocol, text, server, ASSUMED))
  }), { numRuns: 5_000, examples: EXAMPLES })
})
