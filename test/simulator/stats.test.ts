import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createSimulator } from '../../src/simulator/index.ts'
import { parseEvents, rawPost, rawUntil, start } from './start.ts'

const PATH = '/v1/chat/completions'
const CHAT = { messages: [{ role: 'user', content: 'x' }] }

t.test('each request is counted once, and /_simulator/stats has the counts', async t => {
  const { post, url } = await start(t)
  await (await post(PATH, { model: 'sim', ...CHAT })).text()
  await (await post(PATH, { model: 'sim,status=500', ...CHAT })).text()
  await (await post(PATH, '{')).text()
  const stats = await fetch(`${url}/_simulator/stats`)
  t.same(await stats.json(), { requests: 3, in_flight: 0, completed: 3, aborted: 0 })
})

t.test('the disconnect of a client stops its response immediately, at any stage', async t => {
  const { simulator, port } = await start(t)
  const cases: [string, string, (text: string) => boolean][] = [
    ['in mid-stream', 'pace=60m', text => parseEvents(text).length === 1],
    ['before the first byte of the body', 'first_delay=60m', text => text.endsWith('\r\n\r\n')],
    ['in a stall', 'stall_after=2', text => parseEvents(text).length === 2],
    ['without reading an endless answer', 'tokens=10000000', text => text.length > 1000],
  ]
  for (const [i, [name, list, enough]] of cases.entries()) {
    const bytes = rawPost(PATH, { model: `sim,${list}`, ...CHAT, stream: true })
    const socket = await rawUntil(port, bytes, enough)
    t.equal(simulator.stats.in_flight, 1, name)
    const aborted = once(simulator, 'aborted')
    socket.destroy()
    t.same((await aborted)[0], { method: 'POST', path: PATH, model: `sim,${list}` })
    t.match(simulator.stats, { in_flight: 0, aborted: i + 1, completed: 0 })
  }
})

t.test('a client that disconnects before the response headers or before the end of its request counts as aborted', async t => {
  const { simulator, port } = await start(t)
  const bytes = rawPost(PATH, { model: 'sim,headers_delay=60m', ...CHAT })
  for (const sent of [bytes, bytes.slice(0, -5)]) {
    const socket = connect(port, '127.0.0.1', () => socket.write(sent))
    await once(simulator, 'request')
    const aborted = once(simulator, 'aborted')
    socket.destroy()
    await aborted
    t.equal(simulator.stats.in_flight, 0)
  }
})

t.test('each request is logged once, after its end', async t => {
  const lines: unknown[] = []
  const { post } = await start(t, { log: { info: (details, message) => lines.push([message, details]) } })
  await (await post(PATH, { model: 'sim,status=529', ...CHAT })).text()
  t.match(lines, [
    [
      'simulated',
      { method: 'POST', path: PATH, model: 'sim,status=529', status: 529, outcome: 'completed', ms: Number },
    ],
  ])
  t.equal(lines.length, 1)
})

t.test('a connection stays open, even after an error response', async t => {
  const { simulator, port } = await start(t)
  const opened: unknown[] = []
  simulator.on('connection', socket => opened.push(socket))
  const bytes = rawPost(PATH, { model: 'sim,status=500', ...CHAT }) + rawPost(PATH, { model: 'sim', ...CHAT })
  const socket = await rawUntil(port, bytes, text => text.includes('chat.completion'))
  socket.destroy()
  t.equal(opened.length, 1)
})

t.test('the simulator can listen on a Unix socket, on which a reset closes the connection', async t => {
  // Not in t.testdir, whose path is too long for a socket.
  const directory = mkdtempSync(join(tmpdir(), 'sim-'))
  const simulator = createSimulator()
  const path = join(directory, 'socket')
  simulator.listen(path)
  await once(simulator, 'listening')
  t.teardown(() => {
    simulator.close()
    rmSync(directory, { recursive: true })
  })
  const socket = connect(path, () => socket.write(rawPost(PATH, { model: 'sim,reset', ...CHAT })))
  await once(socket, 'close')
  t.match(simulator.stats, { completed: 1, aborted: 0 })
})
