import t from 'tap'
import { escapeTerminalControl } from '../../src/process/terminal-control.ts'

t.test('escapeTerminalControl escapes control characters, and the line still parses to the same value', async t => {
  const model = 'a\u001b[2J\u009b31m\u007f\u202e\u2028\u{e0041}b größe 模型'
  const line = escapeTerminalControl(`${JSON.stringify({ model, nested: { model }, msg: model })}\n`)
  t.notMatch(line.trimEnd(), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  t.match(line, /größe 模型/)
  t.strictSame(JSON.parse(line), { model, nested: { model }, msg: model })
  const shown = JSON.parse(escapeTerminalControl(`${JSON.stringify({ model: 'a\u009bb' })}\n`, '\\\\u')) as { model: string }
  t.equal(shown.model, 'a\\u009bb')
})
