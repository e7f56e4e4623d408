import t from 'tap'
import { ALICE, run, setUp } from '../behaviour/console/caller-console.ts'

t.test('the list of callers says who they are and what they may do', async t => {
  const { logIn, gateway } = await setUp(t, undefined, { keys: 2 })
  const [alice, carol, admin] = [await logIn('1'), await logIn('5'), await logIn('3')]
  await run(alice.browser)
  await alice.browser.ask('/own/keys', { method: 'POST', body: { label: 'a', expires_at: new Date(Date.now() + 60_000).toISOString() } })
  const block = (name: string, action = 'block') => admin.browser.ask(`/callers/${encodeURIComponent(name)}/${action}`, { method: 'POST' })
  t.equal((await block('corp:carol@example.com')).status, 204)
  t.equal((await carol.browser.ask('/own')).status, 401)
  const answer = (await admin.browser.ask('/callers')).json
  t.match(answer, {
    total: 2,
    callers: [
      { name: ALICE, groups: ['research'], state: 'live', keys: 1, keys_allowed: 2, limits: { requests_per_minute: 60 }, figures: { requests: 1 } },
      { name: 'corp:carol@example.com', groups: [], state: 'blocked', keys: 0, last_used_at: null },
    ],
  })
  t.match((await admin.browser.ask('/callers?search=CAROL')).json, { total: 1 })
  t.equal((await block('test')).status, 404, 'a key is no caller')
  t.equal((await admin.browser.ask('/keys', { method: 'POST', body: { name: 'corp:dave' } })).status, 400, 'the name belongs to callers')
  t.equal((await alice.browser.ask('/callers')).status, 403)
  t.equal((await gateway.browser().ask('/callers')).status, 401)
  const { entries } = (await admin.browser.ask('/audit')).json as { entries: object[] }
  t.match(entries[0], { action: 'key.blocked', subject: 'corp:carol@example.com', actor: 'console: ada@example.com' })
})
