import type { Target } from '../config/types.ts'

/** One model at one upstream. */
export type CandidateId = string

/** @param model as the client sent it; used by targets without their own model */
export function candidateId(target: Target, model: string | null): CandidateId {
  return `${target.upstream.name}\n${target.model ?? model ?? ''}`
}

export function withoutModel(upstream: string): CandidateId {
  return `${upstream}\n`
}

/** An empty model = the request had none. */
export function candidateOf(id: CandidateId): [upstream: string, model: string] {
  const end = id.indexOf('\n')
  return [id.slice(0, end), id.slice(end + 1)]
}
