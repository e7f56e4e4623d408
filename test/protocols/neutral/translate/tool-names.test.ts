import t from 'tap'
import { ToolNames } from '../../../../src/protocols/neutral/translate/tool-names.ts'
import type { NeutralRequest } from '../../../../src/protocols/neutral/request.ts'
import type { ResponseEvent } from '../../../../src/protocols/neutral/response.ts'

const RULE = { length: 20, pattern: '[A-Za-z0-9_-]' }

const requestOf = (names: readonly string[], more: object = {}) =>
  ({ tools: names.map(name => ({ name })), toolChoice: null, messages: [], ...more }) as unknown as NeutralRequest
const startOf = (name: string) => ({ type: 'part_start', part: { type: 'tool_call', name, id: 'a' } }) as unknown as ResponseEvent

for (const [name, expected] of [
  ['look_up-1', /^look_up-1$/], ['x'.repeat(20), /^x{20}$/], ['x'.repeat(21), /^x{11}_[0-9a-f]{8}$/], ['look.up', /^look_up_[0-9a-f]{8}$/], ['研', /^__[0-9a-f]{8}$/], ['\u{1f600}', /^__[0-9a-f]{8}$/], ['a\nb', /^a_b_[0-9a-f]{8}$/],
] as const) {
  t.test(`a tool named ${JSON.stringify(name)} gets a name that the target accepts`, async t => {
    const [tool] = new ToolNames(RULE).rename(requestOf([name])).tools
    t.match(tool?.name, expected)
    t.ok((tool?.name.length ?? 99) <= 20)
  })
}

t.test('a name that begins with a refused character gets a prefix', async t => {
  const names = (start?: string) => new ToolNames({ ...RULE, ...start !== undefined && { start } }).rename(requestOf(['1look'])).tools[0]?.name
  t.equal(names(), '1look')
  t.match(names('[A-Za-z_]'), /^_1look_[0-9a-f]{8}$/)
})

t.test('long names with the same start stay different, and equal names stay equal', async t => {
  const [one, two, again] = new ToolNames(RULE).rename(requestOf([`${'x'.repeat(30)}1`, `${'x'.repeat(30)}2`, `${'x'.repeat(30)}1`])).tools
  t.not(one?.name, two?.name)
  t.equal(one?.name, again?.name)
  t.equal(new ToolNames(RULE).rename(requestOf([`${'x'.repeat(30)}1`])).tools[0]?.name, one?.name, 'in the next request too')
})

t.test('calls, results and tool_choice get the new name, and the client gets the original name', async t => {
  const names = new ToolNames(RULE)
  const messages = [{ role: 'assistant', parts: [{ type: 'text', text: 'look.up' }, { type: 'tool_call', name: 'look.up' }] }, { role: 'user', parts: [{ type: 'tool_result', name: 'other.tool' }] }]
  const { tools, toolChoice, messages: written } = names.rename(requestOf(['look.up', 'plain'], { toolChoice: { type: 'tools', names: ['look.up', 'plain'] }, messages }))
  const name = tools[0]?.name ?? ''
  t.equal(tools[1]?.name, 'plain')
  t.strictSame(toolChoice, { type: 'tools', names: [name, 'plain'] })
  t.match(written, [{ parts: [{ text: 'look.up' }, { name }] }, { parts: [{ name: /^other_tool_/ }] }])
  t.strictSame(names.restore(startOf(name)), startOf('look.up'))
  t.strictSame(names.restore(startOf('plain')), startOf('plain'))
  const text = { type: 'part_start', part: { type: 'text' } } as unknown as ResponseEvent
  t.equal(names.restore(text), text)
})

t.test('a request with valid tool names is not copied', async t => {
  const request = requestOf(['plain', ''], { toolChoice: { type: 'auto' } })
  t.equal(new ToolNames(RULE).rename(request), request)
})
