import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { callOf, PROTOCOLS } from '../../../src/console/web/src/pages/playground/prompt.ts'
import type { Prompt } from '../../../src/console/web/src/pages/playground/prompt.ts'
import { snippets } from '../../../src/console/web/src/pages/playground/snippets.ts'

const run = promisify(execFile)
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII='
const SCHEMA = { type: 'object', properties: { 'the city': { type: 'string' }, days: { type: 'integer' } }, required: ['days'] }

/** All that the form has. */
const FULL: Prompt = {
  protocol: 'chat', model: 'gpt-5.1,tokens=3', system: 'It\'s "short". $HOME `id`', text: 'two\nlines: 50 % \\n',
  images: [{ name: "it's one.png", mediaType: 'image/png', data: PIXEL }, { name: 'two.png', mediaType: 'image/png', data: PIXEL }],
  tools: [{ name: 'weather', description: 'Of a "city"', parameters: SCHEMA }, { name: 'now', parameters: { type: 'object', properties: {} } }],
  maxTokens: 77, temperature: 0.5, topP: 0.9, stop: ['END', "it's"], stream: false,
}
const PLAIN: Prompt = { ...FULL, system: '', images: [], tools: [], maxTokens: null, temperature: null, topP: null, stop: [] }

/** Keeps each request and responds with 400, because clients do not retry after 400. */
async function startRecorder(t: Test): Promise<{ url: string, last: () => { path: string, body: unknown } }> {
  const asked: { path: string, body: unknown }[] = []
  const server = createServer(async (req, res) => {
    asked.push({ path: req.url ?? '', body: await json(req) })
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    last: () => asked.pop() ?? { path: 'nothing was asked', body: null },
  }
}

/** Replaces the Python libraries: prints the keyword arguments of the call. */
const PYTHON_STUB = `
import json
class Recorder:
    def __init__(self, **kwargs): pass
    def __getattr__(self, name): return self
    def __call__(self, **kwargs):
        print(json.dumps(kwargs))
        raise SystemExit
OpenAI = Anthropic = Recorder
`

for (const protocol of PROTOCOLS) {
  for (const stream of [false, true]) {
    for (const [kind, prompt] of Object.entries({ plain: PLAIN, full: FULL })) {
      t.test(`the code sends the same request as the playground: ${protocol}, ${kind}, ${stream ? 'stream' : 'no stream'}`, async t => {
        const recorder = await startRecorder(t)
        const cwd = t.testdir({ 'openai.py': PYTHON_STUB, 'anthropic.py': PYTHON_STUB })
        for (const { name, data } of FULL.images) writeFileSync(`${cwd}/${name}`, Buffer.from(data, 'base64'))
        const asked = { ...prompt, protocol, stream }
        const call = callOf(asked)
        const [curl, javascript, python] = snippets(asked, recorder.url).map(({ code }) => code)

        await run('sh', ['-c', curl ?? ''], { cwd })
        t.same(recorder.last(), { path: call.path, body: call.body }, 'curl')

        writeFileSync(`${cwd}/code.mjs`, javascript ?? '')
        await run(process.execPath, ['code.mjs'], { cwd }).catch(() => {})
        t.same(recorder.last(), { path: call.path, body: call.body }, 'JavaScript')

        if (!HAS_PYTHON) {
          t.pass('there is no python3', { skip: true })
          return
        }
        writeFileSync(`${cwd}/code.py`, python ?? '')
        await run('python3', ['-c', 'import ast; ast.parse(open("code.py").read())'], { cwd })
        if (protocol === 'generate') return
        const { stdout } = await run('python3', ['code.py'], { cwd })
        t.same({ ...JSON.parse(stdout), ...stream && { stream: true } }, call.body, 'Python')
      })
    }
  }
}
