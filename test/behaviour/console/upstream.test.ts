import t from 'tap'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { chat, PASSWORD, startConsole, YAML } from './console.ts'

interface Details {
  readonly upstream: { readonly health: string }
  readonly circuits: readonly { readonly model: string, readonly since: string, readonly first: object, readonly last: object }[]
  readonly changes: readonly { readonly state: string, readonly first: { readonly reason: string, readonly request_id: string } }[]
  readonly report: { readonly outcomes: Readonly<Record<string, number>> }
}

t.test('since when an upstream is down, and what broke first', async t => {
  let isDown = true
  let failures = 0
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    const error = `{"error":{"type":"${failures++ === 0 ? 'first_fault' : 'overloaded'}"}}`
    res.writeHead(isDown ? 503 : 200, { 'content-type': 'application/json' }).end(isDown ? error : '{"choices":[]}')
  })
  const console = await startConsole(t, YAML.replace('sim: { simulator: true }', `sim: { url: "${url}" }`)
    .replace('sim }, { model: "other*", to: sim }', 'sim, retries: 0 }'))
  const admin = await console.login({ name: 'ops', password: PASSWORD })
  const details = async () => {
    console.clock.advance(Date.now() + 1 - console.clock.wall())
    return (await admin.ask('/upstreams/sim')).json as Details
  }
  t.match(await details(), { upstream: { health: 'unknown' }, circuits: [], changes: [] })

  const first = (await chat(console)).headers.get('x-gateway-request-id') as string
  for (let n = 0; n < 3; n++) await chat(console)
  const down = await details()
  t.match(down, {
    upstream: { health: 'down' },
    circuits: [{
      model: 'demo', circuit: 'open', failures: 4,
      first: { reason: 'status 503 first_fault', request_id: first }, last: { reason: 'status 503 overloaded' },
    }],
    changes: [{ state: 'open', worker: 0, model: 'demo', first: { request_id: first } }],
    credential_failure: null,
  })
  t.ok(Math.abs(Date.parse(down.circuits[0]?.since ?? '') - Date.now()) < 60_000)

  isDown = false
  // Only a target with an open circuit is left: it is asked all the same.
  while ((await details()).circuits.length > 0) await chat(console)
  t.match((await details()).changes, [{ state: 'open' }, { state: 'closed', first: { request_id: first } }])
  t.equal((await admin.ask('/upstreams/nothing')).status, 404)
  const holder = await console.login({ key: 'sk-second-0123456789abcdef' })
  t.equal((await holder.ask('/upstreams/sim')).status, 403)
})
