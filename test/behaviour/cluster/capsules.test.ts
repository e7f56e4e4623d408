import t from 'tap'
import { withFolder } from '../../support/folder.ts'
import type { FolderOwner } from '../../support/folder.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { startThinkingUpstream } from '../../support/thinking-upstream.ts'

t.test('capsules of several gateways', { skip: withoutPostgres, timeout: 120_000 }, async t => {
  const postgres = await startPostgres(t)
  const upstream = await startThinkingUpstream(t)
  const start = (machine: FolderOwner, instance: string, url: string) => startTestGateway(machine, `
upstreams: { up: { url: "${upstream.url}", speaks: [messages] } }
routes: [{ to: up }]
ledger: { file: gateway.db }
cluster: { instance: ${instance}, postgres: "${url}" }
`)

  t.test('each gateway opens the capsules of the other gateways, also if all gateways start at once', async t => {
    await postgres.createDatabase()
    const gateways = await Promise.all(['gw1', 'gw2', 'gw3'].map(name => start(withFolder(t), name, postgres.url())))
    for (const maker of gateways) {
      const capsule = await upstream.capsuleOf(maker)
      for (const reader of gateways) t.equal(await upstream.comesBack(reader, capsule), true)
    }
  })

  t.test('after a restart without PostgreSQL, a gateway opens the capsules of other gateways as before', async t => {
    await postgres.createDatabase()
    const proxy = await startTcpProxy(t, postgres.port)
    const machine = withFolder(t)
    const other = await start(withFolder(t), 'gw1', postgres.url())
    const before = await start(machine, 'gw2', postgres.url(proxy.port))
    await before.close()
    const capsule = await upstream.capsuleOf(other)
    proxy.cut()
    const again = await start(machine, 'gw2', postgres.url(proxy.port))
    t.equal(await upstream.comesBack(again, capsule), true)
    t.equal(await upstream.comesBack(other, await upstream.capsuleOf(again)), true)
  })

  t.test('a gateway that creates its first capsule key without PostgreSQL shares the key later', async t => {
    await postgres.createDatabase()
    const proxy = await startTcpProxy(t, postgres.port)
    proxy.cut()
    const first = await start(withFolder(t), 'gw1', postgres.url(proxy.port))
    const capsule = await upstream.capsuleOf(first)
    t.equal(await upstream.comesBack(first, capsule), true)
    proxy.heal()
    await first.waitForLog(({ msg }) => msg === 'the keys of capsules can be read and kept again')
    const other = await start(withFolder(t), 'gw2', postgres.url())
    t.equal(await upstream.comesBack(other, capsule), true)
  })
})
