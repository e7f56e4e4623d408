import t from 'tap'
import { PASSWORD, SECOND_KEY, YAML, chat, startConsole } from '../behaviour/console/console.ts'
import { KEY } from '../support/gateway.ts'

const KEPT = YAML + 'log: { bodies: [{ key: test, keep: 1h }] }\n'

t.test('logged bodies are shown only to administrators and to the holder of the key', async t => {
  const gateway = await startConsole(t, KEPT)
  const id = (await chat(gateway)).headers.get('x-gateway-request-id') ?? ''
  await gateway.waitForLog(line => line['request'] === id && line['msg'] === 'exchange')

  const admin = await gateway.login({ name: 'ops', password: PASSWORD })
  const holder = await gateway.login({ key: KEY })
  for (const browser of [admin, holder]) {
    t.match((await browser.ask(`/logs/${id}`)).json, { has_bodies: true })
    const { status, json } = await browser.ask(`/logs/${id}/bodies`)
    t.equal(status, 200)
    t.match(json, { transcripts: [{
      request_id: id,
      key: 'test',
      request: { content_type: 'application/json', coding: 'text', is_cut: false, content: /"model":"demo"/ },
      answer: { content_type: /json/, coding: 'text', content: /"choices"/ },
    }] })
  }
  t.match((await admin.ask('/audit')).json, {
    entries: [{ action: 'bodies.read', actor: 'console: ops', subject: 'test', detail: id }],
  })

  const viewer = await gateway.login({ name: 'eye', password: PASSWORD })
  t.match((await viewer.ask(`/logs/${id}`)).json, { has_bodies: false })
  t.equal((await viewer.ask(`/logs/${id}/bodies`)).status, 403)
  const stranger = await gateway.login({ key: SECOND_KEY })
  t.match((await stranger.ask(`/logs/${id}`)).json, { stories: { length: 0 }, has_bodies: false })
  t.equal((await stranger.ask(`/logs/${id}/bodies`)).status, 404)
})
