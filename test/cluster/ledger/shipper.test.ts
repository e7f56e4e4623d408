import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { Shipper } from '../../../src/cluster/ledger/shipper.ts'
import type { FromShipper } from '../../../src/cluster/ledger/shipper.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { PASSWORD, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import type { TestPostgres } from '../../support/postgres.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { row } from '../../ledger/rows.ts'

/** A journal and the messages of its shipper. */
interface Scene {
  readonly file: string
  readonly store: LedgerStore
  write(...rows: LedgerRow[]): void
  /** Starts a shipper; it ends with the test. */
  ship(url: string): Running
}

interface Running {
  readonly messages: FromShipper[]
  /** Resolves with the first message, past or future, that `fits` accepts. */
  message(fits: (message: FromShipper) => boolean): Promise<FromShipper>
  end(): Promise<void>
}

function scene(t: Test): Scene {
  const file = join(t.testdir({}), 'gateway.db')
  const store = new LedgerStore(file, 'one', true)
  t.teardown(() => store.close())
  let seq = 0
  return {
    file,
    store,
    write: (...rows) => void store.write({ seq: ++seq, drafts: [], closed: rows.map(encode) }),
    ship: url => startShipper(t, file, url),
  }
}

function startShipper(t: Test, file: string, url: string): Running {
  const messages: FromShipper[] = []
  const waiting = new Set<() => void>()
  const shipper = new Shipper({ file, url, instance: 'gw1', keep: null }, message => {
    messages.push(message)
    for (const look of waiting) look()
  })
  const running = shipper.run()
  const end = () => {
    shipper.close()
    return running
  }
  t.teardown(end)
  return {
    messages,
    end,
    message: fits => new Promise(resolve => {
      const look = () => {
        const found = messages.find(fits)
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    }),
  }
}

const shipped = (rows: number) => (message: FromShipper) =>
  message.kind === 'state' && message.shipped === rows && message.pending === 0

async function ids(server: TestPostgres): Promise<unknown[]> {
  const rows = await server.query('SELECT request_id FROM gateway.requests ORDER BY id')
  return rows.map(({ request_id: id }) => id)
}

t.test('rows are shipped to PostgreSQL', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  t.beforeEach(() => server.createDatabase())

  t.test('existing and later rows are shipped', async t => {
    const { write, ship } = scene(t)
    write(row('one'), row('two'))
    const { message } = ship(server.url())
    await message(shipped(2))
    write(row('three'))
    await message(shipped(3))
    t.strictSame(await ids(server), ['one', 'two', 'three'])
  })

  t.test('rows of several batches are shipped', async t => {
    const { write, ship } = scene(t)
    const names = Array.from({ length: 2500 }, (_, n) => `r${n}`)
    write(...names.map(name => row(name)))
    await ship(server.url()).message(shipped(2500))
    t.strictSame(await ids(server), names)
  })

  t.test('rows that are shipped again after a crash are stored once', async t => {
    const { file, write, ship } = scene(t)
    write(row('one'), row('two'))
    const first = ship(server.url())
    await first.message(shipped(2))
    await first.end()
    const db = new DatabaseSync(file)
    db.exec('UPDATE journal SET shipped_to = 0')
    db.close()
    await ship(server.url()).message(shipped(2))
    t.strictSame(await ids(server), ['one', 'two'])
    t.strictSame(await server.query('SELECT requests FROM gateway.days'), [{ requests: '2' }])
  })

  t.test('a row that is replaced after it was shipped is shipped again', async t => {
    const { write, ship } = scene(t)
    write(row('one', { end: 'interrupted' }))
    const { message } = ship(server.url())
    await message(shipped(1))
    write(row('one'))
    await message(shipped(2))
    t.strictSame(await server.query('SELECT "end" FROM gateway.requests'), [{ end: 'complete' }])
  })

  t.test('shipping resumes when PostgreSQL becomes reachable', async t => {
    const proxy = await startTcpProxy(t, server.port)
    proxy.cut()
    const { write, ship } = scene(t)
    write(row('one'))
    const { messages, message } = ship(server.url(proxy.port))
    await message(({ kind }) => kind === 'failed')
    await message(state => state.kind === 'state' && state.pending === 1)
    proxy.heal()
    await message(shipped(1))
    proxy.cut()
    write(row('two'))
    const before = messages.length
    await message(each => each.kind === 'failed' && messages.indexOf(each) >= before)
    proxy.heal()
    await message(shipped(2))
    t.strictSame(await ids(server), ['one', 'two'])
    t.notMatch(JSON.stringify(messages), PASSWORD)
  })

  t.test('rows are shipped over a slow connection', async t => {
    const proxy = await startTcpProxy(t, server.port)
    proxy.delay(200)
    const { write, ship } = scene(t)
    write(...Array.from({ length: 1500 }, (_, n) => row(`r${n}`)))
    await ship(server.url(proxy.port)).message(shipped(1500))
    t.equal((await ids(server)).length, 1500)
  })

  t.test('shipping resumes after PostgreSQL restarts', async t => {
    const { write, ship } = scene(t)
    const { message } = ship(server.url())
    write(row('one'))
    await message(shipped(1))
    await server.stop()
    write(row('two'))
    await message(({ kind }) => kind === 'failed')
    await server.start()
    await message(shipped(2))
    t.strictSame(await ids(server), ['one', 'two'])
  })

  t.test('of two shippers of a journal, the second ships rows only after the first ends', async t => {
    const { write, ship } = scene(t)
    const first = ship(server.url())
    write(row('one'))
    await first.message(shipped(1))
    const second = ship(server.url())
    await first.end()
    write(row('two'))
    await second.message(shipped(1))
    t.strictSame(await ids(server), ['one', 'two'])
  })

  t.test('expired rows stay in the file until they are shipped', async t => {
    const { file, store, write, ship } = scene(t)
    write(row('one'), row('two'))
    while (store.sum());
    const old = row('x').startedAt + 1
    store.expire(old, old)
    const count = () => {
      const db = new DatabaseSync(file)
      const { n } = db.prepare('SELECT count(*) AS n FROM requests').get() ?? {}
      db.close()
      return n
    }
    t.equal(count(), 2)
    const { message } = ship(server.url())
    await message(shipped(2))
    store.expire(old, old)
    t.equal(count(), 1, 'the last row stays, so that its id is not reused')
    write(row('three'))
    await message(shipped(3))
    t.strictSame(await ids(server), ['one', 'two', 'three'])
  })

  t.test('after a shipper is killed between two batches, the next shipper continues', async t => {
    const { file, write, ship } = scene(t)
    write(...Array.from({ length: 20_000 }, (_, n) => row(`r${n}`)))
    const child = spawn(process.execPath, ['--input-type=module', '-e', `
      import { Shipper } from '${new URL('../../../src/cluster/ledger/shipper.ts', import.meta.url).href}'
      const [file, url] = process.argv.slice(1)
      new Shipper({ file, url, instance: 'gw1', keep: null }, message => console.log(message.shipped)).run()`,
    file, server.url()], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    for await (const text of child.stdout) if (Number(String(text).trim().split('\n').at(-1)) >= 1000) break
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    const { messages, message } = ship(server.url())
    await message(state => state.kind === 'state' && state.pending === 0)
    t.ok(messages.some(state => state.kind === 'state' && state.shipped < 20_000), 'only the rest of the rows is shipped')
    t.equal((await ids(server)).length, 20_000)
    t.strictSame(await server.query('SELECT sum(requests) AS requests FROM gateway.days'), [{ requests: '20000' }])
  })
})

t.test('the shipper waits for a journal that the gateway has not created yet', { skip: withoutPostgres }, async t => {
  const server = await startPostgres(t)
  const folder = t.testdir({})
  const file = join(folder, 'gateway.db')
  const { message } = startShipper(t, file, server.url())
  const store = new LedgerStore(file, 'one', true)
  t.teardown(() => store.close())
  store.write({ seq: 1, drafts: [], closed: [encode(row('one'))] })
  await message(shipped(1))
  t.strictSame(await ids(server), ['one'])
  t.ok(readdirSync(folder).includes('gateway.db-shipping'), 'the lock exists while the shipper runs')
})
