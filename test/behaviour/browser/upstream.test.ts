import t from 'tap'
import { sendJson, startTokenServer } from '../../support/token-server.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { chat, PASSWORD, startConsole, YAML } from '../console/console.ts'
import { go, openBrowser, visit, walk } from './browser.ts'

const OPS = { name: 'ops', password: PASSWORD }

t.test('one click from the panel shows since when an upstream fails, and the first error', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  let failures = 0
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    const type = failures++ === 0 ? 'first_fault' : 'overloaded'
    res.writeHead(503, { 'content-type': 'application/json' }).end(`{"error":{"type":"${type}","message":"disk <full> on node 7"}}`)
  })
  const gateway = await startConsole(t, YAML.replace('sim: { simulator: true }', `alpha: { url: "${url}" }`)
    .replaceAll('to: sim', 'to: alpha').replace('to: alpha }, {', 'to: alpha, retries: 0 }, {'))
  const { console: origin } = gateway
  const first = (await chat(gateway)).headers.get('x-gateway-request-id') ?? ''
  for (let n = 0; n < 3; n++) await chat(gateway)

  await walk(t, browser, { origin, as: OPS, path: '/upstreams/alpha' }, page =>
    page.getByRole('table', { name: 'Open circuits' }).waitFor())
  await walk(t, browser, { origin, as: OPS, path: '/upstreams' }, page =>
    page.getByRole('link', { name: /^alpha/ }).waitFor())

  const { page, faults } = await visit(t, browser, { origin, as: OPS })
  await go(page, '/')
  await page.getByRole('region', { name: 'Alerts' }).getByRole('link', { name: 'Upstream', exact: true }).press('Enter')
  await page.waitForURL('**/console/upstreams/alpha')
  const circuits = page.getByRole('table', { name: 'Open circuits' })
  await circuits.getByText('status 503 first_fault').waitFor()
  t.match(await circuits.innerText(), 'status 503 overloaded')
  t.match(await circuits.locator('time').first().getAttribute('datetime'), new Date().toISOString().slice(0, 10))
  t.match(await page.locator('dl > div').filter({ hasText: 'Provider failures' }).innerText(), '100')
  await page.getByRole('heading', { name: 'Open circuits over time' }).waitFor()
  await page.getByRole('button', { name: 'Show as table: How requests ended' }).click()
  await page.getByRole('table', { name: 'How requests ended' }).waitFor()
  await circuits.getByRole('link', { name: 'status 503 first_fault' }).click()
  await page.waitForURL(`**/console/logs/${first}`)
  await page.getByRole('heading', { name: 'Upstream errors' }).waitFor()
  await page.getByText('disk <full> on node 7').first().waitFor()
  t.strictSame(faults, [])
})

t.test('the page of an upstream shows limits and the state of each credential', async t => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const tokens = await startTokenServer(t)
  const { url } = await startUpstream(t, async (req, res) => {
    await bodyOf(req)
    res.setHeader('x-ratelimit-limit-requests', '1500').setHeader('x-ratelimit-remaining-requests', '1234')
    sendJson(res, req.headers.authorization === 'Bearer token-1' ? 200 : 401, { choices: [] })
  })
  const oauth2 = (secret: string) => `{ oauth2: { token_url: "${tokens.url}", client_id: me, client_secret: ${secret} } }`
  const gateway = await startConsole(t, YAML.replaceAll('to: sim', 'to: alpha').replace('sim: { simulator: true }', `alpha: {
    url: "${url}", limits: { requests_per_minute: 600, concurrent: 5 }, auth: { pool: [${oauth2('one')}, { bearer: sk-refused }] } }`))
  for (let n = 0; n < 2; n++) await chat(gateway)
  await walk(t, browser, { origin: gateway.console, as: OPS, path: '/upstreams/alpha' }, async page => {
    await page.getByText('of 600 left').or(page.getByText('none used')).first().waitFor()
    await page.getByText('of 5 running').waitFor()
    const credentials = page.getByRole('table', { name: 'Credentials' })
    await credentials.getByText('OAuth 2.0').waitFor()
    t.match(await credentials.innerText(), /Ready[^]+1,234 of 1,500[^]+Refused/)
    t.equal(await credentials.locator('time').count(), 3, 'fetched, expires, not used until')
  })

  tokens.fault = res => sendJson(res, 401, { error: 'invalid_client' })
  await gateway.change(YAML.replaceAll('to: sim', 'to: alpha').replace('sim: { simulator: true }', `alpha: { url: "${url}", auth: ${oauth2('two')} }`))
  await chat(gateway)
  await walk(t, browser, { origin: gateway.console, as: OPS, path: '/upstreams/alpha' }, async page => {
    await page.getByText('credentials: the token server responded 401 (invalid_client)').first().waitFor()
  })
})
