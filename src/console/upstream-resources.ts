import { isoTime } from '../base/clock.ts'
import type { Upstream } from '../config/types.ts'
import type { CredentialState } from '../upstreams/credentials/credential-state.ts'
import type { RateLimitState } from '../limits/types.ts'
import type { UpstreamDetails } from './api/upstream.ts'
import type { WorkerUpstream } from './state/workers.ts'

type Credential = UpstreamDetails['credentials'][number]
type Limits = NonNullable<UpstreamDetails['limits']>

/** @param all the state of the upstream in each worker @param running number of running requests */
export function limitsOf({ limits: own }: Upstream, all: readonly WorkerUpstream[], running: number): Limits | null {
  if (own === null) return null
  const { requestsPerMinute, tokensPerMinute, concurrent } = own.limits
  return {
    requests: rateLimitOf(requestsPerMinute, all.map(({ rateLimits }) => rateLimits.requests)),
    tokens: rateLimitOf(tokensPerMinute, all.map(({ rateLimits }) => rateLimits.tokens)),
    concurrent: concurrent === null ? null : { limit: concurrent, running },
  }
}

/** The state of a rate limit. Each worker knows what remained at its last request, so the lowest number is the best estimate. */
function rateLimitOf(limit: number | null, all: readonly (RateLimitState | null)[]): Limits['requests'] {
  if (limit === null) return null
  const [least] = all.filter(state => state !== null).sort((a, b) => a.remaining - b.remaining)
  return { limit, remaining: least?.remaining ?? null, reset_ms: least?.resetMs ?? null }
}

/** @param all the state of the upstream in each worker @param now ms since 1970 */
export function credentialsOf({ auth }: Upstream, all: readonly WorkerUpstream[], now: number): Credential[] {
  if (auth?.kind === 'client') return [{ kind: 'client', ...worstOf([], now) }]
  const members = auth?.kind === 'pool' ? auth.pool : auth === null ? [] : [auth]
  return members.flatMap(({ kind }, at) => {
    const states = all.flatMap(({ credentials }) => credentials[at] ?? [])
    return states.length === 0 ? [] : { kind, ...worstOf(states, now) }
  })
}

/** The worst of the workers' states: all workers use the same credential. */
function worstOf(states: readonly CredentialState[], now: number): Omit<Credential, 'kind'> {
  const faulty = states.filter(({ fault }) => fault !== null)
  const failing = faulty.every(({ fetchedAt, expiresAt }) => fetchedAt !== null && (expiresAt === null || expiresAt > now))
    ? 'refresh_failing' : 'unavailable'
  const [rest] = states.flatMap(state => state.rest ?? []).sort((a, b) => b.until - a.until)
  const [rateLimits] = states.flatMap(state => state.rateLimits ?? []).sort((a, b) => b.at - a.at)
  return {
    state: rest?.reason ?? (faulty.length === 0 ? 'ready' : failing),
    fault: faulty[0]?.fault ?? null,
    rests_until: rest === undefined ? null : isoTime(rest.until),
    fetched_at: earliest(states.map(state => state.fetchedAt)),
    expires_at: earliest(states.map(state => state.expiresAt)),
    rate_limits: rateLimits === undefined ? null : { ...rateLimits, at: isoTime(rateLimits.at) },
  }
}

function earliest(times: readonly (number | null)[]): string | null {
  const known = times.filter(time => time !== null)
  return known.length === 0 ? null : isoTime(Math.min(...known))
}
