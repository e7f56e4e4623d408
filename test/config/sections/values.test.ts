import t from 'tap'
import { DEFAULT_TIMEOUTS } from '../../../src/config/sections/values.ts'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const MAX_DAYS = 24 * 86_400_000

const DURATIONS: readonly (readonly [text: string, expected: number | string])[] = [
  ['1ms', 1], ['90s', 90_000], ['30m', 1_800_000], ['24d', MAX_DAYS],
  ['25d', 'server.idle must be at most 24d'], ['0s', 'server.idle must be longer than 0'],
]

for (const [text, expected] of DURATIONS) {
  t.test(`an idle timeout of ${text} is ${typeof expected === 'number' ? `${expected} ms` : 'refused'}`, async t => {
    const config = `${LEAST}server: { idle: ${text} }\n`
    if (typeof expected === 'number') t.equal(load(t, config).config.server.idle, expected)
    else t.match(problems(t, config), [{ severity: 'error', line: 3, column: 17, message: expected }])
  })
}

t.test('drain and drain_delay can be 0', async t => {
  t.match(load(t, `${LEAST}server: { drain: 0s, drain_delay: 0ms }\n`).config.server, { drain: 0, drainDelay: 0 })
})

t.test('each omitted timeout has its default', async t => {
  t.strictSame(load(t, LEAST).config.routes[0]?.timeouts, DEFAULT_TIMEOUTS)
  const { config } = load(t, `${LEAST}timeouts: { connect: 1s }\n`.replace('to: demo', 'to: demo, timeouts: { first_byte: 2s, idle: 3s }'))
  t.strictSame(config.routes[0]?.timeouts, { ...DEFAULT_TIMEOUTS, connect: 1_000, firstByte: 2_000, idle: 3_000 })
})

t.test('a size is at least one byte', async t => {
  t.equal(load(t, `${LEAST}server: { body_limit: 2kb }\n`).config.server.bodyLimit, 2048)
  t.match(problems(t, `${LEAST}server: { body_limit: 0b }\n`), [{ severity: 'error', message: 'server.body_limit must be at least 1b' }])
})

for (const [secret, isQuoted] of [['"sk-1"', true], ["'sk-1'", true], ['sk-"1"', false], ["'sk-1\"", false], ['"', false]] as const) {
  t.test(`a secret of ${secret} is ${isQuoted ? 'reported as quoted by mistake' : 'accepted without a warning'}`, async t => {
    const upstream = `{ url: "http://127.0.0.1:1", auth: { header: x-key, value: "\${SECRET}" } }`
    const found = problems(t, LEAST.replace('{ simulator: true }', upstream), { SECRET: secret })
    t.equal(found.some(({ severity, message }) => severity === 'warning' && message.startsWith('the value begins and ends with a quote')), isQuoted)
  })
}
