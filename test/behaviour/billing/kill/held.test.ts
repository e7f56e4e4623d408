import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { listening } from '../../../cli/command.ts'
import { KEY } from '../../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../../support/upstream.ts'
import { costOf, filesFor, outputsIn, priced, rowsIn } from '../books.ts'

const PIECE = 'data: {"choices":[{"index":0,"delta":{"content":"hello there "}}]}\n\n'
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":7}}\n\n'
const BODY = `{"choices":[{"message":{"content":"${'hello there '.repeat(200)}`

/** Held responses: each piece has 12 bytes of text, estimated at 4 bytes per token. */
const HELD = [
  { stream: true, type: 'text/event-stream', answer: PIECE.repeat(100), output: 300, told: null },
  { stream: true, type: 'text/event-stream', answer: PIECE + USAGE, output: 7, told: 70 },
  { stream: false, type: 'application/json', answer: BODY, output: Math.ceil(BODY.length / 4), told: null },
] as const

t.test('after kill -9, a held response costs the tokens that have arrived', async t => {
  const upstream = await startUpstream(t, (req, res) => {
    void bodyOf(req).then(() => {
      const { type, answer } = HELD[Number(req.headers['x-play'])] ?? HELD[0]
      res.writeHead(200, { 'content-type': type }).write(answer)
    })
  })
  const cwd = t.testdir(filesFor(upstream.url, priced('m'), { route: ', resume: hold' }))
  const { base, child, ended } = await listening(t, ['serve'], { cwd })
  const bodies = HELD.map(({ stream }) => JSON.stringify({ model: 'm', stream, messages: [] }))
  const running = bodies.map((body, n) => t.rejects(fetch(`${base}/v1/chat/completions`, {
    method: 'POST', body,
    headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json', 'x-play': String(n) },
  }).then(answer => answer.arrayBuffer())))
  const file = join(cwd, 'ledger.db')
  const due = HELD.map(({ output }) => output).sort()
  while (outputsIn(file).sort().join() !== due.join()) await setImmediate()
  child.kill('SIGKILL')
  await Promise.all([...running, ended])
  const rows = new Map([...rowsIn(t, file).values()].map(row => [row.usage.outputTokens, row]))
  for (const [n, { output, told }] of HELD.entries()) {
    const input = told ?? Math.ceil((bodies[n]?.length ?? 0) / 4)
    t.match(rows.get(output), {
      end: 'interrupted', source: told === null ? 'estimated' : 'mixed', bytesOut: 0,
      usage: { inputTokens: input }, costPico: costOf({ input, output }),
    })
  }
})
