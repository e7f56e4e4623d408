import fc from 'fast-check'
import pino from 'pino'
import type { Logger } from 'pino'
import t from 'tap'
import { escapeTerminalControl, useFastLineWriter } from '../../src/cli/log-line.ts'

/** Two loggers that differ in how they write their lines, and what each wrote. */
function pair() {
  const lines: [string[], string[]] = [[], []]
  const options = { base: null, timestamp: () => ',"time":"2026-01-01T00:00:00.000Z"' }
  const shaped = { ...options, formatters: { level: (label: string) => ({ level: label }) } }
  const [ours, theirs] = lines.map(to =>
    pino(shaped, { write: (line: string) => void to.push(line) })) as [Logger, Logger]
  useFastLineWriter(ours)
  return { loggers: [ours, theirs] as const, lines }
}

const FIELDS = fc.dictionary(
  fc.oneof(fc.string(), fc.string({ unit: 'binary' })).filter(name => name !== '__proto__'),
  fc.oneof(
    fc.string(), fc.string({ unit: 'binary' }), fc.integer(), fc.double(), fc.boolean(),
    fc.constant(undefined), fc.constant(null), fc.constant(5n), fc.object(),
    fc.string().map(message => new Error(message)),
  ),
)

t.test('a line is what pino would have written, whatever is in it', async t => {
  fc.assert(fc.property(FIELDS, fc.option(fc.string({ unit: 'binary' }), { nil: undefined }), fc.boolean(),
    (fields, message, asChild) => {
      const { loggers, lines } = pair()
      for (const log of loggers) (asChild ? log.child({ worker: 1 }) : log).warn(fields, message)
      const [ours, theirs] = lines.map(written => written.map(line => JSON.parse(line) as unknown))
      t.strictSame(ours, theirs)
      t.match(lines[0], [/^[^\n]+\n$/], 'one line')
    }))
})

t.test('the lines of exchanges are the same to the byte', async t => {
  const { loggers, lines } = pair()
  const line = {
    request: '01a1fcb3', path: '/v1/"chat"', model: undefined, status: 200, ms: 12.5, cost_usd: '0.0001',
  }
  for (const log of loggers) {
    log.info(line, 'exchange')
    log.info('said')
    log.error(new Error('broke'))
    log.info({ err: new Error('broke') }, 'with it')
  }
  const withoutStack = (text: string) => text.replace(/"stack":"[^"]*"/, '')
  t.strictSame(lines[0].map(withoutStack), lines[1].map(withoutStack))
})

t.test('nothing in a line steers a terminal, and it says the same', async t => {
  const model = 'a\u001b[2J\u009b31m\u007f\u202e\u2028\u{e0041}b größe 模型'
  const { loggers: [log], lines: [written] } = pair()
  log.info({ model }, model)
  log.info({ model, nested: { model } }, 'with it')
  for (const line of written) {
    t.notMatch(line.trimEnd(), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    t.match(line, /größe 模型/)
    t.equal((JSON.parse(line) as { model: string }).model, model)
  }
  const shown = JSON.parse(escapeTerminalControl(`${JSON.stringify({ model: 'a\u009bb' })}\n`, '\\\\u')) as { model: string }
  t.equal(shown.model, 'a\\u009bb')
})
