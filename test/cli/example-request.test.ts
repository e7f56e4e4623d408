import { execFileSync } from 'node:child_process'
import t from 'tap'
import { exampleRequest } from '../../src/cli/example-request.ts'
import { load } from '../behaviour/config/loading.ts'

const BASE = 'http://127.0.0.1:8080'
const UP = 'upstreams: { demo: { simulator: true } }\n'

/** Runs the example request in a shell in which curl prints its arguments. @returns the arguments */
function argumentsOf(request: string, env: Record<string, string> = {}): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${request}`
  return execFileSync('sh', ['-c', script], { env, encoding: 'utf8' }).split('\0').slice(0, -1)
}

t.test('the example request has the first model without a star that a route names', async t => {
  const routes = '[{ model: "gpt-*", to: demo }, { model: ["x*", fast, slow], to: demo }]'
  const { config } = load(t, `${UP}routes: ${routes}\n`)
  t.strictSame(argumentsOf(exampleRequest(config, BASE, 'the-key') ?? ''), [
    `${BASE}/v1/chat/completions`,
    '-H', 'authorization: Bearer the-key',
    '-H', 'content-type: application/json',
    '-d', '{"model":"fast","messages":[{"role":"user","content":"Hello"}]}',
  ])
})

t.test('the example request has a path that the route of its model serves', async t => {
  const { config } = load(t, `${UP}routes: [{ path: /v1/messages*, model: fast, to: demo }]\n`)
  const [url, ...rest] = argumentsOf(exampleRequest(config, BASE, 'the-key') ?? '')
  t.equal(url, `${BASE}/v1/messages`)
  t.match(JSON.parse(rest.at(-1) ?? ''), { model: 'fast', max_tokens: 500 })
})

t.test('the example request has a variable in place of a secret key', async t => {
  const { config } = load(t, `${UP}routes: [{ model: fast, to: demo }]\n`)
  const told = argumentsOf(exampleRequest(config, BASE, null) ?? '', { GATEWAY_KEY: 'from the shell' })
  t.equal(told[2], 'authorization: Bearer from the shell')
})

t.test('the example request for a gateway with auth: open has no key', async t => {
  const { config } = load(t, `${UP}auth: open\nroutes: [{ model: fast, to: demo }]\n`)
  t.notMatch(exampleRequest(config, BASE, null), 'authorization')
})

t.test('special characters of the shell in a model name or key are quoted', async t => {
  const name = `it's $(touch x) "quoted" \\ \`y\``
  const { config } = load(t, `${UP}routes: [{ model: '${name.replaceAll("'", "''")}', to: demo }]\n`)
  const told = argumentsOf(exampleRequest(config, BASE, `k'$HOME`) ?? '')
  t.equal(told[2], `authorization: Bearer k'$HOME`)
  t.match(JSON.parse(told.at(-1) ?? ''), { model: name })
})

t.test('there is no example request if no route names a model without a star on an API path', async t => {
  for (const route of ['{ to: demo }', '{ path: /x, model: a, to: demo }']) {
    const { config } = load(t, `${UP}routes: [${route}]\n`)
    t.equal(exampleRequest(config, BASE, null), null, route)
  }
})
