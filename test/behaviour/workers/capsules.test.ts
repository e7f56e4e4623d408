import { writeFileSync } from 'node:fs'
import t from 'tap'
import { listening } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { startThinkingUpstream } from '../../support/thinking-upstream.ts'

for (const ledger of ['', 'ledger: { file: data/gateway.db }']) {
  t.test(`every worker opens the capsules of every other worker ${ledger === '' ? 'without a ledger' : 'with a ledger'}`, async t => {
    const upstream = await startThinkingUpstream(t)
    const file = `${t.testdir({})}/gateway.yaml`
    writeFileSync(file, `
server: { listen: 127.0.0.1:0, workers: 2 }
upstreams: { up: { url: "${upstream.url}", speaks: [messages] } }
routes: [{ to: up }]
keys: [{ name: test, key: ${KEY} }]
${ledger}
`)
    const { base } = await listening(t, ['serve', '--config', file])
    const capsule = await upstream.capsuleOf({ url: base })
    // Each request on a new connection, so that both workers get requests.
    const back = await Promise.all(Array.from({ length: 12 }, () => upstream.comesBack({ url: base }, capsule)))
    t.strictSame([...new Set(back)], [true])
  })
}
