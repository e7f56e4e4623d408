import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/upstream.ts'
import { PASSWORD, YAML, chat, startConsole } from '../console/console.ts'
import type { Browser } from '../console/console.ts'

interface Details {
  readonly stories: readonly { readonly trace_id: string | null }[]
  readonly trace_url: string | null
}

/** Reads the details until the ledger has the request. */
async function detailsOf(browser: Browser, id: string): Promise<Details> {
  for (;;) {
    const details = (await browser.ask(`/logs/${id}`)).json as Details
    if (details.stories.length > 0) return details
  }
}

t.test('the console shows users, but not key holders, a link from a request to its trace', async t => {
  const collector = await startUpstream(t, (_req, res) => res.end('{}'))
  const gateway = await startConsole(t, `${YAML}
telemetry:
  otlp: { endpoint: "${collector.url}", protocol: http/json, metrics: false }
  trace_url: https://traces.example.com/{trace_id}
`)
  const id = (await chat(gateway)).headers.get('x-gateway-request-id') ?? ''
  const line = await gateway.waitForLog(({ request, msg }) => request === id && msg === 'exchange')
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const details = await detailsOf(admin, id)
  t.match(details.stories[0]?.trace_id, /^[0-9a-f]{32}$/)
  t.equal(details.stories[0]?.trace_id, line.trace_id)
  t.equal(details.trace_url, 'https://traces.example.com/{trace_id}')
  const holder = await detailsOf(await gateway.login({ key: KEY }), id)
  t.match(holder, { stories: [{ trace_id: null }], trace_url: null })
})

t.test('a request without a sampled trace has no link to a trace', async t => {
  const gateway = await startConsole(t, `${YAML}
telemetry: { otlp: { endpoint: "http://127.0.0.1:1", protocol: http/json, metrics: false, sample: 0 } }
`)
  const id = (await chat(gateway)).headers.get('x-gateway-request-id') ?? ''
  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  t.match(await detailsOf(admin, id), { stories: [{ trace_id: null }], trace_url: null })
})
