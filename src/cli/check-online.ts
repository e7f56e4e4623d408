import { systemClock } from '../base/clock.ts'
import { proxyName } from '../base/outgoing-proxy.ts'
import { formatNumber, table } from '../base/text-table.ts'
import type { Auth } from '../config/auth-types.ts'
import { everyTarget } from '../config/sections/routes.ts'
import type { Config, Upstream } from '../config/types.ts'
import { routeFetch } from '../proxy/upstream/fetch-route.ts'
import { probeUpstream, type ProbeResult } from '../pipeline/attempt/probe-upstream.ts'

interface Check {
  readonly name: string
  readonly upstream: Upstream
  readonly auth: Auth | null
}

type Row = ProbeResult & Pick<Check, 'name' | 'upstream'>

/**
 * Tries all credentials of all upstreams at the same time. The tries cost nothing.
 * @returns the results as a text table, and the number of failures
 */
export async function checkOnline(config: Config): Promise<{ readonly text: string, readonly failures: number }> {
  routeFetch(config.proxy)
  const rows = await Promise.all(checksOf(config).map(check => run(config, check)))
  if (rows.length === 0) return { text: 'nothing to try: all upstreams are simulated\n', failures: 0 }
  const text = table<Row>([
    { title: 'UPSTREAM', text: ({ name }) => name },
    { title: 'RESULT', text: ({ verdict }) => verdict },
    { title: 'MS', text: ({ ms }) => formatNumber(Math.round(ms)), right: true },
    ...hasProxy(config) ? [{ title: 'VIA', text: ({ upstream: { proxy } }: Row) => (proxy === null ? 'direct' : proxyName(proxy)) }] : [],
    { title: 'DETAIL', text: ({ detail }) => detail },
  ], rows)
  return { text, failures: rows.filter(({ verdict }) => verdict === 'failed').length }
}

function hasProxy({ proxy, upstreams }: Config): boolean {
  return proxy !== null || [...upstreams.values()].some(upstream => upstream.proxy !== null)
}

/** The credentials to check. Simulators have none. */
function checksOf({ upstreams }: Config): Check[] {
  return [...upstreams.values()].filter(({ simulator }) => !simulator).flatMap(upstream => {
    const { auth, name } = upstream
    if (auth?.kind !== 'pool') return { name, upstream, auth }
    return auth.pool.map((member, at) => ({ name: `${name} (${at + 1} of ${auth.pool.length})`, upstream, auth: member }))
  })
}

async function run(config: Config, { name, upstream, auth }: Check): Promise<Row> {
  if (auth?.kind === 'client') return { name, upstream, verdict: 'unclear', ms: 0, detail: 'not tried: each client sends its own credential' }
  return { name, upstream, ...await probeUpstream(config, { ...upstream, auth }, modelOf(config, upstream), systemClock) }
}

/** The name of a model at the upstream; null = the routes have only globs for this upstream. */
function modelOf({ routes }: Config, upstream: Upstream): string | null {
  const names = routes.flatMap(route => everyTarget(route)
    .filter(target => target.upstream === upstream)
    .map(({ model }) => model ?? route.models?.find(name => !name.includes('*')) ?? null))
  return names.find(name => name !== null) ?? null
}
