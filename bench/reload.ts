import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { startLoad } from '../test/behaviour/reload/load.ts'
import type { Way } from '../test/behaviour/reload/load.ts'
import { KEY, Succession } from '../test/behaviour/reload/service.ts'

/**
 * Claim: under constant load, reloads and restarts lose no request and cut no
 * stream, and the ledger has each request once.
 *
 * Clients that open a connection for each request are a run of their own: where
 * the kernel does not move waiting connections to the successor
 * (net.ipv4.tcp_migrate_req), those that arrive at the moment of a restart are reset.
 *
 *   node bench/reload.ts [reloads] [restarts] [clients of each kind]
 */

const reloads = Number(process.argv[2] ?? 100)
const restarts = Number(process.argv[3] ?? 20)
const clients = Number(process.argv[4] ?? 8)

type Change = (gateways: Succession) => Promise<void>

async function soak(name: string, times: number, ways: readonly Way[], change: Change): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-soak-'))
  const gateways = await Succession.start(folder)
  const load = startLoad({ base: await gateways.base, key: KEY, clients, ways })
  const began = performance.now()
  for (let i = 0; i < times; i++) {
    await change(gateways)
    await load.more(50)
  }
  const seconds = (performance.now() - began) / 1_000
  const { answers, streams, again, failures } = await load.stop()
  const cut = await gateways.predecessors()
  const code = await gateways.stop()
  console.log(`${name}: ${times} in ${seconds.toFixed(1)} s, over ${ways.join(', ')}`)
  console.log(`  answers ${answers}, streams ${streams}, sent again ${again}, lost or cut ${failures.length}`)
  console.log(`  processes that cut something or failed: ${cut + Number(code !== 0)}`)
  console.log(`  ledger: ${rowsOf(folder)}`)
  for (const [reason, count] of Object.entries(Object.groupBy(failures, reason => reason))) {
    console.log(`  ${count?.length} x ${reason.slice(0, 200)}`)
  }
  rmSync(folder, { recursive: true, force: true })
}

function rowsOf(folder: string): string {
  using db = new DatabaseSync(join(folder, 'gateway.db'), { readOnly: true })
  const rows = db.prepare(`
    SELECT count(*) AS rows, count(DISTINCT request_id) AS requests, sum("end" = 'complete') AS complete
    FROM requests`)
  const { rows: all, requests, complete } = rows.get() ?? {}
  return `${all} rows, ${requests} requests, ${complete} complete`
}

function migrates(): string {
  try {
    return readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'utf8').trim()
  } catch {
    return 'unknown'
  }
}

await soak('reloads', reloads, ['kept', 'fresh', 'http2'], gateways => gateways.reload())
await soak('restarts on a shared port', restarts, ['kept', 'http2'], gateways => gateways.restart())
await soak(
  `restarts on a shared port, tcp_migrate_req ${migrates()}`, restarts, ['fresh'],
  gateways => gateways.restart(),
)
