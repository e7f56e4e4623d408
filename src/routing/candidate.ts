import type { Target } from '../config/types.ts'

/** A candidate as health sees it: one model at one upstream. */
export type CandidateId = string

/** @param model as the client sent it; used by targets without their own model */
export function candidateId(target: Target, model: string | null): CandidateId {
  return `${target.upstream.name}\n${target.model ?? model ?? ''}`
}

/** The id of an upstream whose model is unknown. */
export function withoutModel(upstream: string): CandidateId {
  return `${upstream}\n`
}

/** The upstream and model of an id; an empty model = the request had none. */
export function candidateOf(id: CandidateId): [upstream: string, model: string] {
  const end = id.indexOf('\n')
  return [id.slice(0, end), id.slice(end + 1)]
}
