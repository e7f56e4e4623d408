import type * as http from 'node:http'
import t from 'tap'
import { startTestGateway } from '../../support/gateway.ts'
import { CONSOLE, operatorOf } from '../../support/operator.ts'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

for (const [what, fault, reason] of [
  ['closes the connection', res => res.destroy(), /^credentials: the token server cannot be reached: /],
  ['sends no token', res => sendJson(res, 200, { token: 'none' }), 'credentials: the token server sent no valid token'],
  ['sends 401', res => sendJson(res, 401, { error: 'invalid_client' }), 'credentials: the token server responded 401 (invalid_client)'],
] as readonly (readonly [string, (res: http.ServerResponse) => void, string | RegExp])[]) {
  t.test(`if the token server ${what}, the circuit opens and the status says why`, async t => {
    const tokens = await startTokenServer(t)
    tokens.fault = fault
    const upstream = await startUpstream(t, (req, res) => void bodyOf(req).then(() => sendJson(res, 200, { choices: [] })))
    const gateway = await startTestGateway(t, `
${CONSOLE}
upstreams:
  tokens: { url: "${upstream.url}", auth: { oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: secret } } }
  spare: { url: "${upstream.url}" }
routes: [{ model: m, to: [tokens, spare] }]
auth: open
`)
    for (let n = 0; n < 4; n++) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'm', messages: [] }),
      })
      t.equal(response.headers.get('x-gateway-upstream'), 'spare')
      await response.text()
    }
    const { upstreams } = await (await operatorOf(gateway.addresses.console))()
    t.match(upstreams.find(({ upstream }) => upstream === 'tokens'), { circuit: 'open', reason })
    t.match(upstreams.find(({ upstream }) => upstream === 'spare'), { circuit: 'closed', reason: null })
  })
}
