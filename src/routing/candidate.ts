import type { Target } from '../config/types.ts'

/** A candidate as health sees it: one model at one upstream. */
export type CandidateId = string

/** @param model as the client wrote it: what a target without a model of its own keeps */
export function candidateId(target: Target, model: string | null): CandidateId {
  return `${target.upstream.name}\n${target.model ?? model ?? ''}`
}

/** What stands for an upstream of which no model is known. */
export function withoutModel(upstream: string): CandidateId {
  return `${upstream}\n`
}

/** The upstream and the model that an id stands for; an empty model = none was named. */
export function candidateOf(id: CandidateId): [upstream: string, model: string] {
  const end = id.indexOf('\n')
  return [id.slice(0, end), id.slice(end + 1)]
}
