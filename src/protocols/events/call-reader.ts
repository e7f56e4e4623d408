import type { Json } from './resumable-stream.ts'

/**
 * What an event is to the tool calls of its stream. `starts` = the event begins a call, and the calls before it are complete. `ends` = the
 * calls are complete with this event. `within` = neither: the event belongs to an open call, or to none.
 */
export type CallStep = 'starts' | 'ends' | 'within'

/** Finds where the tool calls of one stream begin and end. Must get every event. */
export type CallReader = (event: Json) => CallStep
