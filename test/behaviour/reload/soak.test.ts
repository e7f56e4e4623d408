import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { startLoad } from './load.ts'
import { KEY, Service, Succession } from './service.ts'

/* bench/reload.ts runs the same for longer, with figures. */

async function succession(t: Test, socket?: ReturnType<typeof createServer>): Promise<Succession> {
  const started = await Succession.start(t.testdir({}), socket)
  t.teardown(() => started.kill())
  return started
}

/** Checks that each request is in the ledger exactly once, and complete. */
function audit(t: Test, { folder }: Succession, requests: number): void {
  using db = new DatabaseSync(join(folder, 'gateway.db'), { readOnly: true })
  const rows = db.prepare(`
    SELECT count(*) AS rows, count(DISTINCT request_id) AS requests, sum("end" = 'complete') AS complete
    FROM requests`)
  t.match(rows.get(), { rows: requests, requests, complete: requests })
}

t.test('reloads under load lose no request and cut no stream', async t => {
  const gateways = await succession(t)
  const load = startLoad({
    base: await gateways.base, key: KEY, clients: 4, ways: ['kept', 'fresh', 'http2'],
  })
  for (let i = 0; i < 10; i++) {
    await gateways.reload()
    await load.more(20)
  }
  const tally = await load.stop()
  t.same(tally.failures, [])
  t.equal(tally.again, 0)
  t.equal(await gateways.stop(), 0)
  audit(t, gateways, tally.answers + tally.streams)
})

t.test('restarts on a shared port under load lose no request and cut no stream', async t => {
  const gateways = await succession(t)
  const load = startLoad({ base: await gateways.base, key: KEY, clients: 4, ways: ['kept', 'http2'] })
  for (let i = 0; i < 3; i++) {
    await gateways.restart()
    await load.more(40)
  }
  const tally = await load.stop()
  t.same(tally.failures, [])
  t.equal(await gateways.predecessors(), 0, 'each old gateway drained without cutting a stream')
  t.equal(await gateways.stop(), 0)
  audit(t, gateways, tally.answers + tally.streams)
})

t.test('an inherited listening socket is handed over without losing a connection', async t => {
  const socket = createServer().listen(0, '127.0.0.1')
  await once(socket, 'listening')
  const gateways = await succession(t, socket)
  const successor = new Service(['serve', '--config', join(gateways.folder, 'gateway.yaml')], socket)
  t.teardown(() => successor.child.kill('SIGKILL'))
  await successor.listening()
  socket.close()
  const load = startLoad({
    base: await gateways.base, key: KEY, clients: 4, ways: ['kept', 'fresh', 'http2'],
  })
  await load.more(100)
  const old = gateways.current
  old.child.kill('SIGTERM')
  t.equal(await old.ended, 0)
  await load.more(100)
  const tally = await load.stop()
  t.same(tally.failures, [])
  successor.child.kill('SIGTERM')
  t.equal(await successor.ended, 0)
  audit(t, gateways, tally.answers + tally.streams)
})
