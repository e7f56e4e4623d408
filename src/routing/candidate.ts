import type { Target } from '../config/types.ts'

/** One model at one upstream. */
export type CandidateId = string

/** @param model as the client sent it; used if the target has no model of its own */
export function candidateId(target: Target, model: string | null): CandidateId {
  return `${target.upstream.name}\n${target.model ?? model ?? ''}`
}

export function withoutModel(upstream: string): CandidateId {
  return `${upstream}\n`
}

/** @returns `model`: '' = the request has no model */
export function candidateOf(id: CandidateId): [upstream: string, model: string] {
  const end = id.indexOf('\n')
  return [id.slice(0, end), id.slice(end + 1)]
}
