import type { Exchange } from './exchange.ts'

/** What each log line of a request contains: its id, and its span. */
export function logIds({ id, trace }: Exchange): LogIds {
  return trace === null ? { request: id } : { request: id, trace_id: trace.traceId, span_id: trace.spanId }
}

interface LogIds {
  readonly request: string
  readonly trace_id?: string
  readonly span_id?: string
}
