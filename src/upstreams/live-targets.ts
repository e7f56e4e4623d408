import type { Target } from '../config/types.ts'
import type { RefusedFor } from './credentials/refusals.ts'
import type { Endpoint } from '../protocols/endpoint/protocol.ts'
import { isSpoken } from '../protocols/translate.ts'
import { providerOf } from '../providers/index.ts'
import { candidateId, type CandidateId } from '../routing/candidate.ts'
import type { LiveUpstream } from './live-upstreams.ts'

/** The values that all requests to a target for one endpoint and one model have in common. */
export interface LiveTarget {
  readonly upstream: LiveUpstream
  /** The model's name at the upstream; null = the request names no model. */
  readonly model: string | null
  readonly candidate: CandidateId
  /** The use for which the upstream may refuse the credential. */
  readonly purpose: RefusedFor
  /** The protocols that the target accepts; null = all, without translation. */
  readonly speaks: readonly string[] | null
  readonly isSpoken: boolean
}

/** Maximum cached targets, far more than one gateway serves. */
const MAX_TARGETS = 4096

/** Caches the `LiveTarget` objects. The first request for a target, an endpoint and a model builds one. */
export class LiveTargets {
  readonly #upstreams: ReadonlyMap<string, LiveUpstream>
  readonly #known = new Map<Target, Map<Endpoint, Map<string | null, LiveTarget>>>()
  #size = 0

  constructor(upstreams: ReadonlyMap<string, LiveUpstream>) {
    this.#upstreams = upstreams
  }

  /** @param named the model's name in the client's request; null = none */
  at(target: Target, endpoint: Endpoint, named: string | null): LiveTarget {
    return this.#known.get(target)?.get(endpoint)?.get(named) ?? this.#add(target, endpoint, named)
  }

  #add(target: Target, endpoint: Endpoint, named: string | null): LiveTarget {
    const upstream = this.#upstreams.get(target.upstream.name) as LiveUpstream
    const model = target.model ?? named
    const speaks = targetProtocols(target, named)
    const live: LiveTarget = {
      upstream, model, speaks, candidate: candidateId(target, named), purpose: [endpoint.name, model], isSpoken: isSpoken(endpoint, speaks),
    }
    // Clients choose the names of models, so the cache must not grow without bound.
    if (++this.#size > MAX_TARGETS) {
      this.#known.clear()
      this.#size = 1
    }
    const endpoints = this.#known.get(target) ?? new Map<Endpoint, Map<string | null, LiveTarget>>()
    const models = endpoints.get(endpoint) ?? new Map<string | null, LiveTarget>()
    this.#known.set(target, endpoints.set(endpoint, models.set(named, live)))
    return live
  }
}

/** @param model the model's name in the client's request; null = none @returns the protocols of the target; null = all, untranslated */
export function targetProtocols({ upstream, model: own }: Target, model: string | null): readonly string[] | null {
  const provider = upstream.provider && providerOf(upstream.provider)
  return provider?.speaks ? provider.speaks(own ?? model) : upstream.speaks
}
