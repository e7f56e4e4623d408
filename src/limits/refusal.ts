import type { BlockingLimit } from './scope.ts'
import type { AdmissionRequest, LimitRefusal } from './types.ts'

/** Milliseconds. With a longer retry-after, openai 7 retries within seconds, and openai 6 and Anthropic's SDKs sleep for that time. */
const MAX_RETRY_WAIT_MS = 60_000

export function refusalOf(blocking: BlockingLimit, request: AdmissionRequest): LimitRefusal {
  const { which, waitMs, scope } = blocking
  return {
    which,
    scope: { key: request.key.name, group: scope.group, model: scope.model },
    retryAfterMs: waitMs === Infinity ? null : waitMs,
    renewsSoon: waitMs <= MAX_RETRY_WAIT_MS,
    message: message(blocking, request),
    ...scope.limits.queue && { queue: scope.limits.queue },
  }
}

function message({ which, waitMs, scope }: BlockingLimit, request: AdmissionRequest): string {
  const { limits } = scope
  const holder = scope.group === null ? 'this key' : `the group ${scope.group}`
  const whose = scope.model === null ? holder : `${holder} on models ${scope.model}`
  if (which === 'requests') return `Rate limit of ${whose} reached: ${limits.requestsPerMinute} requests per minute.`
  if (which === 'tokens') {
    const need = `this request may use ${request.estimate.tokens}`
    return waitMs === Infinity
      ? `Request too large for ${whose}: ${need} tokens, ${limits.tokensPerMinute} per minute are allowed.`
      : `Rate limit of ${whose} reached: ${limits.tokensPerMinute} tokens per minute; ${need}.`
  }
  if (which === 'concurrent') return `Too many requests at once for ${whose}: ${limits.concurrent} may run at a time.`
  const { usd, per } = limits.budget ?? { usd: '0', per: 'total' }
  const budget = `the budget of ${whose} (${usd} USD ${per === 'total' ? 'in total' : `per ${per}`})`
  return which === 'unpriced'
    ? `No price for this model, for another one that the request names, or for the model of another target of its route: ${budget} requires a price. The operator can set one under models.`
    : `This request may cost more than is left of ${budget}.`
}
